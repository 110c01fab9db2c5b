package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/jsonvalue"
)

// Defaults are the defaults of the parameters by name.
func (s *Schema) Defaults() map[string]any {
	found := map[string]any{}
	for name, field := range s.root.properties {
		if field.fallback != nil {
			found[name] = *field.fallback
		}
	}
	return found
}

// Type is the only declared type of a parameter; empty for none or several.
func (s *Schema) Type(name string) string {
	if field := s.root.properties[name]; field != nil && len(field.types) == 1 {
		return field.types[0]
	}
	return ""
}

// Fill adds the defaults of missing or null parameters, and keeps values as written. Either argument may be empty or
// null. An invalid schema has no defaults, because it must not stop the action.
func Fill(schema, params json.RawMessage) (json.RawMessage, error) {
	defaults := RawDefaults(schema)
	if len(defaults) == 0 && isObject(params) {
		return params, nil // parameters may be megabytes, so they are not decoded
	}
	fields, err := object(params)
	if err != nil {
		return nil, fmt.Errorf("read parameters: %w", err)
	}
	for name, value := range defaults {
		if present, ok := fields[name]; !ok || jsonvalue.None(present) {
			fields[name] = value
		}
	}
	filled, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode parameters: %w", err)
	}
	return filled, nil
}

// RawDefaults are the defaults as written in the schema. It reads nothing else and is cheap.
func RawDefaults(schema json.RawMessage) map[string]json.RawMessage {
	fields, err := object(schema)
	if err != nil {
		return nil
	}
	if properties, err := object(fields["properties"]); err == nil && isJSONForm(fields, properties) {
		fields = properties
	}
	found := make(map[string]json.RawMessage, len(fields))
	for name, raw := range fields {
		var field struct {
			Default json.RawMessage `json:"default"`
		}
		if isObject(raw) && json.Unmarshal(raw, &field) == nil && !jsonvalue.None(field.Default) {
			found[name] = field.Default
		}
	}
	return found
}

// isJSONForm separates the two forms as isJSONSchema does, for a schema with properties.
func isJSONForm(fields, properties map[string]json.RawMessage) bool {
	if raw, ok := fields["type"]; ok && !isObject(raw) {
		return true
	}
	for _, raw := range properties {
		if !isObject(raw) {
			return false
		}
	}
	return len(properties) > 0
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}

func object(raw json.RawMessage) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if jsonvalue.None(raw) {
		return fields, nil
	}
	if !isObject(raw) {
		return nil, errors.New("they are no JSON object")
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("they are no JSON object: %w", err)
	}
	return fields, nil
}
