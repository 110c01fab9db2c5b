package workflow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/config"
)

// MaxSize is how large a file with a definition may be.
const MaxSize = 1 << 20

// Parse reads a definition as it is written in a file: YAML, and so JSON. Name is
// the file's name in the places.
//
// It returns what it could make of the file, all mistakes, and warnings: what is
// not wrong, but has no effect or not the one that its author will expect. With a
// mistake the definition is not to be run; it is nil if the file holds none.
func Parse(name string, content []byte) (definition *Definition, mistakes, warnings []Mistake) {
	r := &reader{file: name}
	if len(content) > MaxSize {
		r.mistakef(Place{File: name}, "the file has %d bytes; a workflow may have %d", len(content), MaxSize)
		return nil, r.mistakes, nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		r.mistakef(Place{File: name}, "the file is empty: a workflow has at least version and tasks")
		return nil, r.mistakes, nil
	case err != nil:
		return nil, []Mistake{r.syntaxMistake(content, err)}, nil
	}
	if err := decoder.Decode(&more); err == nil && len(more.Content) > 0 {
		r.mistakef(r.at(more.Content[0]), "there is a second document: a file holds one workflow")
	} else if err != nil && !errors.Is(err, io.EOF) {
		r.mistakes = append(r.mistakes, r.syntaxMistake(content, err))
	}
	if len(document.Content) == 0 {
		r.mistakef(Place{File: name}, "the file is empty: a workflow has at least version and tasks")
		return nil, r.mistakes, nil
	}
	r.lines = strings.Split(string(content), "\n")
	definition = r.definition(document.Content[0])
	return definition, sorted(r.mistakes), sorted(r.warnings)
}

// ParseJSON reads a definition as it is kept: what Definition.JSON gives, and what
// others have written to workflow_definition.definition. The error is a
// *MistakesError if it cannot be run.
func ParseJSON(raw []byte) (*Definition, error) {
	node, err := nodeOf(raw)
	if err != nil {
		return nil, fmt.Errorf("read a workflow's definition: %w", err)
	}
	r := &reader{stored: true}
	definition := r.definition(node)
	if len(r.mistakes) > 0 {
		return nil, &MistakesError{sorted(r.mistakes)}
	}
	return definition, nil
}

// reader collects what a definition says.
type reader struct {
	file     string
	lines    []string // of the file; none for what is stored
	stored   bool
	mistakes []Mistake
	warnings []Mistake
	nodes    int    // values that were read, aliases counted each time
	inside   string // which task the next mistakes are about, for their texts

	rules     errorRules      // what an error in an expression leads to
	templates bool            // texts that are read now may have templates
	task      *Task           // that is read now
	variables map[string]bool // that vars and publish give
	uses      []use           // names in expressions, checked when all variables are known
	ended     bool            // expressions that are read now see the result of the task
	reads     []Read          // of parameters and results
	leads     []lead          // names of tasks that something leads to
	meant     map[string]bool // keys that the misspelt ones of the last mapping resemble
	listed    map[*Task]bool  // tasks whose with_items cannot be read
	noGraph   bool            // what leads where cannot be read
}

func (r *reader) at(node *yaml.Node) Place { return Place{r.file, node.Line, node.Column} }

func (r *reader) mistakef(at Place, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{at, r.inside + fmt.Sprintf(format, args...)})
}

// errorf reports an error that a lenient workflow lives with.
func (r *reader) errorf(at Place, format string, args ...any) {
	if r.rules.refuse {
		r.mistakef(at, format, args...)
		return
	}
	r.warnf(at, format, args...)
}

func (r *reader) warnf(at Place, format string, args ...any) {
	r.warnings = append(r.warnings, Mistake{at, r.inside + fmt.Sprintf(format, args...)})
}

// syntaxMistake turns an error of the YAML parser into a mistake.
func (r *reader) syntaxMistake(content []byte, err error) Mistake {
	line, text := config.YAMLMistake(content, err)
	return Mistake{Place{File: r.file, Line: line}, "this is not YAML: " + text}
}

var definitionKeys = []string{
	"ref", "label", "description", "version", "parameters", "output", "vars", "tasks", "output_map", "tags", "cancellation_policy",
	"strict",
}

// definition reads the whole.
func (r *reader) definition(node *yaml.Node) *Definition {
	node = follow(node)
	if node.Kind != yaml.MappingNode {
		r.mistakef(r.at(node), "this is not a workflow: write a mapping with version, tasks and so on")
		return nil
	}
	d := &Definition{Cancellation: AllowFinish}
	r.variables = map[string]bool{}
	given := map[string]bool{}
	fields := r.fields(node, definitionKeys, "", warnUnknown)
	for _, f := range fields { // the other keys are read by its rules
		if f.name == "strict" && !isNull(f.value) {
			r.strict(d, f)
		}
	}
	r.rules = d.onError()
	for _, f := range fields {
		if isNull(f.value) {
			continue
		}
		given[f.name] = true
		r.top(d, f)
	}
	if !given["version"] {
		r.mistakef(r.at(node), "version is missing; write version: \"1.0.0\"")
	}
	if !given["tasks"] {
		r.mistakef(r.at(node), "tasks are missing: a workflow has at least one")
	}
	d.link()
	r.graph(d)
	r.names(d)
	r.resolve(d)
	d.Reads = r.reads
	return d
}

// top reads one key of the upper level.
func (r *reader) top(d *Definition, f field) {
	switch f.name {
	case "ref":
		r.short(f, &d.Ref, 0, 255)
	case "label":
		r.short(f, &d.Label, 0, 255)
	case "description":
		r.text(f, &d.Description)
	case "version":
		r.short(f, &d.Version, 1, 50)
	case "parameters":
		r.object(f, &d.Parameters)
	case "output":
		r.object(f, &d.Output)
	case "vars":
		r.vars(d, f)
	case "tags":
		r.texts(f, &d.Tags)
	case "tasks":
		d.Tasks = r.tasks(f, nil)
	case "output_map":
		d.OutputMap = r.assignments(f)
	case "cancellation_policy":
		oneOf(r, f, &d.Cancellation, AllowFinish, CancelRunning)
	}
}

func (r *reader) strict(d *Definition, f field) {
	if f.value.Kind != yaml.ScalarNode || f.value.ShortTag() != "!!bool" || f.value.Decode(&d.Strict) != nil {
		r.mistakef(r.at(f.value), "strict is %s; it must be true or false", show(f.value))
	}
}

// vars reads the variables that a workflow begins with.
func (r *reader) vars(d *Definition, f field) {
	d.Vars = map[string]any{}
	mappings := []*yaml.Node{f.value}
	if f.value.Kind == yaml.SequenceNode { // a list of mappings, as in publish
		mappings = f.value.Content
	}
	for _, mapping := range mappings {
		if mapping = follow(mapping); mapping.Kind != yaml.MappingNode {
			r.mistakef(r.at(mapping), "vars must be a mapping of names and values")
			continue
		}
		for _, pair := range r.pairs(mapping, map[*yaml.Node]bool{}) {
			name := pair.key.Value
			if !r.variable(pair.key) {
				continue
			}
			if _, twice := d.Vars[name]; twice {
				r.mistakef(r.at(pair.key), "vars gives %s twice", name)
			}
			d.Vars[name] = r.value(pair.value, 0)
			if value, err := NewValue(d.Vars[name]); err != nil || !value.Plain() {
				r.warnf(r.at(pair.value), "vars are taken as they stand: the template in %s is not evaluated", name)
			}
		}
	}
}
