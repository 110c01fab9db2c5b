package workflow

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/expr"
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

// MaxSize is the largest file of a definition, in bytes.
const MaxSize = 1 << 20

// Parse reads the definition of a file: YAML, and so JSON. Name is the file's name in places.
//
// Warnings are about keys without effect, or with another effect than their author expects. A definition with mistakes
// must not run; it is nil if the file has none.
func Parse(name string, content []byte) (definition *Definition, mistakes, warnings []Mistake) {
	r := &reader{Reader: yamldoc.Reader{File: name, What: "workflow", Depth: maxDepth}}
	if len(content) > MaxSize {
		r.Mistakef(Place{File: name}, "the file has %d bytes; a workflow may have %d", len(content), MaxSize)
		return nil, r.Mistakes, nil
	}
	roots := r.Documents(content)
	switch {
	case len(roots) == 0 && len(r.Mistakes) == 0:
		r.Mistakef(Place{File: name}, "the file is empty: a workflow has at least version and tasks")
		fallthrough
	case len(roots) == 0:
		return nil, r.Mistakes, nil
	case len(roots) > 1:
		r.Mistakef(r.At(roots[1]), "there is a second document: a file holds one workflow")
	}
	r.lines = strings.Split(string(content), "\n")
	definition = r.definition(roots[0])
	return definition, yamldoc.Sort(r.Mistakes), yamldoc.Sort(r.Warnings)
}

// ParseJSON reads a stored definition, of Definition.JSON or of another service in workflow_definition.definition. The
// error is a *MistakesError if the definition cannot run.
func ParseJSON(raw []byte) (*Definition, error) {
	node, err := yamldoc.JSON(raw)
	if err != nil {
		return nil, fmt.Errorf("read a workflow's definition: %w", err)
	}
	r := &reader{Reader: yamldoc.Reader{What: "workflow", Depth: maxDepth, Stored: true}}
	definition := r.definition(node)
	if len(r.Mistakes) > 0 {
		return nil, &MistakesError{Mistakes: yamldoc.Sort(r.Mistakes)}
	}
	return definition, nil
}

// reader collects the content of a definition. Mistakes and warnings begin with the name of their task.
type reader struct {
	yamldoc.Reader
	lines []string // of the file; none for a stored definition

	rules     errorRules
	task      *Task           // the current one
	variables map[string]bool // of vars and publish
	uses      []use           // names in expressions, checked when all variables are known
	ended     bool            // the current expressions see the result of the task
	reads     []Read
	targets   []target       // names of tasks in transitions
	listed    map[*Task]bool // tasks with an unreadable with_items
	noGraph   bool           // some transitions are unreadable
}

// errorf reports an error that is only a warning in a lenient workflow.
func (r *reader) errorf(at Place, format string, args ...any) {
	if r.rules.refuse {
		r.Mistakef(at, format, args...)
		return
	}
	r.Warnf(at, format, args...)
}

// definitionFile adds the keys that need their own conversion.
type definitionFile struct {
	Definition
	Vars      yamldoc.Field `yaml:"vars"`
	Tasks     yamldoc.Field `yaml:"tasks"`
	OutputMap yamldoc.Field `yaml:"output_map"`
}

func (r *reader) definition(node *yaml.Node) *Definition {
	node = yamldoc.Follow(node)
	if node.Kind != yaml.MappingNode {
		r.Mistakef(r.At(node), "this is not a workflow: write a mapping with version, tasks and so on")
		return nil
	}
	r.variables, r.listed = map[string]bool{}, map[*Task]bool{}
	file := &definitionFile{Definition: Definition{Cancellation: AllowFinish}}
	given, _ := r.mapping(node, file, "", warnUnknown)
	r.Fill(given, file)
	d := &file.Definition
	d.Parameters, d.Output = withNumbers(d.Parameters), withNumbers(d.Output)
	r.rules = d.onError()
	if file.Vars.Given() {
		r.vars(d, file.Vars)
	}
	if file.Tasks.Given() {
		d.Tasks = r.tasks(file.Tasks, nil)
	}
	if file.OutputMap.Given() {
		d.OutputMap = r.assignments(file.OutputMap)
	}
	if !given["version"].Given() {
		r.Mistakef(r.At(node), "version is missing; write version: \"1.0.0\"")
	}
	if !file.Tasks.Given() {
		r.Mistakef(r.At(node), "tasks are missing: a workflow has at least one")
	}
	d.link()
	r.graph(d)
	r.names(d)
	r.resolve(d)
	d.Reads = r.reads
	return d
}

// withNumbers converts numbers to those of expressions.
func withNumbers(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	object, _ = expr.Value(object).(map[string]any)
	return object
}

// vars reads the initial variables.
func (r *reader) vars(d *Definition, f yamldoc.Field) {
	d.Vars = map[string]any{}
	mappings := []*yaml.Node{f.Value}
	if f.Value.Kind == yaml.SequenceNode { // a list of mappings, as in publish
		mappings = f.Value.Content
	}
	for _, mapping := range mappings {
		if mapping = yamldoc.Follow(mapping); mapping.Kind != yaml.MappingNode {
			r.Mistakef(r.At(mapping), "vars must be a mapping of names and values")
			continue
		}
		for _, pair := range r.Pairs(mapping) {
			name := pair.Key.Value
			if !r.variable(pair.Key) {
				continue
			}
			if _, twice := d.Vars[name]; twice {
				r.Mistakef(r.At(pair.Key), "vars gives %s twice", name)
			}
			d.Vars[name] = expr.Value(r.Value(pair.Value))
			if value, err := NewValue(d.Vars[name]); err != nil || !value.Plain() {
				r.Warnf(r.At(pair.Value), "vars are taken as they stand: the template in %s is not evaluated", name)
			}
		}
	}
}
