package workflow

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/yamldoc"
)

// legacyKeys are the keys of the older form, in the order of their transitions.
var legacyKeys = []string{"on_success", "on_failure", "on_complete", "on_timeout", "decision", "publish"}

// transitions reads next, or the older keys.
func (r *reader) transitions(t *Task, given yamldoc.Fields) {
	r.ended = true
	defer func() { r.ended = false }()
	next, ok := given["next"]
	if ok && next.Value.Kind != yaml.SequenceNode {
		r.Mistakef(r.At(next.Value), "next must be a list of transitions")
		r.noGraph = true
		return
	}
	if ok {
		for _, item := range next.Value.Content {
			r.transition(t, yamldoc.Follow(item))
		}
	}
	if ok && len(next.Value.Content) > 0 {
		for _, key := range legacyKeys {
			if f, both := given[key]; both && !empty(f.Value) {
				r.Warnf(r.At(f.Key), "%s is ignored beside next", key)
			}
		}
		return
	}
	r.legacy(t, given)
}

func empty(node *yaml.Node) bool {
	return yamldoc.IsNull(node) || node.Kind != yaml.ScalarNode && len(node.Content) == 0
}

func (r *reader) transition(t *Task, node *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		r.Mistakef(r.At(node), "this is not a transition: write a mapping with when, publish and do")
		r.noGraph = true
		return
	}
	var file struct {
		When    yamldoc.Field `yaml:"when"`
		Publish yamldoc.Field `yaml:"publish"`
		Do      yamldoc.Field `yaml:"do"`
		Chart   yamldoc.Field `yaml:"__chart_meta__"`
	}
	given, meant := r.mapping(node, &file, " of a transition", refuseUnknown)
	r.Fill(given, &file)
	transition := Transition{At: r.At(node)}
	if file.When.Given() {
		transition.When = r.condition(file.When)
	}
	if file.Publish.Given() {
		transition.Publish = r.publish(file.Publish)
	}
	if file.Do.Given() {
		transition.Do = r.targetsOf(file.Do)
	}
	if file.Chart.Given() {
		transition.Chart = expr.Value(r.Value(file.Chart.Value))
	}
	r.noGraph = r.noGraph || meant["do"]
	t.Next = append(t.Next, transition)
}

// targetsOf reads a list of names of tasks, or a single name.
func (r *reader) targetsOf(f yamldoc.Field) []string {
	nodes := []*yaml.Node{f.Value}
	if f.Value.Kind == yaml.SequenceNode {
		nodes = f.Value.Content
	}
	var list []string
	for _, node := range nodes {
		node = yamldoc.Follow(node)
		if node.Kind != yaml.ScalarNode || yamldoc.IsNull(node) {
			r.Mistakef(r.At(node), "%s names tasks; conditions stand in next, with when and do", f.Key.Value)
			r.noGraph = true
			continue
		}
		list = append(list, node.Value)
		r.targets = append(r.targets, target{inside: r.About, name: node.Value, at: r.At(node)})
	}
	return list
}

// target is the name of a task in a transition.
type target struct {
	inside, name string
	at           Place
}

// publish reads a list of names with values, or of single names, which get the whole result.
func (r *reader) publish(f yamldoc.Field) []Assignment {
	if f.Value.Kind == yaml.MappingNode {
		return r.assigned(f.Value, nil)
	}
	if f.Value.Kind != yaml.SequenceNode {
		r.Mistakef(r.At(f.Value), "publish must be a list of names with values")
		return nil
	}
	var list []Assignment
	for _, item := range f.Value.Content {
		item = yamldoc.Follow(item)
		switch {
		case item.Kind == yaml.MappingNode:
			list = r.assigned(item, list)
		case item.Kind != yaml.ScalarNode || yamldoc.IsNull(item):
			r.Mistakef(r.At(item), "publish must be a list of names with values")
		case r.variable(item):
			list = r.assign(list, Assignment{Name: item.Value, Value: must(NewValue("{{ result() }}"))}, r.At(item))
		}
	}
	return list
}

// must returns the value of a constant expression.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (r *reader) assigned(node *yaml.Node, list []Assignment) []Assignment {
	for _, pair := range r.Pairs(node) {
		if !r.variable(pair.Key) {
			continue
		}
		if value := r.template(pair); value != nil {
			list = r.assign(list, Assignment{Name: pair.Key.Value, Value: value}, r.At(pair.Key))
		}
	}
	return list
}

// assign adds an assignment. A second one of the same name replaces the first.
func (r *reader) assign(list []Assignment, a Assignment, at Place) []Assignment {
	for i := range list {
		if list[i].Name == a.Name {
			r.Warnf(at, "%s is published twice by one transition; the last value counts", a.Name)
			list[i].Value = a.Value
			return list
		}
	}
	return append(list, a)
}

// assignments reads the output map.
func (r *reader) assignments(f yamldoc.Field) []Assignment {
	if f.Value.Kind != yaml.MappingNode {
		r.Mistakef(r.At(f.Value), "%s must be a mapping of names and values", f.Key.Value)
		return nil
	}
	var list []Assignment
	for _, pair := range r.Pairs(f.Value) {
		for _, a := range list {
			if a.Name == pair.Key.Value {
				r.Mistakef(r.At(pair.Key), "%s gives %s twice", f.Key.Value, yamldoc.KeyName(pair.Key))
			}
		}
		if value := r.template(pair); value != nil {
			list = append(list, Assignment{Name: pair.Key.Value, Value: value})
		}
	}
	return list
}

// legacyConditions are the conditions of the older keys.
var legacyConditions = map[string]string{
	"on_success": "{{ succeeded() }}", "on_failure": "{{ failed() }}", "on_complete": "",
	"on_timeout": "{{ timed_out() }}",
}

// legacy converts the older keys to transitions.
func (r *reader) legacy(t *Task, given yamldoc.Fields) {
	for _, key := range legacyKeys {
		f, ok := given[key]
		switch {
		case !ok:
		case key == "decision":
			r.decision(t, f)
		case key == "publish":
			r.legacyPublish(t, f)
		default:
			transition := Transition{At: r.At(f.Key), Do: r.targetsOf(f)}
			if source := legacyConditions[key]; source != "" {
				transition.When = must(NewCondition(source))
			}
			t.Next = append(t.Next, transition)
		}
	}
}

// decision converts each branch to a transition. A default branch without a condition fires if no other branch does.
func (r *reader) decision(t *Task, f yamldoc.Field) {
	if f.Value.Kind != yaml.SequenceNode {
		r.Mistakef(r.At(f.Value), "decision must be a list of branches with when and next")
		return
	}
	var others []string
	fallback := -1
	for _, item := range f.Value.Content {
		item = yamldoc.Follow(item)
		if item.Kind != yaml.MappingNode {
			r.Mistakef(r.At(item), "decision must be a list of branches with when and next")
			continue
		}
		transition, conditional, isDefault := r.branch(item)
		switch {
		case transition.When != nil:
			others = append(others, "("+transition.When.Expression()+")")
		case conditional: // its condition is unreadable
		case !isDefault:
			r.Mistakef(r.At(item), "a branch of decision has neither when nor default")
		case fallback >= 0:
			r.Mistakef(r.At(item), "decision has two default branches")
		default:
			fallback = len(t.Next)
		}
		t.Next = append(t.Next, transition)
	}
	if fallback >= 0 && len(others) > 0 {
		condition, err := NewCondition("{{ not (" + strings.Join(others, " or ") + ") }}")
		if err != nil {
			r.errorf(t.Next[fallback].At, "the default branch has no condition, since those of the others are unreadable: %v", err)
		}
		t.Next[fallback].When = condition
	}
}

func (r *reader) branch(node *yaml.Node) (transition Transition, conditional, isDefault bool) {
	var file struct {
		When    yamldoc.Field `yaml:"when"`
		Next    yamldoc.Field `yaml:"next"`
		Default yamldoc.Field `yaml:"default"`
	}
	given, _ := r.mapping(node, &file, " of a branch", refuseUnknown)
	r.Fill(given, &file)
	transition.At = r.At(node)
	if conditional = file.When.Given(); conditional {
		transition.When = r.condition(file.When)
	}
	if file.Next.Given() {
		transition.Do = r.targetsOf(file.Next)
	}
	if f := file.Default; f.Given() { // true, or the next task
		if isDefault = f.Value.Value == "true"; f.Value.Kind == yaml.ScalarNode && f.Value.ShortTag() == "!!str" {
			isDefault, transition.Do = true, r.targetsOf(f)
		}
	}
	if len(transition.Do) == 0 {
		r.Mistakef(r.At(node), "a branch of decision has no next")
	}
	return transition, conditional, isDefault
}

// legacyPublish adds the publish of a task to its transition for success, else to its first one, else to a new one.
func (r *reader) legacyPublish(t *Task, f yamldoc.Field) {
	list := r.publish(f)
	if len(list) == 0 {
		return
	}
	if len(t.Next) == 0 {
		t.Next = append(t.Next, Transition{At: r.At(f.Key), When: must(NewCondition("{{ succeeded() }}"))})
	}
	at := slices.IndexFunc(t.Next, func(transition Transition) bool {
		return transition.When != nil && strings.Contains(transition.When.Source(), "succeeded()")
	})
	t.Next[max(at, 0)].Publish = list
}
