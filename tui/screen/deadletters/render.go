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

// lowHeight is the height below which the list takes nearly all lines.
const lowHeight = 10

// Render draws the view.
func (v *DeadLetters) Render(w, h int) []string {
	e, d := v.env, v.env.Data.DeadLetters
	if d == nil {
		return e.Missing(screen.FeedDeadLetters, "the dead letters", w)
	}
	at := v.layout(w, h)
	body := v.Nothing
	if v.Len() > 0 {
		body = func() []string { return v.Table().Lines(w, at.table, e.Theme) }
	}
	lines := append(append(at.above, widget.Fit(body(), w, at.table)...), at.below...)
	if at.chart > 0 {
		lines = append(lines, v.chart(w, at.chart)...)
	}
	return lines
}

// Places is where the list is drawn.
func (v *DeadLetters) Places(w, h int) screen.Places {
	at := v.layout(w, h)
	return screen.Places{{Table: v.Table(), Top: len(at.above), W: w, H: at.table}}
}

// SetSize fits the groups into a body of w by h cells.
func (v *DeadLetters) SetSize(w, h int) { v.groups.SetSize(w, v.layout(w, h).groups) }

// layout is the lines above and below the table, and the heights of the tables and the chart.
type layout struct {
	above, below         []string
	table, groups, chart int
}

func (v *DeadLetters) layout(w, h int) layout {
	at := layout{above: v.header(w)}
	h -= len(at.above)
	at.below = v.selected(w)
	if h < lowHeight && len(at.below) > 0 {
		at.below = at.below[1:2]
		if v.Table().Marks() > 0 {
			at.below[0] = v.counts(w)
		}
	}
	h -= len(at.below)
	if v.PreviewShown() {
		at.groups = v.groupsHeight(w, h)
		groups := v.groupLines(w, h)
		at.below, h = append(at.below, groups...), h-len(groups)
	}
	if v.PreviewShown() && h > 14 {
		at.chart, h = 6, h-6
	}
	at.table = max(2, h)
	return at
}

// header is the state of the broker's queue and of the ledger.
func (v *DeadLetters) header(w int) []string {
	e, d := v.env, v.env.Data.DeadLetters
	if d == nil {
		return nil
	}
	broker, ledger := " "+e.Dim("broker   "), " "+e.Dim("ledger   ")
	var lines []string
	switch at, ok := d.Source(monitor.SourceBroker); {
	case d.Queue != nil:
		q := d.Queue
		consumers := e.BrokerNum(*q, q.Consumers)
		if q.Consumers == 0 && !q.Uncounted {
			consumers = e.Paint(theme.Warn, "0 ▲ S takes them")
		}
		lines = append(lines, broker+"ready "+e.BrokerNum(*q, q.Ready)+"   unacked "+e.BrokerNum(*q, q.Unacked)+
			"   consumers "+consumers+"   "+e.Change(screen.SeriesDead, 5*time.Minute)+"/5m")
	case d.QueueMissing:
		lines = append(lines,
			broker+e.Paint(theme.Warn, "▲ there is no queue "+monitor.DeadLetterQueue+": expired messages are lost"),
			"          An executor declares it when it starts.")
	case ok && !at.OK():
		reason := strings.ReplaceAll(at.Error, "\n", "; ")
		if err := e.Data.Fresh(screen.FeedBroker).Err; err != nil {
			reason = err.Error()
		}
		lines = append(lines, broker+"? "+widget.Clean(reason))
	default:
		lines = append(lines, broker+widget.Unknown)
	}
	switch at, ok := d.Source(monitor.SourceDatabase); {
	case ok && !at.OK():
		lines = append(lines, ledger+"? "+widget.Clean(at.Error))
	case d.Ledger == nil:
		lines = append(lines, ledger+e.Paint(theme.Warn, "there is no ledger here: this dashboard only reads"))
	default:
		l := d.Ledger
		waiting := "waiting for a person " + e.Count(l.Open)
		if l.Oldest != nil {
			waiting = e.Paint(theme.Warn, waiting+", the first for "+widget.Age(e.Since(*l.Oldest)))
		}
		lines = append(lines, ledger+e.Count(l.LastDay)+" in 24 h   "+strconv.FormatFloat(l.PerMinute, 'f', 1, 64)+
			"/m   "+waiting)
	}
	if d.Running != "" {
		running := "▲ an operation is running: " + widget.Clean(d.Running)
		lines = append(lines, " "+e.Paint(theme.Warn, widget.Cut(running, max(1, w-2))))
	}
	return lines
}

// selected describes the selected dead letter: a rule, its decision and verdict, and the counts.
func (v *DeadLetters) selected(w int) []string {
	e, r := v.env, v.Current()
	if r == nil {
		return nil
	}
	decided := r.Decision
	if r.Open() {
		decided = "waits for a person"
	} else if r.DecidedBy != "" {
		decided += " by " + r.DecidedBy
	}
	if r.Detail != "" {
		decided += ": " + r.Detail
	}
	text := widget.Clean(r.verdict.sign + " " + decided + " · " + r.Verdict.Why)
	return []string{
		e.Rule(r.name(), "attune-executor dlq show "+r.key(), w), " " + widget.Cut(text, max(1, w-2)),
		v.counts(w),
	}
}

// counts says what a requeue would do with the marked dead letters.
func (v *DeadLetters) counts(w int) string {
	e, n, more := v.env, v.Table().Marks(), v.more()
	switch {
	case n == 0 && more == "":
		return ""
	case n == 0:
		return e.Dim(widget.Cut(" "+e.Num(int64(v.Len()))+" listed, "+widget.Clean(more), max(1, w-1)))
	}
	var by [classes]int64
	for i := range v.all {
		if r := &v.all[i]; v.Table().MarkName(r.key()) != "" {
			by[r.verdict.class]++
		}
	}
	text := " " + e.Num(int64(n)) + " marked: " + e.Num(by[requeue]) + " can be requeued, "
	if by[again] > 0 {
		text += e.Num(by[again]) + " would end here again, "
	}
	text += e.Num(by[stale]) + " stale, " + e.Num(by[blocked]) + " blocked, " + e.Num(by[other]) + " other"
	return e.Paint(theme.Accent, widget.Cut(text, max(1, w-1)))
}

func (v *DeadLetters) chart(w, h int) []string {
	e, n := v.env, v.env.Points(min(120, w-10))
	values, ok := e.Waited(n)
	rule := e.Rule("waiting for a person, 60 min", "", w)
	if !ok { // without a ledger only the broker knows
		values = e.Data.History.Trend(screen.SeriesDead, time.Hour, n)
		rule = e.Rule("depth 60 min", e.Change(screen.SeriesDead, 5*time.Minute)+" in 5m", w)
	}
	return append([]string{rule}, widget.Chart(values, min(w, 130), h-1, e.Theme)...)
}

// comesHere says which messages become dead letters.
const comesHere = "A message that expires or is refused comes here, such as work that no worker took: " +
	"docs/dead-letters.md"

// emptyLines say why there is no dead letter, and what to do.
func (v *DeadLetters) emptyLines() []string {
	d := v.env.Data.DeadLetters
	var texts []string
	switch {
	case d.DatabaseErr() != nil:
		texts = []string{"Which dead letters the ledger has is not known: it could not be read."}
	case d.Ledger == nil:
		texts = []string{
			"Dead letters are triaged as rows of the ledger, and this installation has none. " +
				"`attune-executor migrate up` adds",
			"dead_letter (the ledger), operator_audit (who did what) and outbox (messages to publish), " +
				"and changes no published table's rows.",
			"Until then the broker drops dead letters, or keeps them in a bound queue. This view only reads.",
		}
	case d.Queue != nil && d.Queue.Ready == 0 && d.Queue.Consumers > 0:
		texts = []string{
			"No dead letters: none on the broker, none in the ledger. A handler is there to take them.",
			comesHere,
		}
	case d.Queue != nil && d.Queue.Ready > 0:
		texts = []string{"None in the ledger; " + v.env.Num(d.Queue.Ready) + " lie on the broker: S takes them."}
	default:
		texts = []string{"None in the ledger.", comesHere}
	}
	var lines []string
	for _, text := range texts {
		lines = append(lines, widget.Hang(" ", text, v.env.Width-1)...)
	}
	return lines
}
