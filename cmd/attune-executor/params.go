package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/yamldoc"
)

func readParams(options *runOptions, stdin io.Reader) (map[string]any, error) {
	if err := checkPairs(options.params); err != nil {
		return nil, err
	}
	params := map[string]any{}
	if options.paramsFile == "" {
		return params, nil
	}
	raw, err := readFile("parameters", options.paramsFile, stdin, jsonvalue.Bytes)
	if err != nil {
		return nil, err
	}
	value, err := yamldoc.Parse(options.paramsFile, raw)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	if value == nil {
		return params, nil
	}
	params, ok := value.(map[string]any)
	if !ok {
		return nil, usageErrorf("%s is not a mapping of parameters in YAML or JSON", options.paramsFile)
	}
	return params, nil
}

// checkPairs checks the -p parameters before the command connects.
func checkPairs(pairs []string) error {
	for _, pair := range pairs {
		switch key, _, ok := strings.Cut(pair, "="); {
		case !ok || strings.TrimSuffix(key, ":") == "":
			return usageErrorf("parameter %q has no key: write -p key=value", pair)
		case !utf8.ValidString(pair):
			return usageErrorf("parameter %q is not valid UTF-8", pair)
		}
	}
	return nil
}

// addPairs adds the -p parameters. The type in the action's schema decides how a value is read.
func addPairs(params map[string]any, pairs []string, paramSchema []byte) error {
	declared, err := schema.Parse(paramSchema)
	if err != nil {
		return failedErrorf("the action's schema of parameters: %w", err)
	}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		name, isJSON := strings.CutSuffix(key, ":")
		if isJSON || declared.Type(key) != "string" {
			switch parsed, err := parseJSON(name, value); {
			case err == nil:
				params[name] = parsed
				continue
			case !errors.Is(err, errNotJSON):
				return err
			case isJSON:
				return usageErrorf("parameter %s: %q is not JSON: write -p %s=value for a text", name, value, name)
			}
		}
		params[key] = value
	}
	return nil
}

var errNotJSON = errors.New("not JSON")

// parseJSON reads exactly one JSON value, which can be stored as it is; numbers keep their digits. name begins the path
// in an error.
func parseJSON(name, text string) (value any, err error) {
	if !json.Valid([]byte(text)) {
		return nil, errNotJSON
	}
	if err := jsonvalue.Check(name, []byte(text)); err != nil {
		return nil, usageErrorf("%w", err)
	}
	return value, jsonvalue.Decode([]byte(text), &value)
}

// readFile reads a file of at most most bytes; - is the standard input.
func readFile(what, name string, stdin io.Reader, most int64) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, usageErrorf("read the %s: %w", what, err)
		}
		defer func() { _ = file.Close() }() // it was only read
		stdin = file
	}
	raw, err := io.ReadAll(io.LimitReader(stdin, most+1))
	switch {
	case err != nil:
		return nil, usageErrorf("read %s: %w", name, err)
	case int64(len(raw)) > most:
		return nil,
			usageErrorf("%s is larger than %d bytes (%d MiB), the most that is read: pass large data by reference",
				name, most, most>>20)
	}
	return raw, nil
}
