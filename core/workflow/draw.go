package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/yamldoc"
)

// Drawing configures Draw.
type Drawing struct {
	// Tasks are the states of a running workflow's tasks; nil draws the definition.
	Tasks map[string]*TaskState
	// Width is the longest line in columns; 0 is 80, and 40 the least.
	Width int
	// ASCII uses only ASCII signs.
	ASCII bool
}

// Draw draws the tasks from top to bottom, one a line. The successors of a task are below it and branches are indented.
// A task with several predecessors is below their immediate dominator.
func (d *Definition) Draw(how Drawing) string {
	p := &painter{def: d, how: how, signs: unicodeSigns, width: 80, children: map[*Task][]*Task{}}
	parent := d.dominators()
	for _, t := range d.sorted {
		p.children[parent[t]] = append(p.children[parent[t]], t)
	}
	if how.Width > 0 {
		p.width = max(how.Width, 40)
	}
	if how.ASCII {
		p.signs = asciiSigns
	}
	p.paint()
	return p.text()
}

type signs struct {
	down, fork, last, blank, arrow, inside, more string
	status                                       map[TaskStatus]string
}

var unicodeSigns = signs{
	down: "│", fork: "├─", last: "└─", blank: " ", arrow: "→", inside: "‖", more: "…",
	status: map[TaskStatus]string{
		"": "·", TaskWaiting: "◌", TaskReady: "○", TaskRunning: "●", TaskCompleted: "✓", TaskFailed: "✗",
		TaskTimeout: "◷", TaskCancelled: "⊘", TaskSkipped: "-",
	},
}

var asciiSigns = signs{
	down: "|", fork: "|-", last: "`-", blank: " ", arrow: "->", inside: "=", more: "...",
	status: map[TaskStatus]string{
		"": ".", TaskWaiting: "~", TaskReady: "o", TaskRunning: "*", TaskCompleted: "+", TaskFailed: "x",
		TaskTimeout: "t", TaskCancelled: "c", TaskSkipped: "-",
	},
}

type painter struct {
	def      *Definition
	how      Drawing
	signs    signs
	width    int
	children map[*Task][]*Task // the tree of dominators in topological order; nil has its top
	lines    []line
	later    []*Task // too far to the right, drawn at the left in the end
}

// line is one line; the right sides of all lines begin in the same column.
type line struct{ left, right string }

func (p *painter) paint() {
	tops := p.children[nil]
	if len(tops) == 1 {
		p.task(tops[0], "")
	} else if len(tops) > 1 {
		p.lines = append(p.lines, line{left: "start"})
		p.below(nil, "")
	}
	for len(p.later) > 0 {
		t := p.later[0]
		p.later = p.later[1:]
		p.lines = append(p.lines, line{}, line{left: "continued: " + t.Name})
		p.task(t, "")
	}
}

// task draws a task and its successors, with the prefix at the left.
func (p *painter) task(t *Task, prefix string) {
	p.lines = append(p.lines, line{left: prefix + p.symbol(t.Name) + " " + t.Name, right: p.about(t)})
	children := p.children[t]
	bar := p.signs.blank
	if len(children) > 0 {
		bar = p.signs.down
	}
	for _, sub := range t.Tasks {
		p.lines = append(p.lines,
			line{
				left:  prefix + bar + " " + p.signs.inside + " " + p.symbol(sub.Name) + " " + sub.Name,
				right: p.about(sub),
			})
	}
	for i := range t.Next {
		p.elsewhere(t, &t.Next[i], prefix+bar)
	}
	if len(children) == 1 && p.follows(t, children[0]) {
		p.lines = append(p.lines,
			line{left: strings.TrimRight(prefix+p.signs.down+" "+p.condition(t, children[0]), " ")})
		p.task(children[0], prefix)
		return
	}
	p.below(t, prefix)
}

// follows reports whether t is the only predecessor of next.
func (p *painter) follows(t, next *Task) bool {
	return len(next.Inbound) == 1 && next.Inbound[0] == t.Name
}

// below draws the branches of a task, and then the tasks where the branches join.
func (p *painter) below(t *Task, prefix string) {
	var branches, meets []*Task
	for _, child := range p.children[t] {
		if t == nil && len(child.Inbound) == 0 || t != nil && p.follows(t, child) {
			branches = append(branches, child)
		} else {
			meets = append(meets, child)
		}
	}
	for i, branch := range branches {
		sign, next := p.signs.fork, p.signs.down
		if i == len(branches)-1 && len(meets) == 0 {
			sign, next = p.signs.last, p.signs.blank
		}
		condition := ""
		if t != nil {
			condition = p.condition(t, branch)
		}
		p.lines = append(p.lines, line{left: strings.TrimRight(prefix+sign+" "+condition, " ")})
		inner := prefix + next + "  "
		if phrase.Width(inner) > p.width/2 {
			p.lines = append(p.lines, line{left: inner + p.signs.arrow + " " + branch.Name + "; see below"})
			p.later = append(p.later, branch)
			continue
		}
		p.task(branch, inner)
	}
	for _, meet := range meets {
		p.lines = append(p.lines, line{left: prefix + p.signs.down})
		p.task(meet, prefix)
	}
}

// elsewhere draws a transition to tasks that are not directly below.
func (p *painter) elsewhere(t *Task, transition *Transition, prefix string) {
	var away []string
	for _, name := range transition.Do {
		if to := p.def.Task(name); to != nil && !p.follows(t, to) {
			away = append(away, name)
		}
	}
	if len(away) == 0 {
		return
	}
	text := p.signs.arrow + " " + strings.Join(away, ", ")
	if transition.When != nil {
		text += " if " + yamldoc.OneLine(transition.When.Expression())
	}
	p.lines = append(p.lines, line{left: prefix + " " + text})
}

// condition is the condition of the transitions from a task to another one.
func (p *painter) condition(t, to *Task) string {
	var list []string
	for i := range t.Next {
		transition := &t.Next[i]
		if !slices.Contains(transition.Do, to.Name) {
			continue
		}
		if transition.When == nil {
			return ""
		}
		list = append(list, yamldoc.OneLine(transition.When.Expression()))
	}
	return "if " + strings.Join(list, ", or if ")
}

func (p *painter) state(name string) *TaskState {
	if state := p.how.Tasks[name]; state != nil {
		return state
	}
	return &TaskState{}
}

func (p *painter) symbol(name string) string {
	if p.how.Tasks == nil {
		return p.signs.status[TaskReady]
	}
	return p.signs.status[p.state(name).Status]
}

// about describes a task behind its name.
func (p *painter) about(t *Task) string {
	var parts []string
	if p.how.Tasks != nil {
		parts = append(parts, StatusText(t, p.state(t.Name)))
	}
	what := t.Action
	if t.Kind == KindParallel {
		what = fmt.Sprintf("%d at once", len(t.Tasks))
	}
	if t.WithItems != nil {
		what += ", for each item"
		if t.BatchSize > 1 {
			what = strings.TrimSuffix(what, "item") + fmt.Sprintf("%d items", t.BatchSize)
		}
		if t.Concurrency > 1 {
			what += fmt.Sprintf(", %d at a time", t.Concurrency)
		}
	}
	if len(t.Inbound) > 1 {
		switch {
		case t.Join == 0:
			what += fmt.Sprintf(", after the first of %d", len(t.Inbound))
		case t.Join == len(t.Inbound):
			what += fmt.Sprintf(", after all %d", t.Join)
		default:
			what += fmt.Sprintf(", after %d of %d", t.Join, len(t.Inbound))
		}
	}
	return strings.Join(append(parts, what), "  ")
}

// StatusText describes the status of a task, with the progress of a list or a join.
func StatusText(t *Task, s *TaskState) string {
	if s == nil || s.Status == "" {
		return "not reached"
	}
	text := string(s.Status)
	if s.Status == TaskFailed && s.Handled || s.Status == TaskTimeout && s.Handled {
		text += ", handled"
	}
	ended := s.Succeeded + s.Failed + s.TimedOut
	switch {
	case t.WithItems != nil && s.Total > 0:
		text += fmt.Sprintf(" %d/%d", ended, s.Total)
		if s.Failed+s.TimedOut > 0 {
			text += fmt.Sprintf(" (%d failed)", s.Failed+s.TimedOut)
		}
	case t.Kind == KindParallel && s.Status == TaskRunning && s.Total > 0:
		text += fmt.Sprintf(" %d/%d", ended, s.Total)
	case s.Status == TaskWaiting && t.Join > 0:
		text += fmt.Sprintf(" %d/%d", len(s.Arrived), t.Join)
	}
	return text
}

// text joins the lines, each within the width.
func (p *painter) text() string {
	column := 0
	for _, l := range p.lines {
		if l.right != "" {
			column = max(column, phrase.Width(l.left)+2)
		}
	}
	column = min(column, p.width*3/5)
	var out strings.Builder
	for _, l := range p.lines {
		left := l.left
		if l.right != "" {
			left = p.cut(left, column-2)
			left += strings.Repeat(" ", column-phrase.Width(left)) + l.right
		}
		out.WriteString(strings.TrimRight(p.cut(left, p.width), " "))
		out.WriteByte('\n')
	}
	return out.String()
}

func (p *painter) cut(text string, columns int) string {
	if phrase.Width(text) <= columns {
		return text
	}
	return strings.TrimSuffix(phrase.Cut(text, columns-len([]rune(p.signs.more))+1), "…") + p.signs.more
}
