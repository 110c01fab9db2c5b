// Package exactjson reads and writes JSON without changing it: numbers keep their digits, and texts get no escapes for
// HTML.
package exactjson

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
