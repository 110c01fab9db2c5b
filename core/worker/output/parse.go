package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/attune-go/attune/core/yamldoc"
)

// The output formats of an action.
const (
	FormatText  = "text"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
	FormatJSONL = "jsonl"
)

// Parse reads standard output in the action's output format. Text and blank output have no data and give nil. In the
// format json the last line counts if the whole is no JSON, so that a script may log before it. In the format jsonl the
// lines that are JSON become an array.
func Parse(format string, stdout []byte) (json.RawMessage, error) {
	trimmed := bytes.TrimSpace(stdout)
	if len(trimmed) == 0 {
		return nil, nil
	}
	var value any
	var err error
	switch format {
	case FormatText, "":
		return nil, nil
	case FormatJSON:
		if value, err = decodeJSON(trimmed); err != nil {
			last, lastErr := decodeJSON(trimmed[bytes.LastIndexByte(trimmed, '\n')+1:])
			if lastErr == nil {
				value, err = last, nil
			}
		}
	case FormatYAML:
		value, err = yamldoc.Parse("", []byte(Text(trimmed)))
	case FormatJSONL:
		value, err = decodeLines(trimmed)
	default:
		return nil, fmt.Errorf("output format %q is unknown: use text, json, yaml or jsonl", format)
	}
	if err != nil {
		return nil, fmt.Errorf("read output as %s: %w", format, err)
	}
	return encode(value)
}

// decodeJSON reads exactly one value and keeps every digit of its numbers.
func decodeJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte(yamldoc.BOM))))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return value, nil
}

// decodeLines fails with the error of the first line if none is JSON.
func decodeLines(text []byte) (any, error) {
	values := []any{}
	var first error
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		value, err := decodeJSON(line)
		if err == nil {
			values = append(values, value)
		} else if first == nil {
			first = fmt.Errorf("line %d: %w", number, err)
		}
	}
	if len(values) == 0 {
		return nil, first
	}
	return values, nil
}
