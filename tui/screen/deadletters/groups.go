package deadletters

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// grouping is by what letters are gathered.
type grouping struct {
	name string
	of   []func(*row) string
}

func byReason(r *row) string { return r.reason }
func byAction(r *row) string { return r.action }
func byFrom(r *row) string   { return r.from }
func byType(r *row) string   { return r.kind }
func byError(r *row) string  { return r.problem }

// groupings are what key a cycles through.
var groupings = []grouping{
	{"reason × action × worker", []func(*row) string{byReason, byAction, byFrom}},
	{"reason × action × worker × type × error", []func(*row) string{byReason, byAction, byFrom, byType, byError}},
	{"reason", []func(*row) string{byReason}},
	{"action", []func(*row) string{byAction}},
	{"worker", []func(*row) string{byFrom}},
	{"type", []func(*row) string{byType}},
	{"error", []func(*row) string{byError}},
}

// group is letters that have the same problem.
type group struct {
	key            string
	parts          []string
	keys           []string
	oldest, newest *time.Time
	counts         [blocked + 1]int
}

func (g *grouping) key(r *row) (string, []string) {
	parts := make([]string, len(g.of))
	for i, of := range g.of {
		parts[i] = cmp.Or(of(r), "-")
	}
	return strings.Join(parts, "\x00"), parts
}

// gather puts rows into groups, the largest first.
func (g *grouping) gather(rows []row) []group {
	var groups []group
	at := map[string]int{}
	for i := range rows {
		r := &rows[i]
		key, parts := g.key(r)
		n, known := at[key]
		if !known {
			n = len(groups)
			at[key] = n
			groups = append(groups, group{key: key, parts: parts})
		}
		one := &groups[n]
		one.keys = append(one.keys, r.key)
		one.counts[r.verdict.class]++
		if r.died != nil {
			if one.oldest == nil || r.died.Before(*one.oldest) {
				one.oldest = r.died
			}
			if one.newest == nil || r.died.After(*one.newest) {
				one.newest = r.died
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b group) int { return len(b.keys) - len(a.keys) })
	return groups
}

func (v *DeadLetters) newGroups() *list.Table[group] {
	count := func(of func(g *group) int) func(*screen.Env, *group) widget.Cell {
		return list.Number(func(g *group) int64 { return int64(of(g)) })
	}
	class := func(title string, w int, of class) list.Field[group] {
		return list.Field[group]{
			Column: widget.Column{Title: title, Width: w, Right: true},
			Cell:   count(func(g *group) int { return g.counts[of] }),
		}
	}
	age := func(title string, of func(g *group) *time.Time) list.Field[group] {
		return list.Field[group]{
			Column: widget.Column{Title: title, Width: 7, Right: true, Priority: 2},
			Cell:   list.Age(of),
		}
	}
	return list.NewTable(v.env, func(g *group) string { return g.key }, []list.Field[group]{
		{
			Column: widget.Column{Title: " ", Width: 1},
			Cell: func(e *screen.Env, g *group) widget.Cell {
				switch v.marked(g) {
				case len(g.keys):
					return widget.Cell{Text: e.Theme.Glyphs.Done}
				case 0:
					return widget.Cell{Text: " "}
				default:
					return widget.Cell{Text: e.Theme.Glyphs.Dot}
				}
			},
		},
		{
			Column: widget.Column{Title: "PROBLEM", Width: 20, Grow: true},
			Cell:   list.Plain(func(g *group) string { return strings.Join(g.parts, "  ") }),
		},
		{
			Column: widget.Column{Title: "COUNT", Width: 6, Right: true},
			Cell:   count(func(g *group) int { return len(g.keys) }),
		},
		age("OLDEST", func(g *group) *time.Time { return g.oldest }),
		age("NEWEST", func(g *group) *time.Time { return g.newest }),
		class("REQUEUE", 7, requeue), class("STALE", 6, stale), class("BLOCKED", 7, blocked),
	})
}

// marked is how many letters of a group are marked.
func (v *DeadLetters) marked(g *group) (n int) {
	if v.Table().Marks() == 0 {
		return 0
	}
	for _, key := range g.keys {
		if v.isMarked(key) {
			n++
		}
	}
	return n
}

// groupLines are the groups: a table where there is room, or where they have the focus;
// else a line, and on a small terminal nothing.
func (v *DeadLetters) groupLines(w, h int) []string {
	e := v.env
	if v.groups.Len() == 0 {
		return nil
	}
	small := w < 100 || h < 16
	switch {
	case small && !v.onGroups && h < smallest:
		return nil
	case small && !v.onGroups:
		return v.groupText(w)
	}
	hint := "a groups by · tab, then space marks a whole group"
	if v.onGroups {
		hint = "space marks a whole group · tab back"
	}
	if w < 80 {
		hint = "tab back"
	}
	room := min(v.groups.Len()+1, max(3, h/4))
	if small {
		room = min(v.groups.Len()+1, max(3, h/2))
	}
	lines := []string{e.Rule("groups "+groupings[v.by].name, hint, w)}
	return append(lines, widget.Fit(v.groups.Lines(w, room, e.Theme), w, room)...)
}

func (v *DeadLetters) groupText(w int) []string {
	e := v.env
	parts := make([]string, 0, 4)
	for i, g := range v.groups.List {
		if i == 4 {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, widget.Clean(strings.Join(g.parts, " "))+" "+e.Num(int64(len(g.keys))))
	}
	return []string{" " + e.Dim("groups   ") + widget.Cut(strings.Join(parts, " · "), max(1, w-12))}
}
