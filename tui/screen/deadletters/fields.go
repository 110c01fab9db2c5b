package deadletters

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

var fields = []list.Field[row]{
	{
		By: list.By[row]{Digit: 1, Name: "as listed", Up: true, Compare: list.Least(func(r *row) int { return r.at })},
	},
	{
		Column: widget.Column{Title: "DIED", Width: 7, Right: true},
		Cell:   list.Age(func(r *row) *time.Time { return r.died }),
		By: list.By[row]{Digit: 2, Name: "died", Compare: func(_ *screen.Env, a, b *row) int {
			if a.died == nil || b.died == nil { // nobody knows when: last
				return cmp.Compare(boolInt(a.died == nil), boolInt(b.died == nil))
			}
			return b.died.Compare(*a.died)
		}},
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
		Texts: list.Text(byReason), Offer: true,
		By: list.By[row]{Digit: 3, Name: "reason", Up: true, Compare: list.Least(byReason)},
	},
	{
		Column: widget.Column{Title: "ACTION", Width: 16, Grow: true, Middle: true},
		Cell:   list.Plain(func(r *row) string { return dash(r.action) }),
		Term:   filter.Field{Name: "action", Kind: filter.Text, Help: "the action it is about; a star stands for anything"},
		Texts:  list.Text(byAction), Offer: true,
		By: list.By[row]{Digit: 4, Name: "action", Up: true, Compare: list.Least(byAction)},
	},
	{
		Term:  filter.Field{Name: "type", Kind: filter.Text, Help: "its type"},
		Texts: list.Text(byType), Offer: true,
	},
	{
		Term: filter.Field{
			Name: "from", Kind: filter.Text, Help: "the worker it was on its way to, or where it died",
		},
		Texts: list.Text(byFrom), Offer: true,
	},
	{
		Term:  filter.Field{Name: "worker", Kind: filter.Text, Help: "the same, as the commands call it"},
		Texts: list.Text(byFrom), Offer: true,
	},
	{
		Term:  filter.Field{Name: "queue", Kind: filter.Text, Help: "the queue it died in"},
		Texts: list.Text((*row).queue), Offer: true,
	},
	{
		Term: filter.Field{
			Name: "verdict", Kind: filter.Within, Help: "what R would do",
			Values: []string{"requeue", "send", "stale", "blocked", "export", "wait", "repeated", "decided"},
		},
		Texts: list.Text(func(r *row) string { return r.verdict.text }),
	},
	{
		Term:  filter.Field{Name: "status", Kind: filter.Text, Help: "the status of its execution now"},
		Texts: list.Text(func(r *row) string { return r.now }), Offer: true,
	},
	{
		Term: filter.Field{
			Name: "decision", Kind: filter.Text, Values: monitor.LetterDecisions, Help: "what was decided",
		},
		Texts: list.Text(func(r *row) string { return r.decision }), Offer: true,
	},
	{
		Term:  filter.Field{Name: "by", Kind: filter.Text, Help: "who decided"},
		Texts: list.Text(func(r *row) string { return r.ledger.DecidedBy }), Offer: true,
	},
	{
		Term:  filter.Field{Name: "error", Kind: filter.Within, Help: "what is said of it"},
		Texts: list.Text(byError),
	},
	{
		Column: widget.Column{Title: "EXECUTION", Width: 9, Right: true, Priority: 1},
		Cell: list.Plain(func(r *row) string {
			if r.execution == 0 {
				return "-"
			}
			return strconv.FormatInt(r.execution, 10)
		}),
		Term:  filter.Field{Name: "execution", Kind: filter.ID, Help: "the execution it is about"},
		Texts: list.Text(func(r *row) string { return strconv.FormatInt(r.execution, 10) }),
	},
	{
		Column: widget.Column{Title: "NOW", Width: 12, Priority: 2},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			if r.now == "" {
				return widget.Cell{Text: "-"}
			}
			return e.StateCell(r.now)
		},
	},
	{
		Term:  filter.Field{Name: "id", Kind: filter.ID, Help: "its number in the ledger"},
		Texts: list.Text(func(r *row) string { return r.key }),
	},
	{
		Column: widget.Column{Title: "TRY", Width: 4, Right: true, Priority: 6},
		Cell:   list.Plain(func(r *row) string { return r.tries }),
		Term:   filter.Field{Name: "try", Kind: filter.Number, Help: "how often its execution was repeated"},
		Number: func(_ *screen.Env, r *row) (float64, bool) { return float64(r.retries), r.tries != "-" },
		By:     list.By[row]{Digit: 7, Name: "tries", Compare: list.Most(func(r *row) int64 { return r.retries })},
	},
	{
		Column: widget.Column{Title: "FROM", Width: 14, Priority: 5, Middle: true},
		Cell:   list.Dim(func(r *row) string { return dash(r.from) }),
		By:     list.By[row]{Digit: 5, Name: "from", Up: true, Compare: list.Least(byFrom)},
	},
	{
		Column: widget.Column{Title: "DECISION", Width: 9, Priority: 4},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			return e.Worry(r.decision, r.decision == monitor.DecisionOpen)
		},
	},
	{
		Column: widget.Column{Title: "VERDICT", Width: 26},
		Cell: func(_ *screen.Env, r *row) widget.Cell {
			return widget.Cell{Text: r.verdict.sign + " " + r.verdict.text, Role: r.verdict.role}
		},
		By: list.By[row]{Digit: 6, Name: "verdict", Up: true, Compare: func(_ *screen.Env, a, b *row) int {
			return cmp.Or(cmp.Compare(a.verdict.rank(), b.verdict.rank()), cmp.Compare(a.verdict.text, b.verdict.text))
		}},
	},
	{
		Term:   filter.Field{Name: "age", Kind: filter.Age, Help: "how long ago it died"},
		Number: list.Since(func(r *row) *time.Time { return r.died }),
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
func (r *row) troubles() bool { return r.ledger.Open() }
