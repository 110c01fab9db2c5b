package pack

import (
	"encoding/json"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/bounds"
)

// maxValues bounds how many values a file holds once its aliases are written out: a
// short file can otherwise stand for any number of them.
const maxValues = 200_000

// json is a value as it is stored. It reports what cannot be stored.
func (r *reader) json(node *yaml.Node) (any, bool) {
	before := len(r.mistakes)
	value := r.jsonValue(node, 0)
	return value, len(r.mistakes) == before
}

func (r *reader) jsonValue(node *yaml.Node, depth int) any {
	node = follow(node)
	r.values++
	switch {
	case r.values == maxValues+1:
		r.mistakef(r.at(node), "the file holds more than %d values", maxValues)
		return nil
	case r.values > maxValues:
		return nil
	case depth >= bounds.Depth && node.Kind != yaml.ScalarNode:
		r.mistakef(r.at(node), "nested %d levels deep; at most %d", depth+1, bounds.Depth)
		return nil
	}
	switch node.Kind {
	case yaml.MappingNode:
		object := map[string]any{}
		for _, f := range r.pairs(node, map[*yaml.Node]bool{}) {
			if f.key.Kind != yaml.ScalarNode || strings.ContainsRune(f.key.Value, 0) {
				r.mistakef(r.at(f.key), "a key must be a word")
				continue
			}
			if _, twice := object[f.key.Value]; twice {
				r.mistakef(r.at(f.key), "%s is given twice", word(f.key))
			}
			object[f.key.Value] = r.jsonValue(f.value, depth+1)
		}
		return object
	case yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, item := range node.Content {
			list[i] = r.jsonValue(item, depth+1)
		}
		return list
	default:
		return r.jsonScalar(node)
	}
}

func (r *reader) jsonScalar(node *yaml.Node) any {
	switch node.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var yes bool
		if node.Decode(&yes) == nil {
			return yes
		}
	case "!!int":
		var number int64
		if node.Decode(&number) == nil {
			return number
		}
		if _, err := json.Marshal(json.Number(node.Value)); err == nil {
			return json.Number(node.Value)
		}
	case "!!float":
		var number float64
		if node.Decode(&number) == nil && !math.IsNaN(number) && !math.IsInf(number, 0) {
			return number
		}
		r.mistakef(r.at(node), "%s is no number that can be stored", show(node))
		return nil
	}
	if strings.ContainsRune(node.Value, 0) {
		r.mistakef(r.at(node), "this holds a character that cannot be stored")
	}
	return node.Value
}
