package pack

import (
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/yamldoc"
)

// The types of package yamldoc in results.
type (
	// Place is a line and column of a file.
	Place = yamldoc.Place
	// Mistake is a mistake at a place.
	Mistake = yamldoc.Mistake
	// MistakesError lists mistakes.
	MistakesError = yamldoc.MistakesError
)

// Sort orders mistakes by file, line and column and drops duplicates.
func Sort(mistakes []Mistake) []Mistake { return yamldoc.Sort(mistakes) }

// Parse reads the policies of one file: YAML (and so JSON), one policy a document or a list below the key `policies`.
// Name is the file's name in places. The mistakes are in order.
func Parse(name string, content []byte) ([]Policy, []Mistake) {
	r := &reader{Reader: yamldoc.Reader{File: name}}
	for _, root := range r.Documents(content) {
		r.document(root)
	}
	return r.policies, Sort(r.Mistakes)
}

// reader collects the content of one file.
type reader struct {
	yamldoc.Reader
	policies   []Policy
	packUnread bool // the pack.yaml of the folder could not be read
	unused     []unusedKey
}

// document reads one YAML document with a policy or with a list of policies.
func (r *reader) document(node *yaml.Node) {
	switch {
	case yamldoc.IsNull(node):
		return
	case node.Kind == yaml.SequenceNode:
		r.Mistakef(r.At(node), "this is a list: write it below the key policies")
		return
	case yamldoc.Below(node, "policies") == node:
		r.policy(node)
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], yamldoc.Follow(node.Content[i+1])
		switch {
		case key.Value != "policies":
			r.Mistakef(r.At(key), "%s cannot stand beside policies: a document is a list of policies or one policy",
				yamldoc.KeyName(key))
		case yamldoc.IsNull(value):
		case value.Kind != yaml.SequenceNode:
			r.Mistakef(r.At(value), "policies must be a list")
		default:
			for _, item := range value.Content {
				r.policy(yamldoc.Follow(item))
			}
		}
	}
}
