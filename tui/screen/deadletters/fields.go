package deadletters

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

var fields = []list.Field[row]{
	{
		Sort: list.Order[row]{Key: 1, Name: "as listed", Ascending: true,
			Compare: list.Ascending(func(r *row) int { return r.at })},
	},
	{
		Column: widget.Column{Title: "DIED", Width: 7, Right: true},
		Cell:   func(e *screen.Env, r *row) widget.Cell { return widget.Cell{Text: e.AgeOf(r.died())} },
		Sort: list.Order[row]{Key: 2, Name: "died",
			Compare: func(_ *screen.Env, a, b *row) int { return b.died().Compare(*a.died()) }},
	},
	{
		Column: widget.Column{Title: "TYPE", Width: 18, Priority: 3, Middle: true}, Cell: list.Plain(byType),
	},
	{
		Column: widget.Column{Title: "REASON", Width: 8}, Cell: list.Plain(byReason),
		Term: filter.Field{
			Name: "reason", Kind: filter.Text, Help: "why it died",
			Values: []string{"expired", "rejected", "maxlen", "delivery_limit"},
		},
		Texts: list.TextOf(byReason), Complete: true,
		Sort: list.Order[row]{Key: 3, Name: "reason", Ascending: true, Compare: list.Ascending(byReason)},
	},
	{
		Column: widget.Column{Title: "ACTION", Width: 16, Grow: true, Middle: true},
		Cell:   list.Plain(func(r *row) string { return dash(r.ActionRef) }),
		Term: filter.Field{Name: "action", Kind: filter.Text,
			Help: "the action it is about; a star stands for anything"},
		Texts: list.TextOf(byAction), Complete: true,
		Sort: list.Order[row]{Key: 4, Name: "action", Ascending: true, Compare: list.Ascending(byAction)},
	},
	{
		Term:  filter.Field{Name: "type", Kind: filter.Text, Help: "its type"},
		Texts: list.TextOf(byType), Complete: true,
	},
	{
		Term: filter.Field{
			Name: "from", Kind: filter.Text, Help: "the worker it was on its way to, or where it died",
		},
		Texts: list.TextOf((*row).from), Complete: true,
	},
	{
		Term:  filter.Field{Name: "worker", Kind: filter.Text, Help: "the same, as the commands call it"},
		Texts: list.TextOf((*row).from), Complete: true,
	},
	{
		Term:  filter.Field{Name: "queue", Kind: filter.Text, Help: "the queue it died in"},
		Texts: list.TextOf(func(r *row) string { return r.Queue }), Complete: true,
	},
	{
		Term: filter.Field{
			Name: "verdict", Kind: filter.Within, Help: "what R would do",
			Values: []string{"requeue", "send", "stale", "blocked", "export", "wait", "repeated", "decided"},
		},
		Texts: list.TextOf(func(r *row) string { return r.verdict.text }),
	},
	{
		Term:  filter.Field{Name: "status", Kind: filter.Text, Help: "the status of its execution now"},
		Texts: list.TextOf(func(r *row) string { return r.StatusNow }), Complete: true,
	},
	{
		Term: filter.Field{
			Name: "decision", Kind: filter.Text, Values: monitor.LetterDecisions, Help: "what was decided",
		},
		Texts: list.TextOf(func(r *row) string { return r.Decision }), Complete: true,
	},
	{
		Term:  filter.Field{Name: "by", Kind: filter.Text, Help: "who decided"},
		Texts: list.TextOf(func(r *row) string { return r.DecidedBy }), Complete: true,
	},
	{
		Term:  filter.Field{Name: "error", Kind: filter.Within, Help: "what is said of it"},
		Texts: list.TextOf(byError),
	},
	{
		Column: widget.Column{Title: "EXECUTION", Width: 9, Right: true, Priority: 1},
		Cell: list.Plain(func(r *row) string {
			if r.Execution == nil {
				return "-"
			}
			return strconv.FormatInt(r.execution(), 10)
		}),
		Term:  filter.Field{Name: "execution", Kind: filter.ID, Help: "the execution it is about"},
		Texts: list.TextOf(func(r *row) string { return strconv.FormatInt(r.execution(), 10) }),
	},
	{
		Column: widget.Column{Title: "NOW", Width: 12, Priority: 2},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			if r.StatusNow == "" {
				return widget.Cell{Text: "-"}
			}
			return e.StateCell(r.StatusNow)
		},
	},
	{
		Term:  filter.Field{Name: "id", Kind: filter.ID, Help: "its number in the ledger"},
		Texts: list.TextOf((*row).key),
	},
	{
		Column: widget.Column{Title: "TRY", Width: 4, Right: true, Priority: 6},
		Cell:   list.Plain((*row).tries),
		Term:   filter.Field{Name: "try", Kind: filter.Number, Help: "how often its execution was repeated"},
		Number: func(_ *screen.Env, r *row) (float64, bool) { return float64(r.Tries), r.Execution != nil },
		Sort:   list.Order[row]{Key: 7, Name: "tries", Compare: list.Descending(func(r *row) int64 { return r.Tries })},
	},
	{
		Column: widget.Column{Title: "FROM", Width: 14, Priority: 5, Middle: true},
		Cell:   list.Dim(func(r *row) string { return dash(r.from()) }),
		Sort:   list.Order[row]{Key: 5, Name: "from", Ascending: true, Compare: list.Ascending((*row).from)},
	},
	{
		Column: widget.Column{Title: "DECISION", Width: 9, Priority: 4},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			return e.Worry(r.Decision, r.Open())
		},
	},
	{
		Column: widget.Column{Title: "VERDICT", Width: 26},
		Cell: func(_ *screen.Env, r *row) widget.Cell {
			return widget.Cell{Text: r.verdict.sign + " " + r.verdict.text, Role: r.verdict.role}
		},
		Sort: list.Order[row]{Key: 6, Name: "verdict", Ascending: true, Compare: func(_ *screen.Env, a, b *row) int {
			return cmp.Or(cmp.Compare(a.verdict.rank(), b.verdict.rank()), cmp.Compare(a.verdict.text, b.verdict.text))
		}},
	},
	{
		Term:   filter.Field{Name: "age", Kind: filter.Age, Help: "how long ago it died"},
		Number: list.AgeOf((*row).died),
	},
}

func dash(text string) string { return cmp.Or(text, "-") }

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rank puts first what can be requeued, then what stands in the way.
func (v *verdict) rank() int { return slices.Index([]class{requeue, blocked, stale, other}, v.class) }

// troubles reports whether a letter waits for a person.
func (r *row) troubles() bool { return r.Open() }
