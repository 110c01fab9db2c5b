package deadletters

import (
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// smallest is the least room below the facts in which the list does not need all of it.
const smallest = 10

// Render draws the view.
func (v *DeadLetters) Render(w, h int) []string {
	lines, _ := v.draw(w, h)
	return lines
}

// draw draws the view and says on which line the table begins.
func (v *DeadLetters) draw(w, h int) (lines []string, first int) {
	e, d := v.env, v.env.Data.DeadLetters
	if d == nil {
		return e.Missing(screen.FeedDeadLetters, "the dead letters", w), 0
	}
	lines = append(v.depth(d), v.ledger(d)...)
	if d.Running != "" {
		acts := "▲ an operator acts on them: " + widget.Clean(d.Running)
		lines = append(lines, " "+e.Paint(theme.Warn, widget.Cut(acts, max(1, w-2))))
	}
	first = len(lines)
	under := v.selected(w)
	if h-len(lines) < smallest && len(under) > 0 { // the list comes first
		under = under[1:2]
		if v.Table().Marks() > 0 {
			under[0] = v.counts(w)
		}
	}
	var groups []string
	chart := 0
	if v.Previewed() {
		groups = v.groupLines(w, h-len(lines)-len(under))
		if h-len(lines)-len(under)-len(groups) > 14 {
			chart = 6
		}
	}
	room := max(2, h-len(lines)-len(under)-len(groups)-chart)
	table := []string{""}
	if v.Len() > 0 {
		table = v.Table().Lines(w, room, e.Theme)
	} else {
		for _, text := range v.empty(d) { // in as many lines as it takes
			table = append(table, widget.Hang(" ", strings.TrimPrefix(text, " "), w-1)...)
		}
	}
	lines = append(append(append(lines, widget.Fit(table, w, room)...), under...), groups...)
	return append(lines, v.chart(w, chart)...), first
}

// selected is what there is to say about the letter under the cursor.
func (v *DeadLetters) selected(w int) []string {
	e, r := v.env, v.Current()
	if r == nil {
		return nil
	}
	decided := r.decision
	if r.ledger.Open() {
		decided = "waits for a person"
	} else if r.ledger.DecidedBy != "" {
		decided += " by " + r.ledger.DecidedBy
	}
	if r.ledger.Detail != "" {
		decided += ": " + r.ledger.Detail
	}
	said := decided + " · " + r.verdict.why
	return []string{
		e.Rule(r.name, "attune-executor dlq show "+r.key, w),
		" " + widget.Cut(widget.Clean(r.verdict.sign+" "+said), max(1, w-2)), v.counts(w),
	}
}

// counts says what a requeue of the marked would do.
func (v *DeadLetters) counts(w int) string {
	n := v.Table().Marks()
	if n == 0 {
		if more := v.more(); more != "" {
			return v.env.Dim(widget.Cut(" "+v.env.Num(int64(v.Len()))+" listed, "+widget.Clean(more), max(1, w-1)))
		}
		return ""
	}
	var by [blocked + 1]int
	for _, r := range v.chosen() {
		by[r.verdict.class]++
	}
	e := v.env
	text := " " + e.Num(int64(n)) + " marked: " + e.Num(int64(by[requeue])) + " can be requeued, " +
		e.Num(int64(by[stale])) + " stale, " + e.Num(int64(by[blocked])) + " blocked, " +
		e.Num(int64(by[other])) + " other"
	return e.Paint(theme.Accent, widget.Cut(text, max(1, w-1)))
}

func (v *DeadLetters) chart(w, h int) []string {
	if h < 3 {
		return nil
	}
	e, n := v.env, max(1, min(120, w-10))
	values, ok := e.Waited(n)
	lines := []string{e.Rule("waiting for a person, 60 min", "", w)}
	if !ok { // without a ledger only the broker knows
		values = e.Data.History.Trend(screen.SeriesDead, time.Hour, n)
		lines = []string{e.Rule("depth 60 min", e.Change(screen.SeriesDead, 5*time.Minute)+" in 5m", w)}
	}
	return append(lines, widget.Chart(values, min(w, 130), h-1, &e.Theme.Glyphs)...)
}

// depth is the line about the queue on the broker.
func (v *DeadLetters) depth(d *monitor.DeadLetters) []string {
	e := v.env
	label := " " + e.Dim("broker   ")
	at, ok := d.Source(monitor.SourceBroker)
	switch {
	case d.Queue != nil:
		q := d.Queue
		consumers := e.BrokerNum(*q, q.Consumers)
		if q.Consumers == 0 && !q.Uncounted {
			consumers = e.Paint(theme.Warn, "0 ▲ S takes them")
		}
		return []string{label + "ready " + e.BrokerNum(*q, q.Ready) + "   unacked " + e.BrokerNum(*q, q.Unacked) +
			"   consumers " + consumers + "   " + e.Change(screen.SeriesDead, 5*time.Minute) + "/5m"}
	case d.QueueMissing:
		return []string{
			label + e.Paint(theme.Warn, "▲ there is no queue "+monitor.DeadLetterQueue+": what expires is lost"),
			"          An executor declares it when it starts.",
		}
	case ok && !at.OK():
		return []string{label + "? " + widget.Clean(at.Error)}
	default:
		return []string{label + widget.Unknown}
	}
}

// ledger is what the database knows about dead letters.
func (v *DeadLetters) ledger(d *monitor.DeadLetters) []string {
	e := v.env
	label := " " + e.Dim("ledger   ")
	at, ok := d.Source(monitor.SourceDatabase)
	switch {
	case ok && !at.OK():
		return []string{label + "? " + widget.Clean(at.Error)}
	case d.Ledger == nil:
		return []string{label + e.Paint(theme.Warn, "there is no ledger here: this dashboard only reads")}
	}
	l := d.Ledger
	waiting := "waiting for a person " + e.Count(l.Open)
	if l.Oldest != nil {
		waiting = e.Paint(theme.Warn, waiting+", the first for "+e.AgeOf(l.Oldest))
	}
	pace := strconv.FormatFloat(l.PerMinute, 'f', 1, 64) + "/m   "
	return []string{label + e.Count(l.LastDay) + " in 24 h   " + pace + waiting}
}

// comesHere says what becomes a dead letter.
const comesHere = " A message that expires or is refused comes here, such as work that no worker took: " +
	"docs/dead-letters.md"

// empty says why there is nothing to list and what to do.
func (v *DeadLetters) empty(d *monitor.DeadLetters) []string {
	switch {
	case (v.Filter() != "" || v.Problems()) && len(v.all) > 0:
		text := " None of " + v.env.Num(int64(len(v.all))) + " matches the filter; esc clears it."
		if v.Problems() {
			text = " None of " + v.env.Num(int64(len(v.all))) + " asks for somebody; z shows all."
		}
		return []string{text}
	case d.Ledger == nil:
		return []string{
			" Dead letters are triaged as rows of the ledger, and this installation has none. " +
				"`attune-executor migrate up` adds",
			" dead_letter (the ledger), operator_audit (who did what) and outbox (messages to publish), " +
				"and changes no published table's rows.",
			" Until then the broker drops what dies, or keeps it where its queue is bound: nothing is lost by looking.",
		}
	case d.Queue != nil && d.Queue.Ready == 0 && d.Queue.Consumers > 0:
		const none = " No dead letters: none on the broker, none in the ledger. A handler is there to take them."
		return []string{none, comesHere}
	case d.Queue != nil && d.Queue.Ready > 0:
		return []string{" None in the ledger; " + v.env.Num(d.Queue.Ready) + " lie on the broker: S takes them."}
	default:
		return []string{" None in the ledger.", comesHere}
	}
}
