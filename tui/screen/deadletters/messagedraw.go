package deadletters

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Render draws the view.
func (m *Message) Render(w, h int) []string {
	e, r := m.env, m.current()
	if r == nil {
		return []string{"", " " + e.Dim("The letter is no longer in the list. esc goes back.")}
	}
	l := m.letter()
	if l == nil {
		return e.Missing(screen.FeedLetter, r.name, w)
	}
	plan := m.plan(r)
	below := func(lines []string, w int) []string {
		room := max(3, h-len(lines)-len(plan))
		return append(append(lines, widget.Fit(m.document(w, room), w, room)...), plan...)
	}
	if w >= 120 {
		lw, rw := screen.Halves(w)
		left := below(append(m.head(l, lw-1), m.deaths(l, lw-1, 8)...), lw-1)
		right := append(m.row(r, l), m.compare(r, l, rw)...)
		return e.Beside(left, append(append(right, m.same(r)...), m.target(r, l)...), w, h)
	}
	plan = plan[:min(len(plan), 2)]
	lines := append(m.head(l, w), m.deaths(l, w, 4)...)
	return below(append(lines, m.compare(r, l, w)...), w)
}

func (m *Message) head(l *letter, w int) []string {
	id := widget.CutMiddle(widget.Clean(dash(l.of.MessageID)), max(8, w/3))
	text := " id " + id + "   " + widget.Clean(dash(l.of.Type)) + " " + widget.Clean(l.version) + "   " +
		strconv.FormatInt(l.of.Size, 10) + " B"
	lines := []string{widget.Cut(text, w)}
	if l.again != "" {
		lines = append(lines, " "+m.env.Paint(theme.Warn, widget.Cut("▲ "+widget.Clean(l.again), max(1, w-2))))
	}
	return append(lines, "")
}

// deaths are the history as the broker keeps it.
func (m *Message) deaths(l *letter, w, most int) []string {
	e := m.env
	lines := []string{widget.Spread(" "+e.Dim("DEATHS"), e.Dim("time is the first death of its kind"), w-1)}
	if len(l.deaths) == 0 {
		return append(lines, "  none that the broker has written down", "")
	}
	for i, d := range l.deaths {
		if i*2 >= most {
			lines = append(lines, e.Dim("  … "+strconv.Itoa(len(l.deaths)-i)+" earlier"))
			break
		}
		at := "-"
		if !d.Time.IsZero() {
			at = d.Time.UTC().Format("2006-01-02 15:04:05Z")
		}
		text := "  " + strconv.Itoa(i+1) + " " + dash(d.Reason) + "  " + dash(d.Queue) + "  x" +
			strconv.FormatInt(d.Count, 10) + "  first " + at
		if d.Expiration != "" {
			text += "  ttl " + d.Expiration + "ms"
		}
		lines = append(lines, widget.Cut(widget.Clean(text), w),
			widget.Cut(widget.Clean("    ex "+dash(d.Exchange)+"  key "+dash(strings.Join(d.RoutingKeys, ", "))), w))
	}
	return append(lines, "")
}

func (m *Message) document(w, h int) []string {
	state := "tab goes in"
	if m.inside {
		state = m.doc.Status()
	}
	title := widget.Spread(" "+m.env.Tabs(sections[:], m.section), m.env.Dim(widget.Clean(state)), w-1)
	return append([]string{title}, m.doc.Lines(w, max(0, h-1), m.env.Theme)...)
}

// row is the pane about the execution.
func (m *Message) row(r *row, l *letter) []string {
	e, x := m.env, l.of.ExecutionNow
	if x == nil {
		return []string{e.Dim("EXECUTION ROW"), "there is none", ""}
	}
	action := widget.Clean(x.ActionRef)
	if x.ActionGone {
		action += e.Paint(theme.Warn, "  ▲ deleted")
	}
	parent := screen.Reference(x.Parent)
	if x.ParentStatus != "" {
		parent += "  " + e.State(x.ParentStatus)
	}
	lines := []string{e.Dim("EXECUTION ROW " + strconv.FormatInt(x.ID, 10) + "   enter opens")}
	for _, fact := range []screen.Fact{
		{Name: "status", Text: e.State(x.Status) + "  " + widget.Clean(x.Reason)},
		{Name: "action", Text: action},
		{Name: "worker", Text: screen.Reference(x.WorkerID)},
		{Name: "parent", Text: parent},
		{Name: "updated", Text: x.Updated.UTC().Format("15:04:05.000Z")},
		{Name: "tries", Text: r.tries},
	} {
		lines = append(lines, e.Label(fact.Name, 10)+fact.Text)
	}
	return append(lines, "")
}

// compare holds what the message says against what the row says now.
func (m *Message) compare(r *row, l *letter, w int) []string {
	e, said, x := m.env, &l.said, l.of.ExecutionNow
	each := max(8, min(27, (w-24)/2))
	lines := []string{" " + e.Dim(widget.Left("MESSAGE SAYS", each+12)+"ROW SAYS NOW")}
	if said.ExecutionID == nil {
		return append(lines, "  it names no execution", "")
	}
	if x == nil {
		return append(lines, "  execution "+screen.Reference(said.ExecutionID)+": there is no such row", "")
	}
	cell := func(text string) string { return widget.Left(widget.CutMiddle(widget.Clean(text), each-2), each) }
	line := func(name, message, row string, same bool, note string) {
		sign := e.Paint(theme.Good, "✓")
		if !same {
			sign = e.Paint(theme.Warn, "▲ "+note)
		}
		lines = append(lines, "  "+e.Label(name, 11)+cell(message)+cell(row)+sign)
	}
	id := strconv.FormatInt(x.ID, 10)
	line("execution", screen.Reference(said.ExecutionID), id, *said.ExecutionID == x.ID, "")
	if said.ActionRef != "" {
		line("action", said.ActionRef, x.ActionRef, said.ActionRef == x.ActionRef, "differs")
	}
	if said.WorkerID != nil {
		moved := x.WorkerID == nil || *said.WorkerID != *x.WorkerID
		line("worker", screen.Reference(said.WorkerID), screen.Reference(x.WorkerID), !moved, "moved")
	}
	if at := said.AttemptAt; at != nil {
		const layout = "15:04:05.000Z"
		line("attempt at", at.UTC().Format(layout), x.Updated.UTC().Format(layout), at.Equal(x.Updated), "moved")
	}
	if n := said.Attempt; n != nil {
		line("attempt", screen.Reference(n), screen.Reference(&x.Attempt), *n == x.Attempt, "newer")
	}
	return append(lines, "  "+e.Label("status", 11)+widget.Blank(each)+e.State(x.Status)+"  "+
		e.Theme.Glyphs.Arrow+" "+r.verdict.text, "")
}

// same counts the letters with the same problem.
func (m *Message) same(r *row) []string {
	v := m.list
	key, _ := groupings[v.by].key(r)
	for _, g := range v.groups.List {
		if g.key == key {
			return []string{
				m.env.Dim("SAME PROBLEM"), strconv.Itoa(len(g.keys)) + " by " + groupings[v.by].name,
				"in the list tab, then space marks them all", "",
			}
		}
	}
	return nil
}

// check is one thing about where a requeue leads, and whether it is as it should be.
func (m *Message) check(ok bool, text string) string {
	if ok {
		return m.env.Paint(theme.Good, "✓ ") + widget.Clean(text)
	}
	return m.env.Paint(theme.Warn, "▲ ") + widget.Clean(text)
}

// queue is whether a queue is there, and somebody takes from it.
func (m *Message) queue(name, note string) string {
	if q, ok := m.env.Data.Broker.Queue(name); ok {
		return m.check(q.Consumers > 0, name+" has "+m.env.Consumers(&q)+note)
	}
	return m.check(false, "there is no queue "+name+note)
}

// target is what is known of where a requeue leads; the plan asks the broker again.
func (m *Message) target(r *row, l *letter) []string {
	e, b := m.env, m.env.Data.Broker
	lines := []string{e.Dim("TARGET CHECK") + e.Mark(screen.FeedBroker)}
	if b == nil {
		return append(lines, "unknown: the broker was not read")
	}
	if exchange, key, ok := m.Target(); ok {
		lines = append(lines, m.routeLines(exchange, key)...)
	} else if r.execution != 0 {
		lines = append(lines, m.queue(requestQueue, ""))
	}
	if len(l.deaths) > 0 && l.deaths[0].Queue != "" && r.execution != 0 {
		lines = append(lines, m.queue(l.deaths[0].Queue, " (not used: a worker is chosen)"))
	}
	switch {
	case b.AlarmsUnknown != "":
		return append(lines, m.check(false, "alarms are unknown: "+b.AlarmsUnknown))
	case len(b.Alarms) > 0:
		return append(lines, m.check(false, "alarm: "+b.Alarms[0]))
	default:
		return append(lines, m.check(true, "no memory or disk alarm"))
	}
}

// plan is what R would do, step by step.
func (m *Message) plan(r *row) []string {
	lines := []string{m.env.Rule("PLAN PREVIEW  R", "nothing done yet", 60)}
	steps := []string{
		"the message is put into the outbox for " + r.ledger.Exchange + ", key " + r.ledger.RoutingKey,
		"the letter is decided as requeued, in the same commit",
	}
	switch {
	case r.verdict.class != requeue:
		steps = []string{"nothing: " + r.verdict.why}
	case r.ledger.Verdict.Requeue == monitor.RequeueRepeats:
		id := strconv.FormatInt(r.execution, 10)
		steps = []string{
			"execution " + id + " is repeated as a new execution, through admission",
			"the letter is decided as requeued, with its audit, in the same commit",
			"its request is in the outbox; a running engine sends it",
		}
	}
	for i, step := range steps {
		lines = append(lines, "  "+strconv.Itoa(i+1)+" "+widget.Clean(step))
	}
	return lines
}

// Where requests for executions are sent, and where they wait for a scheduler.
const (
	requestExchange = "attune.executions"
	requestKey      = "execution.requested"
	requestQueue    = "attune.execution.requests.queue"
)

// Target is where a requeue of the letter in sight sends a message to; false where it
// would send none.
func (m *Message) Target() (exchange, key string, ok bool) {
	r := m.current()
	switch {
	case r == nil || r.verdict.class != requeue:
		return "", "", false
	case r.ledger.Verdict.Requeue == monitor.RequeueSends:
		return r.ledger.Exchange, r.ledger.RoutingKey, true
	default:
		return requestExchange, requestKey, true
	}
}

// route is what the broker has said of a target, or nil.
func (m *Message) route(exchange, key string) *monitor.Route {
	if at := m.env.Data.Route; at != nil && at.Exchange == exchange && at.Key == key {
		return at
	}
	return nil
}

// routeLines say whether the target of a requeue exists, where its key leads and who
// takes from there.
func (m *Message) routeLines(exchange, key string) []string {
	at, err := m.route(exchange, key), m.env.Data.Fresh(screen.FeedRoute).Err
	name := "exchange " + exchange
	if exchange == "" {
		name = "the default exchange"
	}
	switch {
	case at == nil && err != nil:
		return []string{m.check(false, "where "+key+" leads is unknown: "+err.Error())}
	case at == nil:
		return []string{m.check(false, "asking where "+key+" leads …")}
	case !at.Exists:
		return []string{m.check(false, name+" does not exist")}
	}
	lines := []string{m.check(true, name+" exists"+m.env.Mark(screen.FeedRoute))}
	switch {
	case at.Unsure && len(at.Queues) == 0:
		lines = append(lines, m.check(false, "whether "+key+" routes to a queue cannot be seen"))
	case at.Lost:
		lines = append(lines, m.check(false, key+" routes to no queue"))
	case len(at.Queues) == 1:
		lines = append(lines, m.check(true, key+" routes to 1 queue"))
	default:
		lines = append(lines, m.check(true, key+" routes to "+strconv.Itoa(len(at.Queues))+" queues"))
	}
	for _, one := range at.Queues[:min(len(at.Queues), 3)] {
		lines = append(lines, m.queue(one, ""))
	}
	return lines
}
