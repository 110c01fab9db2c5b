package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxParamsFile bounds a parameter file.
const maxParamsFile = 16 << 20

// readParams reads the parameter file, if there is one.
func readParams(options *runOptions, stdin io.Reader) (map[string]any, error) {
	for _, pair := range options.params {
		if key, _, ok := strings.Cut(pair, "="); !ok || strings.TrimSuffix(key, ":") == "" {
			return nil, usageErrorf("parameter %q has no key: write -p key=value", pair)
		}
	}
	params := map[string]any{}
	if options.paramsFile == "" {
		return params, nil
	}
	file, err := openParams(options.paramsFile, stdin)
	if err != nil {
		return nil, usageErrorf("read the parameters: %w", err)
	}
	defer func() { _ = file.Close() }()                                        // it was only read
	err = yaml.NewDecoder(io.LimitReader(file, maxParamsFile)).Decode(&params) // YAML includes JSON
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, usageErrorf("%s is not a mapping of parameters in YAML or JSON: %w", options.paramsFile, err)
	}
	if params == nil {
		params = map[string]any{}
	}
	return params, nil
}

// addPairs adds the -p parameters. What a value means depends on the type that
// the action's schema gives the parameter.
func addPairs(params map[string]any, pairs []string, schema []byte) error {
	fields := fieldsOf(schema)
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		if name, isJSON := strings.CutSuffix(key, ":"); isJSON {
			parsed, ok := parseJSON(value)
			if !ok {
				return usageErrorf("parameter %s: %q is not JSON: write -p %s=value for a text", name, value, name)
			}
			params[name] = parsed
			continue
		}
		params[key] = value
		if fields[key].Type != "string" {
			if parsed, ok := parseJSON(value); ok {
				params[key] = parsed
			}
		}
	}
	return nil
}

// parseJSON reads exactly one JSON value; numbers keep their digits.
func parseJSON(text string) (any, bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil, false
	}
	_, err := decoder.Token()
	return value, errors.Is(err, io.EOF)
}

// field is what a schema says of one parameter.
type field struct {
	Type     string          `json:"type"`
	Default  json.RawMessage `json:"default"`
	Required bool            `json:"required"`
}

// fieldsOf reads either form of a schema: name to description, or a JSON Schema
// object with properties. What it does not understand it leaves out.
func fieldsOf(schema []byte) map[string]field {
	var raw map[string]json.RawMessage
	if json.Unmarshal(schema, &raw) != nil {
		return nil
	}
	var required []string
	var properties map[string]json.RawMessage
	if json.Unmarshal(raw["properties"], &properties) == nil && len(properties) > 0 {
		_ = json.Unmarshal(raw["required"], &required) // there may be none
		raw = properties
	}
	fields := make(map[string]field, len(raw))
	for name, text := range raw {
		var f field
		if json.Unmarshal(text, &f) == nil {
			f.Required = f.Required || slices.Contains(required, name)
			fields[name] = f
		}
	}
	return fields
}

// checkParams refuses what the action could not use: a required parameter that
// is missing, and a value of another type. Templates are not judged.
func checkParams(ref string, params map[string]any, schema []byte) error {
	fields := fieldsOf(schema)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := fields[name]
		value := params[name]
		if value == nil {
			if f.Required && len(f.Default) == 0 {
				return usageErrorf("%s needs the parameter %s: give it with -p %s=value", ref, name, name)
			}
			continue
		}
		if text, ok := value.(string); ok && strings.Contains(text, "{{") {
			continue
		}
		if !hasType(value, f.Type) {
			shown, err := json.Marshal(value)
			if err != nil {
				shown = fmt.Append(nil, value) // YAML knows values that JSON does not
			}
			return usageErrorf("parameter %s of %s is of type %s, and %s is not", name, ref, f.Type, shown)
		}
	}
	return nil
}

// hasType reports whether a JSON value is of a type of JSON Schema; of an
// unknown type everything is.
func hasType(value any, kind string) bool {
	text, err := json.Marshal(value)
	if err != nil {
		return true // said when the parameters are written
	}
	first := text[0]
	switch kind {
	case "string":
		return first == '"'
	case "number":
		return first == '-' || first >= '0' && first <= '9'
	case "integer":
		number, err := strconv.ParseFloat(string(text), 64)
		return err == nil && number == math.Trunc(number)
	case "boolean":
		return first == 't' || first == 'f'
	case "array":
		return first == '['
	case "object":
		return first == '{'
	}
	return true
}
