package workflow

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/yamldoc"
)

// knownNames are the names in expressions other than variables.
var knownNames = []string{
	"parameters", "workflow", "vars", "variables", "task", "tasks", "config", "keystore", "system", "item", "index",
	"batch",
}

// ofItems are the names of a task over a list.
var ofItems = []string{"item", "index", "batch"}

// knownFunctions are all functions in expressions.
var knownFunctions = append(expr.Functions(), "result", "succeeded", "failed", "timed_out", "cancelled")

// use is a name in an expression.
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

// expressionsIn finds the expressions of a valid template.
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
		list = append(list, embedded{source: text[at : at+end], at: at})
		at += end + 2
	}
}

var taskName = regexp.MustCompile(`(?:^|[^.\w])tasks?\.([A-Za-z_]\w*)`)

// use checks the functions of an expression and collects its names and reads.
func (r *reader) use(expression *expr.Expression, at Place) {
	names, functions := expression.Names()
	for _, name := range functions {
		if slices.Contains(knownFunctions, name) {
			continue
		}
		if near := phrase.Nearest(name, knownFunctions); near != "" {
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

// names warns of unknown names in expressions.
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
		case u.ofTask && d.Task(u.name) == nil && r.noGraph && phrase.DidYouMean(u.name, tasks) == "":
		case u.ofTask && d.Task(u.name) == nil:
			r.Warnf(u.at, "there is no task %s%s", yamldoc.Shorten(u.name), phrase.DidYouMean(u.name, tasks))
		case u.ofTask || r.variables[u.name]:
		case slices.Contains(ofItems, u.name):
			if u.task == nil || u.task.WithItems == nil && !r.listed[u.task] {
				r.Warnf(u.at, "%s stands for something only in a task with with_items", u.name)
			}
		case !slices.Contains(known, u.name):
			r.Warnf(u.at, "nothing is named %s%s", yamldoc.Shorten(u.name), phrase.DidYouMean(u.name, known))
		}
	}
	r.About = ""
}

// resolve finds the actions whose results are read. Results of lists, parallel tasks and unknown tasks have no schema.
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
		if read.Path[0] == "result" { // the same as the view
			r.reads[i].Path = read.Path[1:]
		}
	}
	r.reads = slices.DeleteFunc(r.reads, func(read Read) bool { return len(read.Path) == 0 })
}

// within is the place in the file of a byte of a text, as exactly as the style of the text allows.
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
		// A text with escapes is not found in its line.
		if begin >= 0 && begin+len(skip) <= len(written) && string(written[begin:begin+len(skip)]) == before {
			return Place{File: at.File, Line: at.Line, Column: begin + len(skip) + 1}
		}
	}
	return at
}

// withinBlock is the same for a block after |.
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
