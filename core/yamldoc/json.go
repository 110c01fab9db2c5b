package yamldoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/phrase"
)

// BOM is the mark that some editors write at the beginning of a file. It is no part of its content.
const BOM = "\uFEFF"

// JSON reads JSON into nodes, with its texts in quotes and its numbers as written. The error of a value that cannot be
// stored is a *jsonvalue.Error.
func JSON(raw []byte) (*yaml.Node, error) {
	if err := jsonvalue.Check("", raw); err != nil {
		return nil, err
	}
	return Nodes(raw)
}

// Nodes is JSON of any JSON, also of what cannot be stored.
func Nodes(raw []byte) (*yaml.Node, error) {
	d := jsonDocument{raw: raw, decoder: json.NewDecoder(bytes.NewReader(raw)), line: 1}
	d.decoder.UseNumber()
	node, err := d.next()
	if err != nil {
		return nil, err
	}
	if _, err := d.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the JSON value has trailing data")
	}
	return node, nil
}

// Write writes a value as YAML, with the names and the order of its JSON.
func Write(value any) (string, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	document, err := Nodes(raw)
	if err != nil {
		return "", err
	}
	Block(document)
	var out strings.Builder
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err = errors.Join(encoder.Encode(document), encoder.Close())
	return out.String(), err
}

// Block drops the styles of JSON, for YAML in lines. Texts keep their quotes if they would be read as another type,
// such as yes for true, or have characters that steer a terminal.
func Block(node *yaml.Node) {
	if node.Kind != yaml.ScalarNode && len(node.Content) > 0 || !needsQuotes(node) {
		node.Style = 0
	}
	for _, child := range node.Content {
		Block(child)
	}
}

func needsQuotes(node *yaml.Node) bool {
	if node.Kind != yaml.ScalarNode || node.Style != yaml.DoubleQuotedStyle ||
		strings.ContainsFunc(node.Value, steers) {
		return true
	}
	out, err := yaml.Marshal(node.Value)
	return err != nil || strings.HasPrefix(string(out), `"`) || strings.HasPrefix(string(out), "'")
}

func steers(r rune) bool { return phrase.Steers(r) && r != '\n' && r != '\t' }

type jsonDocument struct {
	raw     []byte
	decoder *json.Decoder
	at      int // the offset up to which lines are counted
	line    int
	begin   int // the offset of the line
}

func (d *jsonDocument) next() (*yaml.Node, error) {
	at := int(d.decoder.InputOffset())
	for at < len(d.raw) && bytes.IndexByte([]byte(" \t\r\n,:"), d.raw[at]) >= 0 {
		at++
	}
	for ; d.at < at; d.at++ {
		if d.raw[d.at] == '\n' {
			d.line, d.begin = d.line+1, d.at+1
		}
	}
	token, err := d.decoder.Token()
	if err != nil {
		return nil, err
	}
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: d.line, Column: at - d.begin + 1}
	switch token := token.(type) {
	case json.Delim:
		node.Kind, node.Tag, node.Style = yaml.SequenceNode, "!!seq", yaml.FlowStyle
		if token == '{' {
			node.Kind, node.Tag = yaml.MappingNode, "!!map"
		}
		for d.decoder.More() {
			item, err := d.next()
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, item)
		}
		_, err = d.decoder.Token()
	case string:
		node.Tag, node.Style, node.Value = "!!str", yaml.DoubleQuotedStyle, token
	case bool:
		node.Value = strconv.FormatBool(token)
	case json.Number:
		node.Value = token.String()
	default:
		node.Value = "null"
	}
	return node, err
}
