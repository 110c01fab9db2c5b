// Package deadletters shows how many messages died, who takes them, and what was
// decided about each: first those that wait for a person.
//
// A depth of zero on the broker is not health by itself: a consumer may be
// handling them, or they may be lost before they arrive. So the view always
// says which of the sources its numbers come from.
package deadletters

import (
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// DeadLetters is the view.
type DeadLetters struct {
	env   *screen.Env
	table *widget.Table
	rows  []monitor.LedgerEntry
	first int
}

var columns = []widget.Column{
	{Title: "STORED", Width: 7, Right: true},
	{Title: "WHAT", Width: 9},
	{Title: "REASON", Width: 9},
	{Title: "DECISION", Width: 9},
	{Title: "EXECUTION", Width: 9, Right: true},
	{Title: "NOW", Width: 12, Priority: 1},
	{Title: "ACTION", Width: 16, Grow: true, Middle: true},
	{Title: "WORKER", Width: 13, Middle: true},
	{Title: "DIED IN", Width: 22, Priority: 2, Middle: true},
}

// New makes the view.
func New(env *screen.Env) *DeadLetters {
	return &DeadLetters{env: env, table: widget.NewTable(columns)}
}

// Table is the list, with its marks and columns.
func (v *DeadLetters) Table() *widget.Table { return v.table }

// View is the name of the screen.
func (v *DeadLetters) View() screen.View { return keymap.InDeadLetters }

// Feeds is what the view needs polled.
func (v *DeadLetters) Feeds() []screen.Feed { return []screen.Feed{screen.FeedDeadLetters} }

// Title is the text of the title rule.
func (v *DeadLetters) Title() (left, right string) {
	return "DLQ " + monitor.DeadLetterQueue, "waiting first, newest first" + v.env.Mark(screen.FeedDeadLetters)
}

// Select puts the cursor on a line of the body.
func (v *DeadLetters) Select(line int) bool { return v.table.Select(line - v.first - 1) }

// Changed takes over new data.
func (v *DeadLetters) Changed(feed screen.Feed) {
	d := v.env.Data.DeadLetters
	if feed != screen.FeedDeadLetters || d == nil {
		return
	}
	v.rows = nil
	if d.Ledger != nil {
		v.rows = d.Ledger.Recent
	}
	v.table.SetRows(v)
}

// Do carries out an action.
func (v *DeadLetters) Do(action keymap.Action) screen.Effect {
	if screen.MoveTable(v.table, action) {
		return screen.Effect{Handled: true}
	}
	if action != keymap.Open {
		return screen.Effect{}
	}
	at := v.table.Cursor()
	if at < 0 || v.rows[at].Execution == nil {
		return screen.Effect{Handled: true, Note: "There is no execution behind it."}
	}
	return screen.Effect{Handled: true, Open: keymap.InExecution, Execution: *v.rows[at].Execution}
}

// Len is the number of rows.
func (v *DeadLetters) Len() int { return len(v.rows) }

// Key identifies a row.
func (v *DeadLetters) Key(row int) string { return strconv.FormatInt(v.rows[row].ID, 10) }

// Cells are the texts of a row.
func (v *DeadLetters) Cells(row int, into []widget.Cell) []widget.Cell {
	e, r := v.env, v.rows[row]
	now := widget.Cell{Text: "-"}
	if r.StatusNow != "" {
		now = e.StateCell(r.StatusNow)
	}
	return append(into,
		widget.Cell{Text: widget.Age(e.Since(r.At))},
		widget.Cell{Text: r.What},
		widget.Cell{Text: r.Reason},
		e.Worry(r.Decision, r.Open()),
		widget.Cell{Text: number(r.Execution)},
		now,
		widget.Cell{Text: dash(r.ActionRef)},
		widget.Cell{Text: worker(&r)},
		widget.Cell{Text: dash(r.Queue), Role: theme.Dim},
	)
}

func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func worker(r *monitor.LedgerEntry) string {
	if r.WorkerName != "" {
		return r.WorkerName
	}
	return number(r.WorkerID)
}

// Render draws the view.
func (v *DeadLetters) Render(w, h int) []string {
	e, d := v.env, v.env.Data.DeadLetters
	if d == nil {
		return e.Missing(screen.FeedDeadLetters, "the dead letters")
	}
	lines := append(v.depth(d), "")
	lines = append(lines, v.ledger(d)...)
	lines = append(lines, "")
	v.first = len(lines)
	if len(v.rows) > 0 {
		chart := 0
		if h-len(lines) > 16 {
			chart = 7
		}
		under := v.selected(w)
		room := h - len(lines) - chart - len(under)
		lines = append(lines, widget.Fit(v.table.Lines(w, room, e.Theme), w, room)...)
		return append(append(lines, under...), v.chart(w, chart)...)
	}
	lines = append(lines, v.empty(d)...)
	if room := h - len(lines); room > 8 {
		lines = append(lines, "")
		lines = append(lines, v.chart(w, 7)...)
	}
	return lines
}

// selected is what there is to say about the letter under the cursor.
func (v *DeadLetters) selected(w int) []string {
	at := v.table.Cursor()
	if at < 0 || at >= len(v.rows) {
		return nil
	}
	e, r := v.env, &v.rows[at]
	decided := r.Decision
	if r.Open() {
		decided = "waits for a person"
	} else if r.DecidedBy != "" {
		decided += " by " + r.DecidedBy
	}
	if r.Detail != "" {
		decided += ": " + r.Detail
	}
	title := "dead letter " + strconv.FormatInt(r.ID, 10)
	if r.Died != nil {
		title += ", died " + widget.Age(e.Since(*r.Died)) + " ago"
	}
	return []string{
		e.Rule(title, "attune-executor dlq show "+strconv.FormatInt(r.ID, 10), w),
		" " + widget.Cut(widget.Clean(decided), max(1, w-2)),
	}
}

// depth is the line about the queue on the broker.
func (v *DeadLetters) depth(d *monitor.DeadLetters) []string {
	e := v.env
	label := " " + e.Paint(theme.Dim, "broker   ")
	source, ok := d.Source(monitor.SourceBroker)
	switch {
	case d.Queue != nil:
		q := d.Queue
		consumers := e.BrokerNum(*q, q.Consumers)
		if q.Consumers == 0 && !q.Uncounted {
			consumers = e.Paint(theme.Warn, "0 ▲ nobody handles them")
		}
		return []string{label + "ready " + e.BrokerNum(*q, q.Ready) + "   unacked " + e.BrokerNum(*q, q.Unacked) + "   consumers " + consumers +
			"   " + e.Change(screen.SeriesDead, 5*time.Minute) + "/5m"}
	case d.QueueMissing:
		return []string{
			label + e.Paint(theme.Warn, "▲ there is no queue "+monitor.DeadLetterQueue+": what expires is lost"),
			"          An executor declares it when it starts.",
		}
	case ok && !source.OK():
		return []string{label + "? " + widget.Clean(source.Error)}
	default:
		return []string{label + widget.Unknown}
	}
}

// ledger is what the database knows about handled dead letters.
func (v *DeadLetters) ledger(d *monitor.DeadLetters) []string {
	e := v.env
	label := " " + e.Paint(theme.Dim, "ledger   ")
	source, ok := d.Source(monitor.SourceDatabase)
	switch {
	case ok && !source.OK():
		return []string{label + "? " + widget.Clean(source.Error)}
	case d.Ledger == nil && d.Expired != nil:
		return []string{label + widget.Unknown + "  no ledger is kept here; " + e.Count(*d.Expired) + " recent failures say that a worker queue expired"}
	case d.Ledger == nil:
		return []string{label + widget.Unknown}
	}
	l := d.Ledger
	waiting := "waiting for a person " + e.Count(l.Open)
	if l.Oldest != nil {
		waiting = e.Paint(theme.Warn, waiting+", the first for "+widget.Age(e.Since(*l.Oldest)))
	}
	lines := []string{label + e.Count(l.LastDay) + " in 24 h   " + strconv.FormatFloat(l.PerMinute, 'f', 1, 64) + "/m   " + waiting}
	var groups []string
	for _, g := range l.ByReason[:min(4, len(l.ByReason))] {
		groups = append(groups, widget.Clean(g.Reason)+" "+widget.Clean(g.Decision)+" "+e.Num(g.Count))
	}
	if len(groups) > 0 {
		lines = append(lines, " "+e.Paint(theme.Dim, "groups   ")+strings.Join(groups, " · "))
	}
	return lines
}

// empty says why there is nothing to list and what that means.
func (v *DeadLetters) empty(d *monitor.DeadLetters) []string {
	switch {
	case d.Ledger != nil && d.Queue != nil && d.Queue.Ready == 0 && d.Queue.Consumers > 0:
		return []string{" No dead letters: none on the broker, none in the ledger. A handler is there to take them."}
	case d.Ledger != nil && d.Queue != nil && d.Queue.Ready > 0:
		return []string{" None in the ledger; " + v.env.Num(d.Queue.Ready) + " lie on the broker."}
	case d.Ledger != nil:
		return []string{" None in the ledger."}
	default:
		return []string{" What was decided cannot be listed without a ledger.", " 3 then z lists the failed executions."}
	}
}

func (v *DeadLetters) chart(w, h int) []string {
	if h < 3 {
		return nil
	}
	e := v.env
	lines := []string{e.Rule("depth 60 min", e.Change(screen.SeriesDead, 5*time.Minute)+" in 5m", w)}
	values := e.Data.History.Trend(screen.SeriesDead, time.Hour, max(1, min(120, w-10)))
	return append(lines, widget.Chart(values, min(w, 130), h-1, &e.Theme.Glyphs)...)
}
