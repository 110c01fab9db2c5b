package deadletters

import (
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// depth is the line about the queue on the broker.
func (v *DeadLetters) depth(d *monitor.DeadLetters, w int) []string {
	e := v.env
	label := " " + e.Paint(theme.Dim, "broker   ")
	at, ok := d.Source(monitor.SourceBroker)
	switch {
	case d.Queue != nil:
		q := d.Queue
		consumers := e.BrokerNum(*q, q.Consumers)
		if q.Consumers == 0 && !q.Uncounted {
			consumers = e.Paint(theme.Warn, "0 ▲ nobody handles them")
		}
		text := label + "ready " + e.BrokerNum(*q, q.Ready) + "   unacked " + e.BrokerNum(*q, q.Unacked) + "   consumers " + consumers +
			"   " + e.Change(screen.SeriesDead, 5*time.Minute) + "/5m"
		if s := e.Data.Snapshot; s != nil && w >= 100 {
			text += "   queue " + dash(s.Queue.Type) + "   ttl " + dash(s.Queue.TTL) + "   DLX of its own " + dash(s.Queue.DLX) +
				"   max-length " + dash(s.Queue.MaxLength)
		}
		return []string{text}
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

// sourceLines say where the list comes from, and how old it is.
func (v *DeadLetters) sourceLines(d *monitor.DeadLetters, w int) []string {
	e := v.env
	names := make([]string, 0, 3)
	for s := sourceLedger; s <= sourceSpool; s++ {
		name := v.sourceName(s)
		if s == sourceBroker && e.Data.Snapshot != nil {
			name += " " + e.Num(int64(len(e.Data.Snapshot.Letters)))
		}
		if s == v.source {
			name = e.Paint(theme.Accent, "["+name+"]")
		}
		names = append(names, name)
	}
	head := " " + e.Paint(theme.Dim, "source   ") + strings.Join(names, "  ")
	switch v.source {
	case sourceBroker:
		return []string{head, " " + e.Paint(theme.Dim, "snapshot ") + v.age(w)}
	case sourceSpool:
		return []string{head, " " + e.Paint(theme.Dim, "spool    ") + v.spool(w)}
	}
	return append([]string{head}, v.ledger(d)...)
}

// spool says what the copies are for, or that some cannot be opened.
func (v *DeadLetters) spool(w int) string {
	shut, why := 0, ""
	for _, s := range v.env.Data.Spool {
		if s.Trouble != "" {
			shut, why = shut+1, s.Trouble
		}
	}
	if shut == 0 {
		return "copies of what was removed; u puts those of one operation back"
	}
	text := v.env.Num(int64(shut)) + " " + act.Counted(shut, "operation") + " cannot be opened: " + widget.Clean(why)
	return v.env.Paint(theme.Warn, widget.Cut("▲ "+text, max(1, w-11)))
}

// age says when the snapshot was taken, and what another one costs.
func (v *DeadLetters) age(w int) string {
	e, s := v.env, v.env.Data.Snapshot
	if s == nil {
		return "none was taken; S takes one, which touches the messages"
	}
	text := s.At.UTC().Format("15:04:05Z") + " (" + widget.Age(e.Clock.Sub(s.At)) + " ago), " + e.Num(int64(len(s.Letters))) + " of " +
		e.Num(int64(s.Queue.Ready)) + " read"
	if s.Cut != "" && w >= 100 {
		text += ", " + s.Cut
	}
	return text + "   " + e.Paint(theme.Warn, "▲ each "+widget.Clean(s.Cost))
}

// ledger is what the database knows about handled dead letters.
func (v *DeadLetters) ledger(d *monitor.DeadLetters) []string {
	e := v.env
	label := " " + e.Paint(theme.Dim, "ledger   ")
	at, ok := d.Source(monitor.SourceDatabase)
	switch {
	case ok && !at.OK():
		return []string{label + "? " + widget.Clean(at.Error)}
	case d.Ledger == nil:
		return []string{label + widget.Unknown + "  no ledger is kept here; " + e.Num(int64(len(d.Handled))) + " recent failures say that a worker queue expired"}
	}
	l := d.Ledger
	waiting := "waiting for a person " + e.Count(l.Open)
	if l.Oldest != nil {
		waiting = e.Paint(theme.Warn, waiting+", the first for "+widget.Age(e.Since(*l.Oldest)))
	}
	return []string{label + e.Count(l.LastDay) + " in 24 h   " + strconv.FormatFloat(l.PerMinute, 'f', 1, 64) + "/m   " + waiting}
}

// nothing says in as many lines as it takes why no letter is listed.
func (v *DeadLetters) nothing(d *monitor.DeadLetters, w int) []string {
	var lines []string
	for _, text := range v.empty(d) {
		lines = append(lines, widget.Hang(" ", strings.TrimPrefix(text, " "), w-1)...)
	}
	return lines
}

// empty says why there is nothing to list and what that means.
func (v *DeadLetters) empty(d *monitor.DeadLetters) []string {
	switch {
	case (v.Filter() != "" || v.problems) && len(v.all) > 0:
		text := " None of " + v.env.Num(int64(len(v.all))) + " matches the filter; esc clears it."
		if v.problems {
			text = " None of " + v.env.Num(int64(len(v.all))) + " asks for somebody; z shows all."
		}
		return []string{text}
	case v.source == sourceBroker && v.env.Data.Snapshot == nil:
		return []string{" The messages on the broker are looked at only when asked: S."}
	case v.source == sourceBroker:
		return []string{" Nothing lay there when the snapshot was taken."}
	case v.source == sourceSpool:
		return []string{" No copies: nothing was removed from here."}
	case d.Ledger != nil && d.Queue != nil && d.Queue.Ready == 0 && d.Queue.Consumers > 0:
		return []string{" No dead letters: none on the broker, none in the ledger. A handler is there to take them."}
	case d.Ledger != nil && d.Queue != nil && d.Queue.Ready > 0:
		return []string{" None in the ledger; " + v.env.Num(d.Queue.Ready) + " lie on the broker: b, then S looks at them."}
	case d.Ledger != nil:
		return []string{" None in the ledger."}
	default:
		return []string{" None of the newest executions says that its hand-over expired.", " b, then S looks at what lies on the broker."}
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
