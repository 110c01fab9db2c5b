// Package operations is the log of operations: those of this session, also the ones that were
// planned and not run, and the newest records of operator_audit, from any operator and program.
package operations

import (
	"strconv"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
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

	env      *screen.Env
	records  screen.Pages[monitor.AuditEntry]
	unfolded map[string]bool // by the key of the group
	// further asks for the next page although the cursor is at the top: the filter left few rows.
	further bool
	detail  bool
	scroll  screen.Scroller
}

// detailPage is the height of a page in the detail.
const detailPage = 16

// New makes the view.
func New(env *screen.Env) *Operations {
	v := &Operations{env: env, unfolded: map[string]bool{}}
	v.records = screen.NewPages(func(a *monitor.AuditEntry) int64 { return a.ID })
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InLog, Singular: "operation", Plural: "operations", FollowTop: true, Feed: screen.FeedAudit,
		Loaded: func() bool { return true }, Rows: v.build, Fields: fields, Collapse: v.fold,
		SearchTexts: func(r *row) []string {
			return []string{r.kind, verbFirst(r.kind), r.target, r.who, r.reason, r.problem, r.state(), r.number}
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
		Export: v.export,
		More:   func() bool { return v.records.Next() != 0 },
		GoesOn: func() string { return list.PartSearched(v.records.Next() != 0) },
		Empty: func() []string {
			next := "A opens the menu of the row under the cursor: queues, executions, workers."
			if env.Locked != "" {
				next = "Acting is disabled: " + widget.Clean(env.Locked) + "."
			}
			return []string{" No operator has acted on this installation yet.", " " + next}
		},
	})
	return v
}

// Below is the id below which the next page of records begins; zero reads the newest.
func (v *Operations) Below() int64 {
	if v.nearEnd() {
		return v.records.Next()
	}
	return 0
}

// Older is the id below which no record was read; zero if all were.
func (v *Operations) Older() int64 { return v.records.Next() }

// nearEnd reports whether the operator comes near the last row and there are more.
func (v *Operations) nearEnd() bool {
	at, read := v.Table().Cursor(), len(v.records.Rows())
	folded := read > v.Len() && read < foldReach && v.Filter() == ""
	return (at > 0 || v.further || folded) && v.records.Next() != 0 && v.Len()-at < monitor.AuditBound/4
}

// Title is the text of the title rule.
func (v *Operations) Title() (left, right string) {
	right = strconv.Itoa(len(v.env.Session)) + " in this session"
	if v.env.Data.Audit != nil {
		right += " · " + strconv.Itoa(len(v.records.Rows())) + " recorded"
		if v.records.Next() != 0 {
			right += "+"
		}
		if v.Filter() != "" {
			right += " · " + strconv.Itoa(v.Len()) + " match /" + v.Filter()
		}
		right += v.env.Mark(screen.FeedAudit)
	}
	return "Operations", right
}

// Changed takes over a page of records.
func (v *Operations) Changed(feed screen.Feed) {
	if a := v.env.Data.Audit; feed == screen.FeedAudit && a != nil {
		v.records.Merge(a.List, a.From, a.Next)
		v.further = v.further && a.From == 0
		v.Rebuild(false)
	}
}

// SessionChanged rebuilds the rows after an operation of this session began, changed or ended.
func (v *Operations) SessionChanged() { v.Rebuild(false) }

// Do carries out an action.
func (v *Operations) Do(action keymap.Action) screen.Effect {
	if v.detail && v.scroll.Do(action, detailPage, len(v.detailLines(v.env.Width))-v.env.Height) {
		return screen.Effect{Handled: true}
	}
	r := v.Current()
	switch {
	case action != keymap.Open || r == nil:
		return v.List.Do(action)
	case !v.detail && len(r.group) > 0:
		v.unfolded[r.key] = !v.unfolded[r.key]
		v.Rebuild(true)
	default:
		v.detail, v.scroll = !v.detail, screen.Scroller{}
	}
	return screen.Effect{Handled: true}
}

// Leave closes the detail.
func (v *Operations) Leave() bool {
	was := v.detail
	v.detail = false
	return was
}

// Render draws the view.
func (v *Operations) Render(w, h int) []string {
	switch {
	case v.Len() == 0 && v.env.Data.Audit == nil:
		return v.env.Missing(screen.FeedAudit, "the log of operations", w)
	case v.Len() == 0:
		return v.Nothing()
	case v.detail:
		lines, _ := v.scroll.Shown(v.detailLines(w), h)
		return lines
	}
	room := tableHeight(h)
	lines := widget.Fit(v.Table().Lines(w, room, v.env.Theme), w, room)
	if room < h {
		lines = append(lines, widget.Fit(v.detailLines(w), w, h-room)...)
	}
	return lines
}

// Places is where the table is drawn.
func (v *Operations) Places(w, h int) screen.Places {
	return screen.Places{{Table: v.Table(), W: w, H: tableHeight(h)}}
}

// tableHeight leaves room for a preview, unless the window is low.
func tableHeight(h int) int {
	if h < 12 {
		return h
	}
	return h - min(9, h/2-1)
}

// detailLines describe the row under the cursor.
func (v *Operations) detailLines(w int) []string {
	e, r := v.env, v.Current()
	if len(r.group) > 0 {
		title := verbFirst(r.audit.Action) + ": " + r.count()
		return append([]string{e.Rule(title, "enter = unfold", w)},
			widget.Paragraphs(v.groupLines(r), w-1, e.Theme)...)
	}
	title := r.key
	var list []widget.Text
	say := func(name, value string) {
		if value != "" {
			list = append(list, widget.Text{Text: " " + widget.Left(name, 9) + value})
		}
	}
	if op := r.op; op != nil {
		title = op.Title
		say("state", string(op.State)+v.duration(op))
		say("reason", op.Reason)
		say("remark", op.Remark)
		if op.Err != "" {
			list = append(list, widget.Text{Role: theme.Bad, Text: " error    " + op.Err})
		}
		if receipt := op.Receipt; receipt != nil {
			list = append(list, widget.Text{Text: " " + receipt.Text})
			for _, line := range receipt.Lines {
				list = append(list, widget.Text{Role: screen.Tone(line.Tone), Text: " " + line.Text})
			}
			if next := screen.Next(receipt); next != "" {
				list = append(list, widget.Text{Role: theme.Accent, Text: " → " + next})
			}
		}
	}
	if a := r.audit; a != nil {
		if r.op == nil {
			title = verbFirst(a.Action) + " " + a.Target
			say("outcome", a.Outcome)
			say("reason", a.Reason)
			say("error", a.Error)
		}
		say("audit", strconv.FormatInt(a.ID, 10)+" at "+a.At.UTC().Format("2006-01-02 15:04:05.000Z")+" by "+a.Actor+
			" through "+a.Source)
	}
	lines := append([]string{e.Rule(title, "enter = all of it", w)}, widget.Paragraphs(list, w-1, e.Theme)...)
	if r.audit == nil || !v.detail {
		return lines
	}
	record := []string{"The request is too long to be shown here."}
	if len(r.audit.Request) > 0 {
		record = jsonview.Text(string(r.audit.Request))
	}
	return append(append(lines, "", " "+e.Dim("RECORD")), screen.Indented(record)...)
}

func (v *Operations) duration(op *act.Operation) string {
	switch {
	case op.Ran.IsZero():
		return ""
	case op.Ended.IsZero():
		return " for " + widget.Age(v.env.Clock.Sub(op.Ran))
	default:
		return ", took " + widget.Age(op.Ended.Sub(op.Ran))
	}
}
