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

// depth is the line about the queue on the broker.
func (v *DeadLetters) depth(d *monitor.DeadLetters) []string {
	e := v.env
	label := " " + e.Paint(theme.Dim, "broker   ")
	at, ok := d.Source(monitor.SourceBroker)
	switch {
	case d.Queue != nil:
		q := d.Queue
		consumers := e.BrokerNum(*q, q.Consumers)
		if q.Consumers == 0 && !q.Uncounted {
			consumers = e.Paint(theme.Warn, "0 ▲ S takes them")
		}
		return []string{label + "ready " + e.BrokerNum(*q, q.Ready) + "   unacked " + e.BrokerNum(*q, q.Unacked) +
			"   consumers " + consumers +
			"   " + e.Change(screen.SeriesDead, 5*time.Minute) + "/5m"}
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
	label := " " + e.Paint(theme.Dim, "ledger   ")
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
		waiting = e.Paint(theme.Warn, waiting+", the first for "+widget.Age(e.Since(*l.Oldest)))
	}
	return []string{label + e.Count(l.LastDay) + " in 24 h   " + strconv.FormatFloat(l.PerMinute, 'f', 1, 64) +
		"/m   " + waiting}
}

// nothing says in as many lines as it takes why no letter is listed.
func (v *DeadLetters) nothing(d *monitor.DeadLetters, w int) []string {
	var lines []string
	for _, text := range v.empty(d) {
		lines = append(lines, widget.Hang(" ", strings.TrimPrefix(text, " "), w-1)...)
	}
	return lines
}

// comesHere says what becomes a dead letter.
const comesHere = " A message that expires or is refused comes here, such as work that no worker took: docs/dead-letters.md"

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
			" Dead letters are triaged as rows of the ledger, and this installation has none. `attune-executor migrate up` adds",
			" dead_letter (the ledger), operator_audit (who did what) and outbox (messages to publish), and changes no published table's rows.",
			" Until then the broker drops what dies, or keeps it where its queue is bound: nothing is lost by looking.",
		}
	case d.Queue != nil && d.Queue.Ready == 0 && d.Queue.Consumers > 0:
		return []string{" No dead letters: none on the broker, none in the ledger. A handler is there to take them.",
			comesHere}
	case d.Queue != nil && d.Queue.Ready > 0:
		return []string{" None in the ledger; " + v.env.Num(d.Queue.Ready) + " lie on the broker: S takes them."}
	default:
		return []string{" None in the ledger.", comesHere}
	}
}

// groupLines are the groups: a table where there is room, or where they have the focus;
// else a line, and on a small terminal nothing.
func (v *DeadLetters) groupLines(w, h int) []string {
	e := v.env
	if len(v.gathered) == 0 {
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
	room := min(len(v.gathered)+1, max(3, h/4))
	if small {
		room = min(len(v.gathered)+1, max(3, h/2))
	}
	lines := []string{e.Rule("groups "+groupings[v.by].name, hint, w)}
	return append(lines, widget.Fit(v.groups.Lines(w, room, e.Theme), w, room)...)
}

func (v *DeadLetters) groupText(w int) []string {
	e := v.env
	parts := make([]string, 0, 4)
	for i, g := range v.gathered {
		if i == 4 {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, widget.Clean(strings.Join(g.parts, " "))+" "+e.Num(int64(len(g.keys))))
	}
	return []string{" " + e.Paint(theme.Dim, "groups   ") + widget.Cut(strings.Join(parts, " · "), max(1, w-12))}
}
