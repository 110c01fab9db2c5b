// Package operations is the log of what operators did: every operation of this
// session, also those that were left before anything was done, and the newest
// acts that the database records, whoever did them and by which program.
package operations

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Operations is the view.
type Operations struct {
	*list.List[row]

	env *screen.Env
	// unfolded are the operations of several acts whose acts are listed.
	unfolded map[string]bool
	// further is true once older acts were asked for below what the filter leaves.
	further bool
	// acts are those that the database records, read page by page.
	acts   screen.Pages[monitor.AuditEntry]
	detail bool
	scroll screen.Scroller
	// session is how many operations of this session the rows were made of.
	session int
}

// row is an operation of this session, an act that the database records, or
// both.
type row struct {
	key   string
	at    time.Time // by the database's clock
	op    *act.Operation
	audit *monitor.AuditEntry
	// acts are those of a row that stands for several, the newest first; within is true
	// for one of them that is listed below it.
	acts   []row
	within bool
	// says is the row in words, unfolded whether its acts are listed.
	says     texts
	unfolded bool
}

var fields = []list.Field[row]{
	{
		Column: widget.Column{Title: "AT", Width: 8},
		Cell:   list.Dim(func(r *row) string { return r.at.UTC().Format("15:04:05") }),
	},
	{
		Column: widget.Column{Title: "OUTCOME", Width: 12},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			state, role := r.outcome(e)
			return widget.Cell{Text: state, Role: role}
		},
	},
	{
		Column: widget.Column{Title: "ACT", Width: 21},
		Cell:   list.Plain(func(r *row) string { return said(r.says.kind) }),
		Term: filter.Field{
			Name: "act", Kind: filter.Text, Help: "what was done, such as queue.pause; a star stands for anything",
		},
		Texts: func(_ *screen.Env, r *row) []string { return []string{r.says.kind, said(r.says.kind)} }, Complete: true,
	},
	{
		Column: widget.Column{Title: "TARGET", Width: 18, Grow: true, Middle: true},
		Cell:   list.Plain((*row).target),
		Term:   filter.Field{Name: "target", Kind: filter.Text, Help: "what it was done to"},
		Texts:  list.TextOf(func(r *row) string { return r.says.target }), Complete: true,
	},
	{
		Column: widget.Column{Title: "WHO", Width: 14, Priority: 2, Middle: true},
		Cell:   list.Plain(func(r *row) string { return r.says.who }),
		Term:   filter.Field{Name: "who", Kind: filter.Text, Help: "who did it; session for this one"},
		Texts: func(_ *screen.Env, r *row) []string {
			if r.op != nil {
				return []string{"session", r.says.who}
			}
			return []string{r.says.who}
		},
		Complete: true,
	},
	{
		Term: filter.Field{
			Name: "outcome", Kind: filter.Text, Help: "how it ended",
			Values: []string{"done", "partly", "failed", "interrupted", "running", "not run"},
		},
		Texts: list.TextOf((*row).state), Complete: true,
	},
	{
		Term:  filter.Field{Name: "reason", Kind: filter.Within, Help: "why, as was written"},
		Texts: list.TextOf(func(r *row) string { return r.says.reason }),
	},
	{
		Term:  filter.Field{Name: "error", Kind: filter.Within, Help: "what went wrong"},
		Texts: list.TextOf(func(r *row) string { return r.says.problem }),
	},
	{Column: widget.Column{Title: "THROUGH", Width: 12, Priority: 4}, Cell: list.Dim((*row).through)},
	{
		Column: widget.Column{Title: "AUDIT", Width: 6, Right: true, Priority: 1},
		Cell:   list.Dim(func(r *row) string { return r.says.audit }),
		Term:   filter.Field{Name: "audit", Kind: filter.ID, Help: "its number in the record"},
		Texts:  list.TextOf(func(r *row) string { return r.says.audit }),
	},
	{
		Column: widget.Column{Title: "REASON", Width: 24, Priority: 3},
		Cell:   list.Dim(func(r *row) string { return r.says.reason }),
	},
	{
		Term:   filter.Field{Name: "age", Kind: filter.Age, Help: "how long ago it began"},
		Number: func(e *screen.Env, r *row) (float64, bool) { return e.Since(r.at).Seconds(), true },
	},
}

// detailPage is how many lines of an operation are taken for a page.
const detailPage = 16

// New makes the view.
func New(env *screen.Env) *Operations {
	v := &Operations{env: env, acts: screen.NewPages(func(a *monitor.AuditEntry) int64 { return a.ID })}
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InLog, Singular: "act", Plural: "acts of operators", FollowTop: true, Feed: screen.FeedAudit,
		Loaded: func() bool { return true }, Rows: v.rows, Fields: fields, Collapse: v.fold,
		SearchTexts: func(r *row) []string {
			t := &r.says
			return []string{t.kind, said(t.kind), t.target, t.who, t.reason, t.problem, r.state(), t.audit}
		},
		Key: func(r *row) string { return r.key },
		CursorMoved: func(action keymap.Action) screen.Effect {
			effect := screen.Effect{Handled: true}
			v.further = action == keymap.Bottom
			if v.nearEnd() {
				effect.Refetch = screen.FeedAudit
			}
			return effect
		},
		Export: v.thing,
		Truncated: func() string {
			if v.acts.Next() != 0 {
				return "older acts are recorded; the newest are read"
			}
			return ""
		},
	})
	return v
}

// Below is the id below which acts are read: those beyond the last one that is known
// when the operator comes near it. Zero begins with the newest.
func (v *Operations) Below() int64 {
	if v.nearEnd() {
		return v.acts.Next()
	}
	return 0
}

// nearEnd reports whether the end of what is loaded comes near and there is more.
func (v *Operations) nearEnd() bool {
	at := v.Table().Cursor()
	folded := len(v.acts.Rows()) > v.Len() && len(v.acts.Rows()) < foldReach && v.Filter() == ""
	return (at > 0 || v.further || folded) && v.acts.Next() != 0 && v.Len()-at < monitor.AuditBound/4
}

// Title is the text of the title rule.
func (v *Operations) Title() (left, right string) {
	right = strconv.Itoa(len(v.env.Session)) + " in this session"
	if v.env.Data.Audit != nil {
		right += " · " + strconv.Itoa(len(v.acts.Rows())) + " recorded"
		if v.acts.Next() != 0 {
			right += "+"
		}
		if v.Filter() != "" {
			right += " · " + strconv.Itoa(v.Len()) + " match /" + v.Filter()
		}
		right += v.env.Mark(screen.FeedAudit)
	}
	return "Operations", right
}

// Changed takes over new data.
func (v *Operations) Changed(feed screen.Feed) {
	if a := v.env.Data.Audit; feed == screen.FeedAudit && a != nil {
		v.acts.Merge(a.List, a.From, a.Next)
		v.further = v.further && a.From == 0
		v.Rebuild(false)
	}
}

// rows joins what this session knows with what the database records. Its own operations stand
// once, with their record.
func (v *Operations) rows() []row {
	v.session = len(v.env.Session)
	var rows []row
	recorded := map[int64]bool{}
	skew := v.env.Now.Sub(v.env.Clock)
	for _, op := range v.env.Session {
		r := row{key: "op " + strconv.FormatInt(op.ID, 10), at: op.Began.Add(skew), op: op}
		if op.Receipt != nil && len(op.Receipt.Audits) > 0 {
			for _, id := range op.Receipt.Audits {
				recorded[id] = true
			}
			r.audit = v.entry(op.Receipt.Audits[0])
		}
		rows = append(rows, r)
	}
	list := v.acts.Rows()
	for i := range list {
		if a := &list[i]; !recorded[a.ID] {
			rows = append(rows, row{key: "audit " + strconv.FormatInt(a.ID, 10), at: a.At, audit: a})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return b.at.Compare(a.at) })
	for i := range rows {
		rows[i].says = rows[i].texts()
	}
	return rows
}

func (v *Operations) entry(id int64) *monitor.AuditEntry {
	list := v.acts.Rows()
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// Do carries out an action.
func (v *Operations) Do(action keymap.Action) screen.Effect {
	if v.detail && v.scroll.Do(action, detailPage, len(v.detailLines(v.env.Width))-v.env.Height) {
		return screen.Effect{Handled: true}
	}
	if r := v.Current(); action == keymap.Open && r != nil {
		if v.detail || !v.toggle(r) {
			v.detail, v.scroll = !v.detail, screen.Scroller{}
		}
		return screen.Effect{Handled: true}
	}
	return v.List.Do(action)
}

// Leave closes the detail, which is what esc does first.
func (v *Operations) Leave() bool {
	was := v.detail
	v.detail = false
	return was
}

// through names the program that did it.
func (r *row) through() string {
	if r.audit == nil {
		return "-"
	}
	return r.audit.Source
}

// state is how an operation stands, in a word.
func (r *row) state() string {
	switch {
	case r.op == nil:
		return r.audit.Outcome
	case r.op.State == act.Partial:
		return "partly"
	case r.op.State == act.Dropped:
		return "not run"
	default:
		return string(r.op.State)
	}
}

// outcome is how an operation stands, with its sign; of several acts whether all ended alike.
func (r *row) outcome(e *screen.Env) (string, theme.Role) {
	g := &e.Theme.Glyphs
	for i := range r.acts {
		if r.acts[i].audit.Outcome != r.audit.Outcome {
			return g.Warning + " partly", theme.Warn
		}
	}
	if r.op != nil {
		switch r.op.State {
		case act.Done:
			return g.Done + " done", theme.Good
		case act.Partial:
			return g.Warning + " partly", theme.Warn
		case act.Failed:
			return g.Failed + " failed", theme.Bad
		case act.Running:
			return g.Busy + " running", theme.Accent
		case act.Dropped:
			return g.Idle + " not run", theme.Dim
		default:
			return g.Scheduled + " " + string(r.op.State), theme.Plain
		}
	}
	switch r.audit.Outcome {
	case "done":
		return g.Done + " done", theme.Good
	case "failed", "interrupted":
		return g.Failed + " " + r.audit.Outcome, theme.Bad
	case "running":
		return g.Busy + " running", theme.Accent
	default:
		return g.Dot + " " + r.audit.Outcome, theme.Plain
	}
}

// Render draws the view.
func (v *Operations) Render(w, h int) []string {
	if v.session != len(v.env.Session) || v.env.Data.Audit == nil { // an operation began since the last reading
		v.Rebuild(false)
	}
	if v.Len() == 0 {
		return v.empty(w)
	}
	if v.detail {
		lines, _ := v.scroll.Shown(v.detailLines(w), h)
		return lines
	}
	ph := max(0, min(9, h/2-1))
	if h < 12 {
		ph = 0
	}
	lines := widget.Fit(v.Table().Lines(w, h-ph, v.env.Theme), w, h-ph)
	if ph > 0 {
		lines = append(lines, widget.Fit(v.detailLines(w), w, ph)...)
	}
	return lines
}

func (v *Operations) empty(w int) []string {
	if v.env.Data.Audit == nil {
		return v.env.Missing(screen.FeedAudit, "the acts of operators", w)
	}
	if all := len(v.rows()); all > 0 {
		lines := []string{"", " None of the " + v.env.Num(int64(all)) + " acts that were read matches /" +
			widget.Clean(v.Filter()) + "; esc clears it."}
		if v.acts.Next() != 0 {
			lines = append(lines, " Older ones are recorded: G reads them.")
		}
		return lines
	}
	lines := []string{"", " Nobody has acted on this installation yet."}
	if v.env.Locked != "" {
		return append(lines, " Here nothing can be acted upon: "+widget.Clean(v.env.Locked)+".")
	}
	return append(lines, " A opens the menu of the row under the cursor: queues, executions, workers.")
}

// detailLines says all that is known of the row under the cursor.
func (v *Operations) detailLines(w int) []string {
	e := v.env
	r := v.Current()
	if len(r.acts) > 0 {
		title := said(r.audit.Action) + ": " + r.counted()
		return append([]string{e.Rule(title, "enter = unfold", w)},
			widget.Paragraphs(v.foldedLines(r), w-1, e.Theme)...)
	}
	title := r.key
	list := []widget.Text{}
	say := func(name, value string) {
		if value != "" {
			list = append(list, widget.Text{Text: " " + widget.Left(name, 9) + value})
		}
	}
	if op := r.op; op != nil {
		title = op.Title
		say("state", string(op.State)+v.lasted(op))
		say("reason", op.Reason)
		say("remark", op.Remark)
		if op.Err != "" {
			list = append(list, widget.Text{Role: theme.Bad, Text: " error    " + op.Err})
		}
		list = append(list, receipt(op.Receipt)...)
	}
	if a := r.audit; a != nil {
		if r.op == nil {
			title = said(a.Action) + " " + a.Target
			say("outcome", a.Outcome)
			say("reason", a.Reason)
			say("error", a.Error)
		}
		say("audit", strconv.FormatInt(a.ID, 10)+" at "+a.At.UTC().Format("2006-01-02 15:04:05.000Z")+" by "+a.Actor+
			" through "+a.Source)
	}
	lines := append([]string{e.Rule(title, "enter = all of it", w)}, widget.Paragraphs(list, w-1, e.Theme)...)
	if r.audit != nil && v.detail {
		lines = append(lines, "", " "+e.Paint(theme.Dim, "RECORD"))
		for _, line := range document(r.audit.Request) {
			lines = append(lines, " "+line)
		}
	}
	return lines
}

func (v *Operations) lasted(op *act.Operation) string {
	switch {
	case op.Ran.IsZero():
		return ""
	case op.Ended.IsZero():
		return " for " + widget.Age(v.env.Clock.Sub(op.Ran))
	default:
		return ", took " + widget.Age(op.Ended.Sub(op.Ran))
	}
}

func receipt(r *act.Receipt) []widget.Text {
	if r == nil {
		return nil
	}
	list := []widget.Text{{Text: " " + r.Text}}
	for _, line := range r.Lines {
		list = append(list, widget.Text{Role: screen.Tone(line.Tone), Text: " " + line.Text})
	}
	if r.Next != "" {
		list = append(list, widget.Text{Role: theme.Accent, Text: " → " + r.Next})
	}
	return list
}

// document is a recorded request for people.
func document(raw json.RawMessage) []string {
	if len(raw) == 0 {
		return []string{"It is too long to be read along."}
	}
	return jsonview.Text(string(raw))
}
