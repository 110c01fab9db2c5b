package workflow

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/nearest"
	"github.com/attune-go/attune/core/yamldoc"
)

// Names that expressions of a workflow know besides its variables.
var knownNames = []string{
	"parameters", "workflow", "vars", "variables", "task", "tasks", "config", "keystore", "system", "item", "index",
	"batch",
}

// ofItems are those of them that stand for something only in a task over a list.
var ofItems = []string{"item", "index", "batch"}

// Functions that expressions of a workflow know besides those that are built in.
var knownFunctions = append(expr.Functions(), "result", "succeeded", "failed", "timed_out", "cancelled")

// use is the use of a name in an expression.
type use struct {
	name   string
	ofTask bool // task.name
	inside string
	task   *Task
	at     Place
}

// read checks the templates of one text.
func (r *reader) read(node *yaml.Node) {
	if !strings.Contains(node.Value, "{{") {
		return
	}
	if _, err := expr.ParseTemplate(node.Value); err != nil {
		at := r.At(node)
		text := err.Error()
		if e := (*expr.Error)(nil); errors.As(err, &e) {
			at, text = r.within(node, e.Offset), e.Text
		}
		r.errorf(at, "%s", text)
		return
	}
	for _, part := range expressionsIn(node.Value) {
		if expression, err := expr.Parse(part.source); err == nil {
			r.use(expression, r.within(node, part.at))
		}
	}
}

// embedded is an expression within a text.
type embedded struct {
	source string
	at     int
}

// expressionsIn finds the expressions of a template that was read without an error.
func expressionsIn(text string) []embedded {
	var list []embedded
	for at := 0; ; {
		begin := strings.Index(text[at:], "{{")
		if begin < 0 {
			return list
		}
		at += begin + 2
		end := strings.Index(unquoted(text[at:]), "}}")
		if end < 0 {
			return list
		}
		list = append(list, embedded{text[at : at+end], at})
		at += end + 2
	}
}

var taskName = regexp.MustCompile(`(?:^|[^.\w])tasks?\.([A-Za-z_]\w*)`)

// use checks the functions of an expression and notes its names.
func (r *reader) use(expression *expr.Expression, at Place) {
	names, functions := expression.Names()
	for _, name := range functions {
		if slices.Contains(knownFunctions, name) {
			continue
		}
		if near := nearest.Of(name, knownFunctions); near != "" {
			r.errorf(at, "there is no function %s; the nearest is %s", name, near)
			continue
		}
		r.errorf(at, "there is no function %s", yamldoc.Shorten(name))
	}
	for _, read := range expression.Reads() {
		found := Read{Path: read.Path, At: at}
		if r.task != nil {
			found.Task = r.task.Name
		}
		result := read.Root == "result()" && r.ended && r.task.Action != "" && r.task.WithItems == nil
		if result {
			found.Action = r.task.Action
		}
		if ofTask := read.Root == "task" || read.Root == "tasks"; ofTask && len(read.Path) > 1 {
			found.Of, found.Path = read.Path[0], read.Path[1:]
			r.reads = append(r.reads, found)
		} else if len(read.Path) > 0 && (result || read.Root == "parameters") {
			r.reads = append(r.reads, found)
		}
	}
	for _, name := range names {
		r.uses = append(r.uses, use{name: name, inside: r.About, task: r.task, at: at})
	}
	for _, found := range taskName.FindAllStringSubmatch(unquoted(expression.Source()), -1) {
		r.uses = append(r.uses, use{name: found[1], ofTask: true, inside: r.About, task: r.task, at: at})
	}
}

// names warns of names in expressions that stand for nothing.
func (r *reader) names(d *Definition) {
	known := slices.Clone(knownNames)
	for name := range r.variables {
		known = append(known, name)
	}
	slices.Sort(known)
	var tasks []string
	for _, t := range d.All() {
		tasks = append(tasks, t.Name)
	}
	for _, u := range r.uses {
		r.About = u.inside
		switch {
		case u.ofTask && d.Task(u.name) == nil && r.noGraph && nearest.Hint(u.name, tasks) == "":
		case u.ofTask && d.Task(u.name) == nil:
			r.Warnf(u.at, "there is no task %s%s", yamldoc.Shorten(u.name), nearest.Hint(u.name, tasks))
		case u.ofTask || r.variables[u.name]:
		case slices.Contains(ofItems, u.name):
			if u.task == nil || u.task.WithItems == nil && !r.listed[u.task] {
				r.Warnf(u.at, "%s stands for something only in a task with with_items", u.name)
			}
		case !slices.Contains(known, u.name):
			r.Warnf(u.at, "nothing is named %s%s", yamldoc.Shorten(u.name), nearest.Hint(u.name, known))
		}
	}
	r.About = ""
}

// resolve finds the actions of the tasks whose results are read. Of lists, parallel tasks
// and unknown tasks the results are not described.
func (r *reader) resolve(d *Definition) {
	r.reads = slices.DeleteFunc(r.reads, func(read Read) bool {
		t := d.Task(read.Of)
		return read.Of != "" &&
			(t == nil || t.Kind == KindParallel || t.WithItems != nil || r.listed[t] || t.Action == "")
	})
	for i, read := range r.reads {
		if read.Of == "" {
			continue
		}
		r.reads[i].Action = d.Task(read.Of).Action
		if read.Path[0] == "result" { // the result once more
			r.reads[i].Path = read.Path[1:]
		}
	}
	r.reads = slices.DeleteFunc(r.reads, func(read Read) bool { return len(read.Path) == 0 })
}

// within is where the byte at this offset of a text stands in the file, as exactly
// as the form in which the text is written allows.
func (r *reader) within(node *yaml.Node, offset int) Place {
	at := r.At(node)
	before := node.Value[:min(max(offset, 0), len(node.Value))]
	if at.Line == 0 || at.Line > len(r.lines) {
		return at
	}
	switch node.Style {
	case yaml.LiteralStyle:
		return r.withinBlock(at, before)
	case yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle, 0:
		written := []rune(strings.TrimRight(r.lines[at.Line-1], "\r"))
		begin := at.Column - 1
		if node.Style != 0 {
			begin++
		}
		skip := []rune(before)
		// The text is found in its line as it is, without escapes, or not at all.
		if begin >= 0 && begin+len(skip) <= len(written) && string(written[begin:begin+len(skip)]) == before {
			return Place{File: at.File, Line: at.Line, Column: begin + len(skip) + 1}
		}
	}
	return at
}

// withinBlock is the same for a text that is written as a block after |.
func (r *reader) withinBlock(at Place, before string) Place {
	down := strings.Count(before, "\n")
	line := at.Line + down // the block begins in the line after |
	if line >= len(r.lines) {
		return at
	}
	written := r.lines[line]
	last := before[strings.LastIndexByte(before, '\n')+1:]
	indent := strings.Index(written, strings.TrimLeft(written, " "))
	if at := strings.Index(written, last); last != "" && at >= 0 {
		indent = at
	}
	return Place{File: at.File, Line: line + 1, Column: indent + len([]rune(last)) + 1}
}
