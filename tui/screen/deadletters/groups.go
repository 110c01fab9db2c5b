package deadletters

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// grouping is a choice of what the dead letters of a group have in common.
type grouping struct {
	name string
	of   []func(*row) string
}

var groupings = []grouping{
	{name: "reason × action × worker", of: []func(*row) string{byReason, byAction, (*row).from}},
	{
		name: "reason × action × worker × type × error",
		of:   []func(*row) string{byReason, byAction, (*row).from, byType, byError},
	},
	{name: "reason", of: []func(*row) string{byReason}},
	{name: "action", of: []func(*row) string{byAction}},
	{name: "worker", of: []func(*row) string{(*row).from}},
	{name: "type", of: []func(*row) string{byType}},
	{name: "error", of: []func(*row) string{byError}},
}

// group is dead letters with the same problem.
type group struct {
	key            string
	parts          []string
	keys           []string
	oldest, newest *time.Time
	counts         [classes]int64
	open           int64
	verdicts       map[verdict]int // without decided ones
}

func (g *grouping) key(r *row) (string, []string) {
	parts := make([]string, len(g.of))
	for i, of := range g.of {
		parts[i] = dash(of(r))
	}
	return strings.Join(parts, "\x00"), parts
}

// gather groups the rows, the largest group first.
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
			groups = append(groups, group{
				key: key, parts: parts, oldest: r.died(), newest: r.died(), verdicts: map[verdict]int{},
			})
		}
		one := &groups[n]
		one.keys = append(one.keys, r.key())
		one.counts[r.verdict.class]++
		if r.Open() {
			one.open++
		}
		if r.Verdict.Advice != monitor.AdviseNothing {
			one.verdicts[r.verdict]++
		}
		if died := r.died(); died.Before(*one.oldest) {
			one.oldest = died
		} else if died.After(*one.newest) {
			one.newest = died
		}
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(len(b.keys), len(a.keys)) })
	return groups
}

// verdict is what R would do with the dead letters of a group, or else with how many of them, those first that it
// cannot help.
func (g *group) verdict() widget.Cell {
	all := slices.SortedFunc(maps.Keys(g.verdicts), func(a, b verdict) int {
		help := func(v verdict) bool { return v.class != again && v.class != blocked }
		switch {
		case help(a) == help(b):
			return cmp.Or(cmp.Compare(g.verdicts[b], g.verdicts[a]), cmp.Compare(a.text, b.text))
		case help(a):
			return 1
		default:
			return -1
		}
	})
	if len(all) == 0 {
		return widget.Cell{Text: "-"}
	}
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.text
		if len(all) > 1 {
			texts[i] = strconv.Itoa(g.verdicts[one]) + " " + one.text
		}
	}
	return widget.Cell{Text: all[0].sign + " " + strings.Join(texts, ", "), Role: all[0].role}
}

func (v *DeadLetters) groupFields() []list.Field[group] {
	return []list.Field[group]{
		list.Draw(" ", 1, func(e *screen.Env, g *group) widget.Cell {
			switch v.marked(g) {
			case 0:
				return widget.Cell{Text: " "}
			case len(g.keys):
				return widget.Cell{Text: e.Theme.Glyphs.Done}
			default:
				return widget.Cell{Text: e.Theme.Glyphs.Dot}
			}
		}),
		list.Text("PROBLEM", 42, func(g *group) string { return strings.Join(g.parts, "  ") }).Grow(),
		list.Number("COUNT", 6, func(g *group) int64 { return int64(len(g.keys)) }),
		list.Number("OPEN", 5, func(g *group) int64 { return g.open }).Priority(2),
		list.Draw("VERDICT", 24, func(_ *screen.Env, g *group) widget.Cell { return g.verdict() }).Share(50),
		list.Age("OLDEST", 7, func(g *group) *time.Time { return g.oldest }).Priority(4),
		list.Age("NEWEST", 7, func(g *group) *time.Time { return g.newest }).Priority(5),
		list.Number("REQUEUE", 7, func(g *group) int64 { return g.counts[requeue] }).Priority(3),
		list.Number("STALE", 6, func(g *group) int64 { return g.counts[stale] }).Priority(3),
		list.Number("BLOCKED", 7, func(g *group) int64 { return g.counts[again] + g.counts[blocked] }).Priority(3),
	}
}

// marked counts the marked dead letters of a group.
func (v *DeadLetters) marked(g *group) (n int) {
	for _, key := range g.keys {
		if v.Table().MarkName(key) != "" {
			n++
		}
	}
	return n
}

// groupLines are the groups: a table if there is room or they have the focus, else a line, and none in
// a low window.
func (v *DeadLetters) groupLines(w, h int) []string {
	e, n := v.env, v.groups.Len()
	small := w < 100 || h < 16
	switch {
	case n == 0, small && !v.onGroups && h < lowHeight:
		return nil
	case small && !v.onGroups:
		var parts []string
		for i := range min(n, 4) {
			g := &v.groups.List[i]
			parts = append(parts, widget.Clean(strings.TrimSuffix(strings.Join(g.parts, " ")+" "+
				e.Num(int64(len(g.keys)))+" "+g.verdict().Text, " -")))
		}
		if n > 4 {
			parts = append(parts, "…")
		}
		return []string{" " + e.Dim("groups   ") + widget.Cut(strings.Join(parts, " · "), max(1, w-12))}
	}
	hint := "a groups by · tab, then space marks a whole group"
	if v.onGroups {
		hint = "space marks a whole group · tab back"
	}
	if w < 80 {
		hint = "tab back"
	}
	room := v.groupsHeight(w, h)
	return append([]string{e.PaneRule(v.onGroups, "groups "+groupings[v.grouping].name, hint, w)},
		widget.Fit(v.groups.Lines(w, room, e.Theme), w, room)...)
}

// groupsHeight is the height of the table of groups.
func (v *DeadLetters) groupsHeight(w, h int) int {
	limit := h / 4
	if w < 100 || h < 16 {
		limit = h / 2
	}
	return min(v.groups.Len()+1, max(3, limit))
}
