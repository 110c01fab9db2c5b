package placement

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Field is a field of an action that restricts its workers.
type Field struct {
	Name   string // in files, answers and errors
	Column string // of action; also of execution, if it is its own
	Empty  any    // the value that requires nothing: nil for a text
	title  string // for readers; empty if another line shows it
	own    bool   // an execution's row may replace it
	of     func(*Spec) *json.RawMessage
	rule   func(*Spec) (rule, error)
}

// fields say all about the fields, besides the members of Spec and the columns in the database.
var fields = [...]Field{
	{
		Name: "runtime_version", Column: "runtime_version_constraint",
		of: func(s *Spec) *json.RawMessage { return new(json.RawMessage(s.Version)) }, rule: runtimeRule,
	},
	{
		Name: "required_worker_runtimes", Column: "required_worker_runtimes", Empty: map[string]any{}, title: "needs",
		of: func(s *Spec) *json.RawMessage { return &s.Required }, rule: requiredRule,
	},
	{
		Name: "worker_selector", Column: "worker_selector", Empty: map[string]any{}, title: "selector", own: true,
		of: func(s *Spec) *json.RawMessage { return &s.Selector }, rule: selectorRule,
	},
	{
		Name: "worker_tolerations", Column: "worker_tolerations", Empty: []any{}, title: "tolerations", own: true,
		of: func(s *Spec) *json.RawMessage { return &s.Tolerations }, rule: tolerationsRule,
	},
	{
		Name: "worker_affinity", Column: "worker_affinity", Empty: map[string]any{}, title: "affinity", own: true,
		of: func(s *Spec) *json.RawMessage { return &s.Affinity }, rule: affinityRule,
	},
}

// Fields are the fields of an action that restrict its workers.
func Fields() []Field { return slices.Clone(fields[:]) }

// Check reports what makes a value of the field invalid.
func (f Field) Check(value any) error {
	var spec Spec
	if text, ok := value.(string); ok {
		spec.Version = text
	} else {
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		*f.of(&spec) = raw
	}
	_, err := f.rule(&spec)
	return err
}

// Own are the fields that the row of an execution may have for itself, as JSON. Each replaces that of its action,
// unless it is empty or null; {} and [] clear it.
type Own struct {
	Selector    json.RawMessage `json:"worker_selector,omitempty"`
	Tolerations json.RawMessage `json:"worker_tolerations,omitempty"`
	Affinity    json.RawMessage `json:"worker_affinity,omitempty"`
}

// Spec are an action's requirements for workers: the members of attune_placement, a function of the database.
type Spec struct {
	// Runtimes are the name and the aliases of the action's runtime. Empty means that it needs none.
	Runtimes []string `json:"-"`
	// Version is the constraint on that runtime's version.
	Version  string          `json:"runtime_version,omitempty"`
	Required json.RawMessage `json:"required_worker_runtimes"`
	Own
}

// ReadSpec reads the answer of attune_placement.
func ReadSpec(answer []byte) (spec Spec) {
	_ = json.Unmarshal(answer, &spec) // the function writes these members only
	return spec
}

// ReadOwn reads the answer of attune_own_placement, nil for an execution without fields of its own.
func ReadOwn(answer []byte) (own Own) {
	if answer != nil {
		_ = json.Unmarshal(answer, &own) // the function writes these members only
	}
	return own
}

// Given drops the fields that are null.
func (o Own) Given() Own {
	spec := Spec{Own: o}
	for _, f := range fields {
		if raw := f.of(&spec); isUnset(*raw) {
			*raw = nil
		}
	}
	return spec.Own
}

// Shown are the fields that require something, each with its title. The version is shown with the runtime.
func (s *Spec) Shown() (shown [][2]string) {
	for _, f := range fields {
		if text := textOf(*f.of(s)); text != "" && f.title != "" {
			shown = append(shown, [2]string{f.title, text})
		}
	}
	return shown
}

// rule is what one field requires.
type rule interface {
	// unmet says how the worker breaks it.
	unmet(w *Worker) (rejection, bool)
}

// runtimeNeed is a runtime that a worker must have.
type runtimeNeed struct {
	names   []string // any of them
	version Constraint
}

// runtime is the action's own runtime, with its names; it needs none without a name.
type runtime runtimeNeed

// required are additional runtimes.
type required []runtimeNeed

func runtimeRule(s *Spec) (rule, error) {
	version, err := ParseConstraint(s.Version)
	return runtime{names: s.Runtimes, version: version}, err
}

func requiredRule(s *Spec) (rule, error) {
	var given map[string]string
	if err := decode(s.Required, &given, "an object of version constraints by runtime"); err != nil {
		return nil, err
	}
	var list required
	for _, name := range slices.Sorted(maps.Keys(given)) {
		one := runtimeNeed{names: []string{NormalizeRuntime(name)}}
		if one.names[0] == "" {
			return nil, errors.New("a runtime has no name")
		}
		var err error
		if one.version, err = ParseConstraint(given[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, one)
	}
	return list, nil
}

func (r runtime) unmet(w *Worker) (rejection, bool) {
	if len(r.names) == 0 || runtimeNeed(r).met(w) {
		return rejection{}, false
	}
	return lacks("runtime " + join(strings.Join(r.names, " or "), r.version)), true
}

func (r required) unmet(w *Worker) (rejection, bool) {
	for _, need := range r {
		if !need.met(w) {
			return lacks("the required runtime " + join(need.names[0], need.version)), true
		}
	}
	return rejection{}, false
}

// met reports whether the worker has the runtime under any of its names, in an allowed version.
func (n runtimeNeed) met(w *Worker) bool {
	has := func(name string) bool { return slices.Contains(w.Runtimes, name) }
	admitted := func(name string) bool { return slices.ContainsFunc(w.Versions[name], n.version.Admits) }
	return slices.ContainsFunc(n.names, has) && (n.version.Any() || slices.ContainsFunc(n.names, admitted))
}

func join(name string, version Constraint) string {
	if version.Any() {
		return name
	}
	return name + " " + version.String()
}

// selector are required labels.
type selector []label

// label is a required label with its value.
type label struct{ key, value string }

func selectorRule(s *Spec) (rule, error) {
	var given map[string]string
	if err := decode(s.Selector, &given, "an object of labels with strings as values"); err != nil {
		return nil, err
	}
	return labels(given)
}

func labels(given map[string]string) (selector, error) {
	var list selector
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if strings.TrimSpace(key) == "" {
			return nil, errors.New("a label has no name")
		}
		if strings.TrimSpace(given[key]) == "" {
			return nil, fmt.Errorf("the label %s has no value", key)
		}
		list = append(list, label{key, given[key]})
	}
	return list, nil
}

func (s selector) unmet(w *Worker) (rejection, bool) {
	var missing []string
	for _, l := range s {
		if !l.on(w) {
			missing = append(missing, l.key+"="+l.value)
		}
	}
	switch len(missing) {
	case 0:
		return rejection{}, false
	case 1:
		return lacks("the label " + missing[0]), true
	default:
		return lacks("the labels " + strings.Join(missing, ", ")), true
	}
}

func (l label) on(w *Worker) bool {
	value, ok := w.Labels[l.key]
	return ok && value == l.value
}

// decode reads a JSON field; an empty one or null leaves into unchanged.
func decode(raw []byte, into any, shape string) error {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return nil
	}
	err := json.Unmarshal(raw, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON: %w", err)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("it must be %s: %s is %s", shape, kind.Field, article(kind.Value))
	case errors.As(err, &kind):
		return fmt.Errorf("it must be %s, not %s", shape, article(kind.Value))
	default:
		return fmt.Errorf("it must be %s: %w", shape, err)
	}
}

func article(kind string) string {
	if strings.HasPrefix(kind, "array") || strings.HasPrefix(kind, "object") {
		return "an " + kind
	}
	return "a " + kind
}
