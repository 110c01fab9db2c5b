package workflow

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// legacyKeys are the keys of the older form, in the order in which they become
// transitions.
var legacyKeys = []string{"on_success", "on_failure", "on_complete", "on_timeout", "decision", "publish"}

// transitions reads what follows a task: next, or the older keys.
func (r *reader) transitions(t *Task, given map[string]field) {
	r.ended = true
	defer func() { r.ended = false }()
	next, ok := given["next"]
	if ok && next.value.Kind != yaml.SequenceNode {
		r.mistakef(r.at(next.value), "next must be a list of transitions")
		r.noGraph = true
		return
	}
	if ok {
		for _, item := range next.value.Content {
			r.transition(t, follow(item))
		}
	}
	if ok && len(next.value.Content) > 0 {
		for _, key := range legacyKeys {
			if f, both := given[key]; both && !empty(f.value) {
				r.warnf(r.at(f.key), "%s is ignored beside next", key)
			}
		}
		return
	}
	r.legacy(t, given)
}

func empty(node *yaml.Node) bool {
	return isNull(node) || node.Kind != yaml.ScalarNode && len(node.Content) == 0
}

func (r *reader) transition(t *Task, node *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		r.mistakef(r.at(node), "this is not a transition: write a mapping with when, publish and do")
		r.noGraph = true
		return
	}
	transition := Transition{At: r.at(node)}
	fields := r.fields(node, []string{"when", "publish", "do", chartKey}, " of a transition", refuseUnknown)
	meant := r.meant
	for _, f := range fields {
		if isNull(f.value) {
			continue
		}
		switch f.name {
		case "when":
			transition.When = r.condition(f)
		case "publish":
			transition.Publish = r.publish(f)
		case "do":
			transition.Do = r.targets(f)
		case chartKey:
			transition.Chart = r.value(f.value, 0)
		}
	}
	r.noGraph = r.noGraph || meant["do"]
	t.Next = append(t.Next, transition)
}

// targets reads the names of tasks: a list, or one alone.
func (r *reader) targets(f field) []string {
	nodes := []*yaml.Node{f.value}
	if f.value.Kind == yaml.SequenceNode {
		nodes = f.value.Content
	}
	var list []string
	for _, node := range nodes {
		node = follow(node)
		if node.Kind != yaml.ScalarNode || isNull(node) {
			r.mistakef(r.at(node), "%s names tasks; conditions stand in next, with when and do", f.key.Value)
			r.noGraph = true
			continue
		}
		list = append(list, node.Value)
		r.leads = append(r.leads, lead{r.inside, node.Value, r.at(node)})
	}
	return list
}

// lead is a name of a task that something leads to.
type lead struct {
	inside, name string
	at           Place
}

// publish reads what a transition assigns: a list of names with values, or of names
// alone, which get the whole result.
func (r *reader) publish(f field) []Assignment {
	if f.value.Kind == yaml.MappingNode {
		return r.assigned(f.value, nil)
	}
	if f.value.Kind != yaml.SequenceNode {
		r.mistakef(r.at(f.value), "publish must be a list of names with values")
		return nil
	}
	var list []Assignment
	for _, item := range f.value.Content {
		item = follow(item)
		switch {
		case item.Kind == yaml.MappingNode:
			list = r.assigned(item, list)
		case item.Kind != yaml.ScalarNode || isNull(item):
			r.mistakef(r.at(item), "publish must be a list of names with values")
		case r.variable(item):
			list = r.assign(list, Assignment{item.Value, wholeResult()}, r.at(item))
		}
	}
	return list
}

// wholeResult is the value of a name that is published alone.
func wholeResult() *Value {
	value, err := NewValue("{{ result() }}")
	if err != nil {
		panic(err) // it is a constant
	}
	return value
}

func (r *reader) assigned(node *yaml.Node, list []Assignment) []Assignment {
	for _, pair := range r.pairs(node, map[*yaml.Node]bool{}) {
		if !r.variable(pair.key) {
			continue
		}
		if value := r.template(pair); value != nil {
			list = r.assign(list, Assignment{pair.key.Value, value}, r.at(pair.key))
		}
	}
	return list
}

// assign adds an assignment. A name that a transition publishes twice has the last
// value; the list holds each once.
func (r *reader) assign(list []Assignment, a Assignment, at Place) []Assignment {
	for i := range list {
		if list[i].Name == a.Name {
			r.warnf(at, "%s is published twice by one transition; the last value counts", a.Name)
			list[i].Value = a.Value
			return list
		}
	}
	return append(list, a)
}

// assignments reads the output map.
func (r *reader) assignments(f field) []Assignment {
	if f.value.Kind != yaml.MappingNode {
		r.mistakef(r.at(f.value), "%s must be a mapping of names and values", f.key.Value)
		return nil
	}
	var list []Assignment
	for _, pair := range r.pairs(f.value, map[*yaml.Node]bool{}) {
		for _, a := range list {
			if a.Name == pair.key.Value {
				r.mistakef(r.at(pair.key), "%s gives %s twice", f.key.Value, word(pair.key))
			}
		}
		if value := r.template(pair); value != nil {
			list = append(list, Assignment{pair.key.Value, value})
		}
	}
	return list
}

// Conditions of the older keys.
var legacyConditions = map[string]string{
	"on_success": "{{ succeeded() }}", "on_failure": "{{ failed() }}", "on_complete": "", "on_timeout": "{{ timed_out() }}",
}

// legacy makes transitions of the older keys.
func (r *reader) legacy(t *Task, given map[string]field) {
	for _, key := range legacyKeys {
		f, ok := given[key]
		switch {
		case !ok:
		case key == "decision":
			r.decision(t, f)
		case key == "publish":
			r.legacyPublish(t, f)
		default:
			transition := Transition{At: r.at(f.key), Do: r.targets(f)}
			if source := legacyConditions[key]; source != "" {
				transition.When = mustCondition(source)
			}
			t.Next = append(t.Next, transition)
		}
	}
}

func mustCondition(source string) *Condition {
	condition, err := NewCondition(source)
	if err != nil {
		panic(err) // it is a constant
	}
	return condition
}

// decision makes a transition of each branch. The default one, if it has no condition
// of its own, fires when none of the others does.
func (r *reader) decision(t *Task, f field) {
	if f.value.Kind != yaml.SequenceNode {
		r.mistakef(r.at(f.value), "decision must be a list of branches with when and next")
		return
	}
	var others []string
	fallback := -1
	for _, item := range f.value.Content {
		item = follow(item)
		if item.Kind != yaml.MappingNode {
			r.mistakef(r.at(item), "decision must be a list of branches with when and next")
			continue
		}
		transition, conditional, isDefault := r.branch(item)
		switch {
		case transition.When != nil:
			others = append(others, "("+transition.When.Expression()+")")
		case conditional: // by one that could not be read
		case !isDefault:
			r.mistakef(r.at(item), "a branch of decision has neither when nor default")
		case fallback >= 0:
			r.mistakef(r.at(item), "decision has two default branches")
		default:
			fallback = len(t.Next)
		}
		t.Next = append(t.Next, transition)
	}
	if fallback >= 0 && len(others) > 0 {
		condition, err := NewCondition("{{ not (" + strings.Join(others, " or ") + ") }}")
		if err != nil {
			r.errorf(t.Next[fallback].At, "the default branch cannot be told from the others: %v", err)
		}
		t.Next[fallback].When = condition
	}
}

func (r *reader) branch(node *yaml.Node) (transition Transition, conditional, isDefault bool) {
	transition.At = r.at(node)
	for _, f := range r.fields(node, []string{"when", "next", "default"}, " of a branch", refuseUnknown) {
		if isNull(f.value) {
			continue
		}
		switch f.name {
		case "when":
			conditional = true
			transition.When = r.condition(f)
		case "next":
			transition.Do = r.targets(f)
		case "default": // true, or the task that it leads to
			if isDefault = f.value.Value == "true"; f.value.Kind == yaml.ScalarNode && f.value.ShortTag() == "!!str" {
				isDefault, transition.Do = true, r.targets(f)
			}
		}
	}
	if len(transition.Do) == 0 {
		r.mistakef(r.at(node), "a branch of decision has no next")
	}
	return transition, conditional, isDefault
}

// legacyPublish gives what is published by a task to its transition of success, else
// to its first one, else to one of its own.
func (r *reader) legacyPublish(t *Task, f field) {
	list := r.publish(f)
	if len(list) == 0 {
		return
	}
	if len(t.Next) == 0 {
		t.Next = append(t.Next, Transition{At: r.at(f.key), When: mustCondition("{{ succeeded() }}")})
	}
	at := 0
	for i, transition := range t.Next {
		if transition.When != nil && strings.Contains(transition.When.Source(), "succeeded()") {
			at = i
			break
		}
	}
	t.Next[at].Publish = list
}
