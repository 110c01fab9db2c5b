package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// nodeOf reads JSON into YAML nodes without places.
func nodeOf(raw []byte) (*yaml.Node, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	node, err := nextNode(decoder, 0)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("the JSON value has trailing data")
	}
	return node, nil
}

// maxJSONDepth bounds the recursion; maxDepth bounds values.
const maxJSONDepth = 2 * maxDepth

func nextNode(decoder *json.Decoder, depth int) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxJSONDepth)
	}
	scalar := func(tag, value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value} }
	switch token := token.(type) {
	case json.Delim:
		return nextNodes(decoder, token, depth)
	case string:
		return scalar("!!str", token), nil
	case bool:
		return scalar("!!bool", strconv.FormatBool(token)), nil
	case json.Number:
		if strings.ContainsAny(token.String(), ".eE") {
			return scalar("!!float", token.String()), nil
		}
		return scalar("!!int", token.String()), nil
	default:
		return scalar("!!null", "null"), nil
	}
}

func nextNodes(decoder *json.Decoder, open json.Delim, depth int) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if open == '{' {
		node.Kind, node.Tag = yaml.MappingNode, "!!map"
	}
	for decoder.More() {
		item, err := nextNode(decoder, depth+1)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, item)
	}
	_, err := decoder.Token()
	return node, err
}
