package operations

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// row is an operation of this session, an audit record, or both.
type row struct {
	texts

	key   string
	at    time.Time // by the database's clock
	op    *act.Operation
	audit *monitor.AuditEntry
	// group are the records of a folded operation, the newest first. Unfolding lists them below the
	// group, with inGroup set.
	group             []row
	inGroup, unfolded bool
}

// texts are computed once, when the row is built: filters and cells need them for every row.
type texts struct{ kind, target, who, number, reason, problem string }

var fields = []list.Field[row]{
	list.Text("AT", 8, func(r *row) string { return screen.TimeOfDay(r.at) }).Dim(),
	list.Draw("OUTCOME", 12, outcome),
	list.Text("ACT", 21, func(r *row) string { return verbFirst(r.kind) }).
		Term("act", "what was done, such as queue.pause; a star stands for anything").
		Texts(func(_ *screen.Env, r *row) []string { return []string{r.kind, verbFirst(r.kind)} }),
	list.Text("TARGET", 18, func(r *row) string { return r.target }).Grow().Middle().
		Drawn(func(_ *screen.Env, r *row) widget.Cell { return widget.Cell{Text: r.targetCell()} }).
		Term("target", "what it was done to"),
	list.Text("WHO", 14, func(r *row) string { return r.who }).Middle().Priority(2).
		Term("who", "who did it; session for this one").
		Texts(func(_ *screen.Env, r *row) []string {
			if r.op != nil {
				return []string{"session", r.who}
			}
			return []string{r.who}
		}),
	list.Term("outcome", "how it ended", (*row).state, "done", "partly", "failed", "interrupted", "running", "not run"),
	list.Term("error", "what went wrong", func(r *row) string { return r.problem }).Kind(filter.Within),
	list.Text("THROUGH", 12, func(r *row) string {
		if r.audit == nil {
			return "-"
		}
		return r.audit.Source
	}).Dim().Priority(4),
	list.Text("AUDIT", 6, func(r *row) string { return r.number }).Dim().Right().Priority(1).
		Term("audit", "its audit number").Kind(filter.ID),
	list.Text("REASON", 24, func(r *row) string { return r.reason }).Dim().Priority(3).
		Term("reason", "the reason that the operator gave").Kind(filter.Within),
	list.Age("", 0, func(r *row) *time.Time { return &r.at }).Term("age", "how long ago it began"),
}

// verbFirst turns queue.pause into pause queue.
func verbFirst(kind string) string {
	object, verb, ok := strings.Cut(kind, ".")
	if !ok {
		return kind
	}
	return strings.NewReplacer("_", " ", "-", " ").Replace(verb + " " + object)
}

// build makes the rows: operations of this session, and records that belong to none of them.
func (v *Operations) build() []row {
	records := v.records.Rows()
	byID := make(map[int64]*monitor.AuditEntry, len(records))
	for i := range records {
		byID[records[i].ID] = &records[i]
	}
	var rows []row
	own := map[int64]bool{}
	for _, op := range v.env.Session {
		r := row{key: "op " + strconv.FormatInt(op.ID, 10), at: op.Began.Add(v.env.Skew), op: op}
		if op.Receipt != nil && len(op.Receipt.Audits) > 0 {
			for _, id := range op.Receipt.Audits {
				own[id] = true
			}
			r.audit = byID[op.Receipt.Audits[0]]
		}
		rows = append(rows, r)
	}
	for i := range records {
		if a := &records[i]; !own[a.ID] {
			rows = append(rows, row{key: "audit " + strconv.FormatInt(a.ID, 10), at: a.At, audit: a})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return b.at.Compare(a.at) })
	for i := range rows {
		rows[i].fillTexts()
	}
	return rows
}

func (r *row) fillTexts() {
	r.number = "-"
	if a := r.audit; a != nil {
		r.texts = texts{
			kind: a.Action, target: a.Target, who: a.Actor, number: strconv.FormatInt(a.ID, 10),
			reason: a.Reason, problem: a.Error,
		}
	}
	op := r.op
	if op == nil {
		return
	}
	r.kind, r.target, r.who = string(op.Request.Kind), op.Request.Target.Name, "this session"
	r.reason, r.problem = cmp.Or(op.Reason, r.reason), cmp.Or(op.Err, r.problem)
	if op.Receipt != nil && len(op.Receipt.Audits) > 0 {
		r.number = strconv.FormatInt(op.Receipt.Audits[0], 10)
	}
}

func (r *row) state() string {
	switch {
	case r.op == nil:
		return r.audit.Outcome
	case r.op.State == act.Dropped:
		return "not run"
	default:
		return string(r.op.State)
	}
}

// outcome is the state with its sign. A group with several outcomes shows "partly".
func outcome(e *screen.Env, r *row) widget.Cell {
	g, state := &e.Theme.Glyphs, r.state()
	if slices.ContainsFunc(r.group, func(one row) bool { return one.audit.Outcome != state }) {
		state = string(act.Partial)
	}
	glyph, role := g.Dot, theme.Plain
	if r.op != nil {
		glyph = g.Scheduled
	}
	switch state {
	case string(act.Done):
		glyph, role = g.Done, theme.Good
	case string(act.Partial):
		glyph, role = g.Warning, theme.Warn
	case string(act.Failed), "interrupted":
		glyph, role = g.Failed, theme.Bad
	case string(act.Running):
		glyph, role = g.Busy, theme.Accent
	case "not run":
		glyph, role = g.Idle, theme.Dim
	}
	return widget.Cell{Text: glyph + " " + state, Role: role}
}

func (r *row) targetCell() string {
	switch {
	case r.inGroup:
		return "  " + r.audit.Target
	case len(r.group) == 0:
		return r.target
	case r.unfolded:
		return "▾ " + r.count()
	default:
		return "▸ " + r.count()
	}
}

// Row returns a function for records that no page has delivered: the value to export, and whether the
// filter matches. The function does not touch the view, so another goroutine may call it.
func (v *Operations) Row() func(a *monitor.AuditEntry) (id int64, value any, wanted bool) {
	matches := v.Matcher()
	return func(a *monitor.AuditEntry) (int64, any, bool) {
		r := row{at: a.At, audit: a}
		r.fillTexts()
		return a.ID, recorded(a), matches(&r)
	}
}
