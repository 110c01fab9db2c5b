package deadletters

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// letter is all that a message carries.
type letter struct {
	id, kind, version   string
	size                int64
	deaths              []death
	payload             json.RawMessage
	headers, properties any
	raw                 string
	// again says for which time it would be sent again, and what is known of the last.
	again string
}

// death is one entry of the history that the broker writes.
type death struct {
	Queue       string    `json:"queue"`
	Exchange    string    `json:"exchange"`
	Reason      string    `json:"reason"`
	RoutingKeys []string  `json:"routing-keys"`
	Count       int64     `json:"count"`
	Time        time.Time `json:"time"`
	Expiration  string    `json:"original-expiration"`
}

// letter reads what a row stands for, once for each reading; nil while the ledger was not
// asked yet.
func (m *Message) letter(r *row) *letter {
	d := m.detail(r.ID)
	if d == nil {
		return nil
	}
	if m.of != d {
		m.of, m.read = d, readLetter(d)
	}
	return m.read
}

// sentBefore says that a message was sent again before; empty for the first time.
func sentBefore(headers json.RawMessage) string {
	var h struct {
		Count int64  `json:"x-attune-requeue-count"`
		By    string `json:"x-attune-requeue-by"`
		At    string `json:"x-attune-requeue-at"`
		From  string `json:"x-attune-requeued-from"`
	}
	switch {
	case json.Unmarshal(headers, &h) != nil:
		return ""
	case h.From != "":
		return "it was sent again before, as dead letter " + h.From + ", and died again"
	case h.By != "":
		return phrase.Ordinal(max(1, h.Count)+1) + " time: sent again by " + h.By + " at " + dash(h.At) + ", died again"
	default:
		return ""
	}
}

func readLetter(d *monitor.LedgerDetail) *letter {
	l := &letter{
		id: d.MessageID, kind: d.Type, size: d.Size, headers: d.Headers, raw: d.Body.Text, again: sentBefore(d.Headers),
		properties: map[string]any{
			"exchange": d.Exchange, "routing_key": d.RoutingKey, "message_id": d.MessageID,
			"correlation_id": d.CorrelationID, "type": d.Type,
			"fingerprint": d.Fingerprint, "stored": d.LedgerEntry.At, "evidence": d.Evidence,
		},
	}
	_ = json.Unmarshal(d.XDeath, &l.deaths) // what has another shape is among the headers
	switch d.Body.Format {
	case "json":
		l.raw = string(d.Body.JSON)
		var envelope struct {
			Version string          `json:"version"`
			Payload json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(d.Body.JSON, &envelope) == nil {
			l.version, l.payload = envelope.Version, envelope.Payload
		}
	case "binary":
		l.raw = hex.Dump(d.Body.Base64)
	}
	return l
}

// document is the text of a section.
func (l *letter) document(section int) string {
	var value any
	switch section {
	case 0:
		if len(l.payload) == 0 {
			return "nobody can read it as a message: the section raw has it as it is"
		}
		return string(l.payload)
	case 1:
		value = l.headers
	case 2:
		value = l.properties
	default:
		return l.raw
	}
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil || string(raw) == "null" {
		return "none"
	}
	return string(raw)
}

// says are the fields of a payload that rows have too.
type says struct {
	ExecutionID *int64     `json:"execution_id"`
	ActionRef   string     `json:"action_ref"`
	WorkerID    *int64     `json:"worker_id"`
	AttemptAt   *time.Time `json:"scheduled_attempt_updated_at"`
	Attempt     *int64     `json:"attempt"`
}

// execution is the execution of a row as it is now, or nil.
func (m *Message) execution(r *row) *monitor.LetterExecution {
	if d := m.detail(r.ID); d != nil {
		return d.ExecutionNow
	}
	return nil
}

// row is the pane about the execution.
func (m *Message) row(r *row) []string {
	e := m.env
	x := m.execution(r)
	lines := []string{e.Paint(theme.Dim, "EXECUTION ROW")}
	if x == nil {
		return append(lines, "there is none", "")
	}
	line := func(name, value string) string { return e.Paint(theme.Dim, widget.Left(name, 10)) + value }
	lines[0] = e.Paint(theme.Dim, "EXECUTION ROW "+strconv.FormatInt(x.ID, 10)+"   enter opens")
	action := widget.Clean(x.ActionRef)
	if x.ActionGone {
		action += e.Paint(theme.Warn, "  ▲ deleted")
	}
	parent := number(x.Parent)
	if x.ParentStatus != "" {
		parent += "  " + e.State(x.ParentStatus)
	}
	return append(lines, line("status", e.State(x.Status)+"  "+widget.Clean(x.Reason)), line("action", action),
		line("worker", number(x.WorkerID)),
		line("parent", parent), line("updated", x.Updated.UTC().Format("15:04:05.000Z")), line("tries", r.tries()), "")
}

func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

// compare holds what the message says against what the row says now.
func (m *Message) compare(r *row, l *letter, w int) []string {
	e := m.env
	each := max(8, min(27, (w-24)/2))
	lines := []string{" " + e.Paint(theme.Dim, widget.Left("MESSAGE SAYS", each+12)+"ROW SAYS NOW")}
	var said says
	if json.Unmarshal(l.payload, &said) != nil || said.ExecutionID == nil {
		return append(lines, "  it names no execution", "")
	}
	x := m.execution(r)
	if x == nil {
		return append(lines, "  execution "+number(said.ExecutionID)+": there is no such row", "")
	}
	line := func(name, message, row string, same bool, note string) {
		sign, role := "✓", theme.Good
		if !same {
			sign, role = "▲ "+note, theme.Warn
		}
		lines = append(lines, "  "+e.Paint(theme.Dim,
			widget.Left(name, 11))+widget.Left(widget.CutMiddle(widget.Clean(message), each-2), each)+
			widget.Left(widget.CutMiddle(widget.Clean(row), each-2), each)+e.Paint(role, sign))
	}
	line("execution", number(said.ExecutionID), strconv.FormatInt(x.ID, 10), *said.ExecutionID == x.ID, "")
	if said.ActionRef != "" {
		line("action", said.ActionRef, x.ActionRef, said.ActionRef == x.ActionRef, "differs")
	}
	if said.WorkerID != nil {
		line("worker", number(said.WorkerID), number(x.WorkerID), x.WorkerID != nil && *said.WorkerID == *x.WorkerID,
			"moved")
	}
	if said.AttemptAt != nil {
		line("attempt at", said.AttemptAt.UTC().Format("15:04:05.000Z"), x.Updated.UTC().Format("15:04:05.000Z"),
			said.AttemptAt.Equal(x.Updated), "moved")
	}
	if said.Attempt != nil {
		line("attempt", number(said.Attempt), number(&x.Attempt), *said.Attempt == x.Attempt, "newer")
	}
	return append(lines, "  "+e.Paint(theme.Dim, widget.Left("status", 11))+widget.Left("", each)+e.State(x.Status)+
		"  "+e.Theme.Glyphs.Arrow+" "+r.verdict.text, "")
}

// same counts the letters with the same problem.
func (m *Message) same(r *row) []string {
	v := m.list
	key, _ := groupings[v.by].key(r)
	for _, g := range v.gathered {
		if g.key == key {
			return []string{
				m.env.Paint(theme.Dim, "SAME PROBLEM"), strconv.Itoa(len(g.keys)) + " by " + groupings[v.by].name,
				"in the list tab, then space marks them all", "",
			}
		}
	}
	return nil
}

// target is what is known of where a requeue leads; the plan asks the broker again.
func (m *Message) target(r *row, l *letter) []string {
	e, b := m.env, m.env.Data.Broker
	lines := []string{e.Paint(theme.Dim, "TARGET CHECK") + e.Mark(screen.FeedBroker)}
	if b == nil {
		return append(lines, "unknown: the broker was not read")
	}
	check := func(ok bool, text string) {
		sign, role := "✓ ", theme.Good
		if !ok {
			sign, role = "▲ ", theme.Warn
		}
		lines = append(lines, e.Paint(role, sign)+widget.Clean(text))
	}
	queue := func(name, note string) {
		if q, ok := b.Queue(name); ok {
			check(q.Consumers > 0, name+" has "+e.Consumers(&q)+note)
		} else {
			check(false, "there is no queue "+name+note)
		}
	}
	m.routeLines(r, check, queue)
	if len(l.deaths) > 0 && l.deaths[0].Queue != "" && r.Execution != nil {
		queue(l.deaths[0].Queue, " (not used: a worker is chosen)")
	}
	switch {
	case b.AlarmsUnknown != "":
		check(false, "alarms are unknown: "+b.AlarmsUnknown)
	case len(b.Alarms) > 0:
		check(false, "alarm: "+b.Alarms[0])
	default:
		check(true, "no memory or disk alarm")
	}
	return lines
}

// plan is what R would do, step by step.
func (m *Message) plan(r *row) []string {
	e := m.env
	lines := []string{e.Rule("PLAN PREVIEW  R", "nothing done yet", 60)}
	id := strconv.FormatInt(r.execution(), 10)
	var steps []string
	switch {
	case r.verdict.class != requeue:
		steps = []string{"nothing: " + r.Verdict.Why}
	case r.Verdict.Requeue == monitor.RequeueRepeats:
		steps = []string{
			"execution " + id + " is repeated as a new execution, through admission",
			"the letter is decided as requeued, with its audit, in the same commit",
			"its request is in the outbox; a running engine sends it",
		}
	default:
		steps = []string{
			"the message is put into the outbox for " + r.Exchange + ", key " + r.RoutingKey,
			"the letter is decided as requeued, in the same commit",
		}
	}
	for i, step := range steps {
		lines = append(lines, "  "+strconv.Itoa(i+1)+" "+widget.Clean(step))
	}
	return lines
}
