package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/bounds"
	"github.com/attune-go/attune/core/schema"
)

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
	defer func() { _ = file.Close() }() // it was only read
	raw, err := readBounded(options.paramsFile, file)
	if err != nil {
		return nil, err
	}
	err = yaml.NewDecoder(bytes.NewReader(raw)).Decode(&params) // YAML includes JSON
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, usageErrorf("%s is not a mapping of parameters in YAML or JSON: %w", options.paramsFile, err)
	}
	if params == nil {
		params = map[string]any{}
	}
	return params, nil
}

// readBounded reads a file that is no larger than a value may be.
func readBounded(name string, file io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(file, bounds.Bytes+1))
	switch {
	case err != nil:
		return nil, usageErrorf("read %s: %w", name, err)
	case len(raw) > bounds.Bytes:
		return nil, usageErrorf("%s is larger than %d bytes (%d MiB), the most that is read: pass large data by reference", name, bounds.Bytes, bounds.Bytes>>20)
	}
	return raw, nil
}

// addPairs adds the -p parameters. What a value means depends on the type that
// the action's schema gives the parameter.
func addPairs(params map[string]any, pairs []string, paramSchema []byte) error {
	declared, err := schema.Parse(paramSchema)
	if err != nil {
		return failedErrorf("the action's schema of parameters: %w", err)
	}
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
		if declared.Type(key) != "string" {
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

// openParams opens the parameter file.
func openParams(path string, stdin io.Reader) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(stdin), nil
	}
	return os.Open(path)
}
