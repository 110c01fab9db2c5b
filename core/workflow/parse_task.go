package workflow

import (
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/yamldoc"
)

// taskFile adds the keys that need their own conversion.
type taskFile struct {
	Task
	Name           yamldoc.Field `yaml:"name"`
	Input          yamldoc.Field `yaml:"input"`
	PermissionSets yamldoc.Field `yaml:"permission_set_refs" null:"keep"`
	Selector       yamldoc.Field `yaml:"worker_selector"`
	Tolerations    yamldoc.Field `yaml:"worker_tolerations"`
	Affinity       yamldoc.Field `yaml:"worker_affinity"`
	When           yamldoc.Field `yaml:"when"`
	WithItems      yamldoc.Field `yaml:"with_items"`
	Retry          yamldoc.Field `yaml:"retry"`
	Next           yamldoc.Field `yaml:"next"`
	Join           yamldoc.Field `yaml:"join"`
	Tasks          yamldoc.Field `yaml:"tasks"`
	OnSuccess      yamldoc.Field `yaml:"on_success"`
	OnFailure      yamldoc.Field `yaml:"on_failure"`
	OnComplete     yamldoc.Field `yaml:"on_complete"`
	OnTimeout      yamldoc.Field `yaml:"on_timeout"`
	Decision       yamldoc.Field `yaml:"decision"`
	Publish        yamldoc.Field `yaml:"publish"`
	IterateCache   yamldoc.Field `yaml:"iterate_cache"`
	WaitFor        yamldoc.Field `yaml:"wait_for"`
	Chart          yamldoc.Field `yaml:"__chart_meta__"`
}

// chartKey has the data of drawing programs.
const chartKey = "__chart_meta__"

// reserved are names with another meaning in expressions.
var reserved = []string{"parameters", "vars", "task", "system", "kv", "pack", "item", "batch", "index"}

// tasks reads a list of tasks; within is the parallel one around it.
func (r *reader) tasks(f yamldoc.Field, within *Task) []*Task {
	if f.Value.Kind != yaml.SequenceNode || len(f.Value.Content) == 0 {
		r.Mistakef(r.At(f.Value), "tasks must be a list of at least one task")
		return nil
	}
	var list []*Task
	for _, item := range f.Value.Content {
		item = yamldoc.Follow(item)
		if item.Kind != yaml.MappingNode {
			r.Mistakef(r.At(item), "this is not a task: write a mapping with name, action and so on")
			continue
		}
		inside, task := r.About, r.task
		list = append(list, r.readTask(item, within))
		r.About, r.task = inside, task
	}
	return list
}

// readTask reads one task. It keeps a task without a name, so that its other keys are checked.
func (r *reader) readTask(node *yaml.Node, within *Task) *Task {
	file := &taskFile{Task: Task{Kind: KindAction, Within: within, At: r.At(node)}}
	t := &file.Task
	r.task = t
	rule := warnUnknown
	if name := yamldoc.Below(node, "name"); name.Kind == yaml.ScalarNode { // mistakes in the keys name the task as well
		r.About = "task " + yamldoc.Shorten(name.Value) + ": "
	}
	if yamldoc.Below(node, "with_items") != node { // a misspelt concurrency or batch_size would change the run
		rule = refuseUnknown
	}
	given, meant := r.mapping(node, file, " of a task", rule)
	if given["name"].Given() || !meant["name"] {
		r.name(t, given["name"], node)
	} else {
		r.About = "a task without a name: "
	}
	r.Fill(given, file)
	t.Concurrency = max(t.Concurrency, 1)
	if given.Sound("action") && !isRef(t.Action) {
		r.Mistakef(r.At(given["action"].Value), "action is %s; it must be a ref such as core.echo",
			yamldoc.Show(given["action"].Value))
	}
	if f := file.Input; f.Given() && f.Value.Kind != yaml.MappingNode {
		r.Mistakef(r.At(f.Value), "input must be a mapping of parameters")
	} else if f.Given() && len(f.Value.Content) > 0 { // an empty input passes on the parameters of the workflow
		t.Input = r.template(f)
	}
	if f := file.PermissionSets; f.Given() && yamldoc.IsNull(f.Value) { // removes those of the action
		t.PermissionSets = &Value{compiled: compiled{plain: true}}
	} else {
		t.PermissionSets = r.template(f)
	}
	t.Selector, t.Tolerations = r.template(file.Selector), r.template(file.Tolerations)
	t.Affinity, t.WithItems = r.template(file.Affinity), r.template(file.WithItems)
	if f := file.When; f.Given() {
		t.When = r.condition(f)
		if !r.rules.refuse {
			r.Warnf(r.At(f.Key), "when of a task has no effect without strict: true; put it on the transition that "+
				"leads here")
		}
	}
	if file.Retry.Given() {
		t.Retry = r.retry(file.Retry)
	}
	if f := file.Join; f.Given() && f.Value.Kind == yaml.ScalarNode && f.Value.Value == "all" {
		t.JoinAll = true
	} else if f.Given() {
		join, _ := r.Whole(f, 1, math.MaxInt32)
		t.Join = int(join)
	}
	if file.Tasks.Given() {
		r.subtasks(t, file.Tasks)
	}
	if file.Chart.Given() {
		t.Chart = expr.Value(r.Value(file.Chart.Value))
	}
	if f := file.IterateCache; f.Given() {
		r.Mistakef(r.At(f.Key), "iterate_cache is not supported: have an action read the entries and go over its "+
			"result by with_items")
	}
	if f := file.WaitFor; f.Given() {
		r.Mistakef(r.At(f.Key), "wait_for is not supported: ask by the action core.ask, or let the action open an "+
			"inquiry by __inquiry in its result")
	}
	if t.WithItems == nil && (meant["with_items"] || file.WithItems.Given()) {
		r.listed[t] = true
	}
	r.noGraph = r.noGraph || meant["next"] || meant["name"]
	r.transitions(t, given)
	r.kind(t, given, meant)
	return t
}

// name reads the name of a task, which begins all further mistakes.
func (r *reader) name(t *Task, f yamldoc.Field, node *yaml.Node) {
	r.About = ""
	if !f.Given() {
		r.Mistakef(r.At(node), "a task has no name")
		r.About = "a task without a name: "
		return
	}
	name, ok := r.Text(f)
	if !ok || !r.Length(f, 1, 255) {
		return
	}
	t.Name = name
	t.At = r.At(f.Value)
	if strings.ContainsFunc(t.Name, yamldoc.Unprintable) || strings.TrimSpace(t.Name) != t.Name {
		r.Mistakef(t.At, "the name of a task is %s; it must be without blanks around it and without control characters",
			yamldoc.Show(f.Value))
	}
	if slices.Contains(reserved, t.Name) {
		r.Mistakef(t.At, "a task cannot be named %s: expressions know that name as something else", t.Name)
	}
	r.About = "task " + yamldoc.Shorten(t.Name) + ": "
}

// isRef reports whether a text is names with dots between them.
func isRef(text string) bool {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if part == "" || strings.ContainsFunc(part, func(c rune) bool { return c == ' ' || yamldoc.Unprintable(c) }) {
			return false
		}
	}
	return len(parts) >= 2 && !strings.ContainsAny(text, "{}")
}

func (r *reader) subtasks(t *Task, f yamldoc.Field) {
	if f.Value.Kind == yaml.SequenceNode && len(f.Value.Content) == 0 {
		return // kind checks whether it may be empty
	}
	if t.Within != nil {
		r.Mistakef(r.At(f.Key), "a parallel within a parallel is not supported: put its tasks into the outer one, "+
			"which runs all at once")
		return
	}
	t.Tasks = r.tasks(f, t)
}

// retryFile are the keys below retry.
type retryFile struct {
	Count    int           `yaml:"count" range:"1..100"`
	Delay    int           `yaml:"delay" range:"0.."`
	Backoff  yamldoc.Field `yaml:"backoff"`
	MaxDelay int           `yaml:"max_delay" range:"0.."`
	OnError  yamldoc.Field `yaml:"on_error"`
}

func (r *reader) retry(f yamldoc.Field) *Retry {
	if f.Value.Kind != yaml.MappingNode {
		r.Mistakef(r.At(f.Value), "retry must be a mapping with count, delay and so on")
		return nil
	}
	var file retryFile
	given, _ := r.mapping(f.Value, &file, " of retry", refuseUnknown)
	r.Fill(given, &file)
	retry := &Retry{
		Backoff: BackoffConstant, Count: file.Count,
		Delay: time.Duration(file.Delay) * time.Second, MaxDelay: time.Duration(file.MaxDelay) * time.Second,
	}
	if f := file.Backoff; f.Given() {
		if r.Stored && f.Value.Kind == yaml.ScalarNode { // task graphs have a capital letter
			lower := *f.Value
			lower.Value = strings.ToLower(lower.Value)
			f.Value = &lower
		}
		if word, ok := r.Word(f, string(BackoffConstant), string(BackoffLinear), string(BackoffExponential)); ok {
			retry.Backoff = Backoff(word)
		}
	}
	if file.OnError.Given() {
		retry.OnError = r.condition(file.OnError)
	}
	if retry.Count == 0 && !given["count"].Broken {
		r.Mistakef(r.At(f.Key), "retry has no count: say how often it is repeated, 1 to 100")
	}
	if given["max_delay"].Given() && file.MaxDelay < file.Delay {
		r.Mistakef(r.At(f.Key), "retry waits %d seconds at least, and max_delay allows %d", file.Delay, file.MaxDelay)
	}
	return retry
}
