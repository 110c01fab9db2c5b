package deadletters

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// grouping is by what letters are gathered.
type grouping struct {
	name string
	of   []func(*row) string
}

func byReason(r *row) string { return r.Reason }
func byAction(r *row) string { return r.ActionRef }
func byType(r *row) string   { return r.Type }
func byError(r *row) string  { return r.problem }

// groupings are what key a cycles through.
var groupings = []grouping{
	{"reason × action × worker", []func(*row) string{byReason, byAction, (*row).from}},
	{"reason × action × worker × type × error", []func(*row) string{byReason, byAction, (*row).from, byType, byError}},
	{"reason", []func(*row) string{byReason}},
	{"action", []func(*row) string{byAction}},
	{"worker", []func(*row) string{(*row).from}},
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
		one.keys = append(one.keys, r.key())
		one.counts[r.verdict.class]++
		died := r.died()
		if one.oldest == nil || died.Before(*one.oldest) {
			one.oldest = died
		}
		if one.newest == nil || died.After(*one.newest) {
			one.newest = died
		}
	}
	slices.SortStableFunc(groups, func(a, b group) int { return len(b.keys) - len(a.keys) })
	return groups
}

// groupRows shows groups in a table.
type groupRows struct {
	env  *screen.Env
	list []group
	mark func(key string) bool
}

var groupColumns = []widget.Column{
	{Title: " ", Width: 1},
	{Title: "PROBLEM", Width: 20, Grow: true},
	{Title: "COUNT", Width: 6, Right: true},
	{Title: "OLDEST", Width: 7, Right: true, Priority: 2},
	{Title: "NEWEST", Width: 7, Right: true, Priority: 2},
	{Title: "REQUEUE", Width: 7, Right: true},
	{Title: "STALE", Width: 6, Right: true},
	{Title: "BLOCKED", Width: 7, Right: true},
}

// Len is the number of groups.
func (g *groupRows) Len() int { return len(g.list) }

// Key identifies a group.
func (g *groupRows) Key(i int) string { return g.list[i].key }

// Cells are the texts of a group.
func (g *groupRows) Cells(i int, into []widget.Cell) []widget.Cell {
	one, e := &g.list[i], g.env
	sign := " "
	if marked := g.marked(one); marked == len(one.keys) {
		sign = e.Theme.Glyphs.Done
	} else if marked > 0 {
		sign = e.Theme.Glyphs.Dot
	}
	num := func(n int) widget.Cell { return widget.Cell{Text: e.Num(int64(n))} }
	return append(into, widget.Cell{Text: sign}, widget.Cell{Text: strings.Join(one.parts, "  ")}, num(len(one.keys)),
		widget.Cell{Text: e.AgeOf(one.oldest)},
		widget.Cell{Text: e.AgeOf(one.newest)}, num(one.counts[requeue]), num(one.counts[stale]),
		num(one.counts[blocked]))
}

func (g *groupRows) marked(one *group) int {
	n := 0
	for _, key := range one.keys {
		if g.mark(key) {
			n++
		}
	}
	return n
}
