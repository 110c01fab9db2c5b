package deliver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/yamldoc"
)

// The ways and formats in which an action can ask for its parameters.
const (
	DeliveryStdin = "stdin"
	DeliveryFile  = "file"

	FormatJSON   = "json"
	FormatDotenv = "dotenv"
	FormatYAML   = "yaml"
)

// Encode writes the parameters, a JSON object, in the format. Names decides about the names in dotenv, which shells
// source.
func Encode(format string, params json.RawMessage, names Names) ([]byte, error) {
	switch format {
	case FormatJSON, "":
		if jsonvalue.None(params) {
			return []byte("{}\n"), nil
		}
		return append(bytes.Clone(compact(params)), '\n'), nil
	case FormatDotenv:
		return dotenv(params, names)
	case FormatYAML:
		return toYAML(params)
	}
	return nil, fmt.Errorf("parameter format %q is unknown: use json, dotenv or yaml", format)
}

// File writes the content to a new file in dir that only its owner can read, and returns its path and a function that
// removes it. An empty dir is the folder for temporary files.
func File(dir string, content []byte) (path string, remove func(), err error) {
	file, err := os.CreateTemp(dir, "attune-params-*") // created with mode 0600
	if err != nil {
		return "", nil, fmt.Errorf("create parameter file: %w", err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return "", nil, fmt.Errorf("write parameter file: %w", err)
	}
	return file.Name(), func() { _ = os.Remove(file.Name()) }, nil
}

// dotenv writes one name='value' per parameter, sorted by line. Fields of declared objects are parameters of their own,
// named with dots; other objects and lists are compact JSON, null is empty.
func dotenv(params json.RawMessage, names Names) ([]byte, error) {
	fields, err := object(params)
	if err != nil {
		return nil, fmt.Errorf("encode parameters as dotenv: %w", err)
	}
	as, err := names.lines(slices.Sorted(maps.Keys(fields)))
	if err != nil {
		return nil, err
	}
	var lines []string
	for name, value := range fields {
		if !names.declared(name) {
			lines = append(lines, as[name]+"="+quoted(scalar(value)))
		} else if lines, err = flatten(lines, as[name], value); err != nil {
			return nil, fmt.Errorf("encode parameters as dotenv: %w", err)
		}
	}
	slices.Sort(lines)
	return []byte(strings.Join(append(lines, ""), "\n")), nil
}

func flatten(lines []string, name string, value json.RawMessage) ([]string, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) {
		return append(lines, name+"="+quoted(scalar(value))), nil
	}
	fields, err := object(value)
	for field, value := range fields {
		if err == nil {
			lines, err = flatten(lines, name+"."+lineName(field), value)
		}
	}
	return lines, err
}

// quoted makes one word of a POSIX shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// scalar writes one value for a line, without the character U+0000, which no shell accepts.
func scalar(raw json.RawMessage) string {
	var text string
	if jsonvalue.None(raw) {
		return ""
	}
	if json.Unmarshal(raw, &text) == nil {
		return strings.ReplaceAll(text, "\x00", "")
	}
	return string(compact(raw))
}

func compact(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return raw
	}
	return out.Bytes()
}

func toYAML(params json.RawMessage) ([]byte, error) {
	if jsonvalue.None(params) {
		params = json.RawMessage("{}")
	}
	document, err := yamldoc.JSON(params)
	if err != nil {
		return nil, fmt.Errorf("encode parameters as yaml: %w", err)
	}
	yamldoc.Block(document)
	out, err := yaml.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encode parameters as yaml: %w", err)
	}
	return out, nil
}

func object(raw json.RawMessage) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if jsonvalue.None(raw) {
		return fields, nil
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	return fields, nil
}
