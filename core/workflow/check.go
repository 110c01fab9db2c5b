package workflow

import (
	"slices"
	"strings"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/yamldoc"
)

// kind checks that a task has the keys that its kind needs, and none that have no meaning for it. It does not report
// consequences of a misspelt key.
func (r *reader) kind(t *Task, given yamldoc.Fields, meant map[string]bool) {
	refuse := func(why string, keys ...string) {
		for _, key := range keys {
			if f, ok := given[key]; ok && !empty(f.Value) {
				r.Mistakef(r.At(f.Key), "%s %s", key, why)
			}
		}
	}
	if t.Kind == KindParallel {
		if f, ok := given["tasks"]; !meant["tasks"] && (!ok || empty(f.Value)) {
			r.Mistakef(t.At, "a parallel task has tasks, at least one")
		}
		refuse("has no meaning for a parallel task: give it to its tasks", "action", "input", "with_items", "retry",
			"timeout")
	} else {
		some := given["action"].Given() || given["tasks"].Given() || meant["action"] || meant["tasks"] || meant["type"]
		if !some {
			r.errorf(t.At, "a task of type %s has an action; without one it is skipped", t.Kind)
		}
		if !meant["type"] {
			refuse("belong to a task of type parallel", "tasks")
		}
	}
	if !given["with_items"].Given() && !meant["with_items"] && !r.Stored { // stored definitions may have them
		refuse("has a meaning only with with_items", "concurrency", "batch_size")
	}
	if t.Within != nil {
		refuse("has no meaning within a parallel task: what follows stands with the task around it", "next", "join")
		refuse("has no meaning within a parallel task: what follows stands with the task around it", legacyKeys...)
	}
}

// graph checks names and transitions.
func (r *reader) graph(d *Definition) {
	defer func() { r.About = "" }()
	seen := map[string]*Task{}
	var names []string
	for _, t := range d.All() {
		if first := seen[t.Name]; first != nil && t.Name != "" {
			r.noGraph = true
			r.Mistakef(t.At, "there are two tasks named %s, the first in line %d", yamldoc.Shorten(t.Name),
				first.At.Line)
		}
		seen[t.Name] = t
		if t.Within == nil {
			names = append(names, t.Name)
		}
	}
	for _, l := range r.targets {
		r.About = l.inside
		switch to := d.Task(l.name); {
		case to == nil && r.noGraph && phrase.DidYouMean(l.name, names) == "": // it may be the unreadable task
		case to == nil:
			r.Mistakef(l.at, "it leads to %s, which is no task%s", yamldoc.Shorten(l.name), phrase.DidYouMean(l.name,
				names))
		case to.Within != nil:
			r.Mistakef(l.at, "it leads to %s, which is a part of %s: lead to that", yamldoc.Shorten(l.name),
				yamldoc.Shorten(to.Within.Name))
		}
	}
	r.About = ""
	if !r.noGraph {
		r.joins(d)
		r.cycles(d)
	}
}

// joins checks that enough predecessors exist.
func (r *reader) joins(d *Definition) {
	for _, t := range d.Tasks {
		switch {
		case t.JoinAll && len(t.Inbound) == 0:
			r.errorf(t.At, "task %s: join waits for all that lead to it, and nothing does", yamldoc.Shorten(t.Name))
		case t.Join > len(t.Inbound):
			r.errorf(t.At, "task %s: join waits for %d, and only %d lead to it", yamldoc.Shorten(t.Name), t.Join,
				len(t.Inbound))
		}
	}
}

// Cycle is a path through the tasks that ends with its first task; nil if there is none.
func (d *Definition) Cycle() []string {
	const visiting, done = 1, 2
	state := map[*Task]int{}
	var path []string
	var visit func(t *Task) []string
	visit = func(t *Task) []string {
		state[t] = visiting
		path = append(path, t.Name)
		for _, name := range t.Outbound {
			next := d.names[name]
			switch state[next] {
			case visiting:
				return append(slices.Clone(path[slices.Index(path, name):]), name)
			case done:
			default:
				if found := visit(next); found != nil {
					return found
				}
			}
		}
		path = path[:len(path)-1]
		state[t] = done
		return nil
	}
	for _, t := range d.Tasks {
		if state[t] == 0 {
			if found := visit(t); found != nil {
				return found
			}
		}
	}
	return nil
}

// cycles reports a cycle, and tasks without a path from an entry.
func (r *reader) cycles(d *Definition) {
	cycle := d.Cycle()
	if cycle == nil {
		return
	}
	first := d.names[cycle[0]]
	r.errorf(first.At,
		"the tasks lead in a circle: %s; every task runs once, so repeat by retry or go over a list by with_items",
		arrows(cycle))
	reached := d.reachable(d.entries...)
	for _, t := range d.Tasks {
		if !reached[t] && !slices.Contains(cycle, t.Name) {
			r.errorf(t.At, "task %s is never reached: only what is never reached leads to it", yamldoc.Shorten(t.Name))
		}
	}
}

// reaches reports whether there is a path from one task to another.
func (d *Definition) reaches(from, to *Task) bool {
	return from != nil && d.reachable(from)[to]
}

// reachable returns these tasks and all their descendants.
func (d *Definition) reachable(from ...*Task) map[*Task]bool {
	reached := map[*Task]bool{}
	ahead := slices.Clone(from)
	for len(ahead) > 0 {
		t := ahead[len(ahead)-1]
		ahead = ahead[:len(ahead)-1]
		if reached[t] {
			continue
		}
		reached[t] = true
		for _, name := range t.Outbound {
			ahead = append(ahead, d.names[name])
		}
	}
	return reached
}

// arrows draws a path on one line.
func arrows(names []string) string {
	const most = 12
	if len(names) > most {
		names = slices.Concat(names[:most-2], []string{"…"}, names[len(names)-1:])
	}
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = yamldoc.Shorten(name)
	}
	return strings.Join(short, " → ")
}
