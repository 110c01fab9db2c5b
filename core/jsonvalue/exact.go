package jsonvalue

import (
	"bytes"
	"encoding/json"
)

// Decode reads the first JSON value. A number in an any becomes a json.Number.
func Decode(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// None reports whether a document is empty or null.
func None(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// Encode writes compact JSON with sorted keys.
func Encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Indented writes JSON of several lines.
func Indented(value any) (string, error) {
	raw, err := Encode(value)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = json.Indent(&out, raw, "", "  ")
	return out.String(), err
}
