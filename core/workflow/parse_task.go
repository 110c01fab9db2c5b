package workflow

import (
	"math"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

var taskKeys = []string{
	"name", "type", "action", "input", "permission_set_refs", "worker_selector", "worker_tolerations", "worker_affinity", "when",
	"with_items", "concurrency", "batch_size", "retry", "timeout", "next", "join", "tasks",
	"on_success", "on_failure", "on_complete", "on_timeout", "decision", "publish",
	"iterate_cache", "wait_for", chartKey,
}

// chartKey is where drawing programs keep what they need.
const chartKey = "__chart_meta__"

// reserved are names that stand for something else in expressions.
var reserved = []string{"parameters", "vars", "task", "system", "kv", "pack", "item", "batch", "index"}

// tasks reads a list of tasks; within is the parallel one around it.
func (r *reader) tasks(f field, within *Task) []*Task {
	if f.value.Kind != yaml.SequenceNode || len(f.value.Content) == 0 {
		r.mistakef(r.at(f.value), "tasks must be a list of at least one task")
		return nil
	}
	var list []*Task
	for _, item := range f.value.Content {
		item = follow(item)
		if item.Kind != yaml.MappingNode {
			r.mistakef(r.at(item), "this is not a task: write a mapping with name, action and so on")
			continue
		}
		inside, task := r.inside, r.task
		list = append(list, r.readTask(item, within))
		r.inside, r.task = inside, task
	}
	return list
}

// readTask reads one task. One without a name is kept, so that the rest is checked.
func (r *reader) readTask(node *yaml.Node, within *Task) *Task {
	t := &Task{Kind: KindAction, Concurrency: 1, Within: within, At: r.at(node)}
	r.task = t
	rule := warnUnknown
	for i := 0; i+1 < len(node.Content); i += 2 {
		switch value := follow(node.Content[i+1]); node.Content[i].Value {
		case "name": // mistakes in the keys name the task as well
			if value.Kind == yaml.ScalarNode {
				r.inside = "task " + shorten(value.Value) + ": "
			}
		case "with_items": // a misspelt concurrency or batch_size changes how the list is run
			rule = refuseUnknown
		}
	}
	fields := r.fields(node, taskKeys, " of a task", rule)
	meant := r.meant
	given := map[string]field{}
	for _, f := range fields {
		if !isNull(f.value) {
			given[f.name] = f
		} else if f.name == "permission_set_refs" { // given, and takes them all away
			t.PermissionSets = &Value{compiled: compiled{plain: true}}
		}
	}
	if f, ok := given["name"]; ok || !meant["name"] {
		r.name(t, f, node)
	} else {
		r.inside = "a task without a name: "
	}
	for _, f := range fields {
		if _, ok := given[f.name]; ok {
			r.taskKey(t, f)
		}
	}
	if t.WithItems == nil && (meant["with_items"] || given["with_items"].value != nil) {
		if r.listed == nil {
			r.listed = map[*Task]bool{}
		}
		r.listed[t] = true
	}
	r.noGraph = r.noGraph || meant["next"] || meant["name"]
	r.transitions(t, given)
	r.kind(t, given, meant)
	return t
}

// name reads the name of a task, which the mistakes that follow are told with.
func (r *reader) name(t *Task, f field, node *yaml.Node) {
	r.inside = ""
	if f.value == nil {
		r.mistakef(r.at(node), "a task has no name")
		r.inside = "a task without a name: "
		return
	}
	if !r.short(f, &t.Name, 1, 255) {
		return
	}
	t.At = r.at(f.value)
	if strings.ContainsFunc(t.Name, unprintable) || strings.TrimSpace(t.Name) != t.Name {
		r.mistakef(t.At, "the name of a task is %s; it must be without blanks around it and without control characters", show(f.value))
	}
	for _, word := range reserved {
		if t.Name == word {
			r.mistakef(t.At, "a task cannot be named %s: expressions know that name as something else", word)
		}
	}
	r.inside = "task " + shorten(t.Name) + ": "
}

// taskKey reads one key of a task.
func (r *reader) taskKey(t *Task, f field) {
	switch f.name {
	case "type":
		oneOf(r, f, &t.Kind, KindAction, KindParallel, KindWorkflow)
	case "action":
		if r.text(f, &t.Action) && !isRef(t.Action) {
			r.mistakef(r.at(f.value), "action is %s; it must be a ref such as core.echo", show(f.value))
		}
	case "input":
		r.input(t, f)
	case "permission_set_refs":
		t.PermissionSets = r.template(f)
	case "worker_selector":
		t.Selector = r.template(f)
	case "worker_tolerations":
		t.Tolerations = r.template(f)
	case "worker_affinity":
		t.Affinity = r.template(f)
	case "when":
		t.When = r.condition(f)
		if !r.rules.refuse {
			r.warnf(r.at(f.key), "when of a task has no effect without strict: true; put it on the transition that leads here")
		}
	case "with_items":
		t.WithItems = r.template(f)
	case "concurrency":
		r.whole(f, &t.Concurrency, r.least(), math.MaxInt32)
		t.Concurrency = max(t.Concurrency, 1)
	case "batch_size":
		r.whole(f, &t.BatchSize, r.least(), math.MaxInt32)
	case "retry":
		t.Retry = r.retry(f)
	case "timeout":
		r.whole(f, &t.Timeout, r.least(), math.MaxInt32)
	case "join":
		if f.value.Kind == yaml.ScalarNode && f.value.Value == "all" {
			t.JoinAll = true
		} else {
			r.whole(f, &t.Join, r.least(), math.MaxInt32)
		}
	case "tasks":
		r.subtasks(t, f)
	case chartKey:
		t.Chart = r.value(f.value, 0)
	case "iterate_cache":
		r.mistakef(r.at(f.key), "iterate_cache is not supported: have an action read the entries and go over its result by with_items")
	case "wait_for":
		r.mistakef(r.at(f.key), "wait_for is not supported: ask by the action core.ask, or let the action open an inquiry by __inquiry in its result")
	}
}

// least is the smallest number that a task may give. What others have stored may have
// zeros, which mean as much as nothing.
func (r *reader) least() int {
	if r.stored {
		return 0
	}
	return 1
}

// isRef reports whether a text has the form of a ref: names with dots between them.
func isRef(text string) bool {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if part == "" || strings.ContainsFunc(part, func(c rune) bool { return c == ' ' || unprintable(c) }) {
			return false
		}
	}
	return len(parts) >= 2 && !strings.ContainsAny(text, "{}")
}

func (r *reader) input(t *Task, f field) {
	switch {
	case f.value.Kind != yaml.MappingNode:
		r.mistakef(r.at(f.value), "input must be a mapping of parameters")
	case len(f.value.Content) > 0: // without any, those of the workflow are passed on
		t.Input = r.template(f)
	}
}

func (r *reader) subtasks(t *Task, f field) {
	if f.value.Kind == yaml.SequenceNode && len(f.value.Content) == 0 {
		return // kind says whether there must be some
	}
	if t.Within != nil {
		r.mistakef(r.at(f.key), "a parallel within a parallel is not supported: put its tasks into the outer one, which runs all at once")
		return
	}
	t.Tasks = r.tasks(f, t)
}

var retryKeys = []string{"count", "delay", "backoff", "max_delay", "on_error"}

func (r *reader) retry(f field) *Retry {
	if f.value.Kind != yaml.MappingNode {
		r.mistakef(r.at(f.value), "retry must be a mapping with count, delay and so on")
		return nil
	}
	retry := &Retry{Backoff: BackoffConstant}
	var delay, limit int
	var limited, counted bool
	for _, inner := range r.fields(f.value, retryKeys, " of retry", refuseUnknown) {
		if isNull(inner.value) {
			continue
		}
		switch inner.name {
		case "count":
			counted = true
			r.whole(inner, &retry.Count, 1, 100)
		case "delay":
			r.whole(inner, &delay, 0, math.MaxInt32)
		case "backoff":
			r.backoff(inner, retry)
		case "max_delay":
			limited = true
			r.whole(inner, &limit, 0, math.MaxInt32)
		case "on_error":
			retry.OnError = r.condition(inner)
		}
	}
	if !counted {
		r.mistakef(r.at(f.key), "retry has no count: say how often it is repeated, 1 to 100")
	}
	if limited && limit < delay {
		r.mistakef(r.at(f.key), "retry waits %d seconds at least, and max_delay allows %d", delay, limit)
	}
	retry.Delay, retry.MaxDelay = time.Duration(delay)*time.Second, time.Duration(limit)*time.Second
	return retry
}

// backoff reads the word, also with the capital that it has in task graphs.
func (r *reader) backoff(f field, retry *Retry) {
	if r.stored && f.value.Kind == yaml.ScalarNode {
		lower := *f.value
		lower.Value = strings.ToLower(lower.Value)
		f.value = &lower
	}
	oneOf(r, f, &retry.Backoff, BackoffConstant, BackoffLinear, BackoffExponential)
}
