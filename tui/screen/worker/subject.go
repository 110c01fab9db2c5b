package worker

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Subject is a worker with its queue at the broker, or a queue that no worker owns.
type Subject struct {
	Worker monitor.Worker
	monitor.Judgement
	// Queue is nil where the broker does not know it or was not asked.
	Queue *monitor.BrokerQueue
	// Orphan is true when no row has the id.
	Orphan bool
}

// Name is what people call it.
func (s *Subject) Name() string {
	if s.Worker.Name == "" {
		return "worker " + strconv.FormatInt(s.Worker.ID, 10)
	}
	return s.Worker.Name
}

// find is the worker with the id, as far as the list of workers and the broker were
// read.
func find(e *screen.Env, id int64) Subject {
	s := Subject{Worker: monitor.Worker{ID: id}, Judgement: monitor.Judgement{Health: monitor.WorkerStale}}
	if q, ok := e.Data.Broker.Queue(monitor.WorkerQueue(id)); ok {
		s.Queue = &q
	}
	d := e.Data.Workers
	if d == nil {
		return s
	}
	for i := range d.List {
		if d.List[i].ID == id {
			s.Worker, s.Judgement = d.List[i], e.Judge(&d.List[i], d.At)
			return s
		}
	}
	s.Orphan = !d.More
	return s
}

// Detail is what was read of a worker beside its row; nil before it was.
func Detail(e *screen.Env, id int64) *monitor.WorkerDetail {
	if d := e.Data.Worker; d != nil && d.ID == id {
		return d
	}
	return nil
}

// skewTold is how far a worker's clock may be off before that is marked.
const skewTold = 5 * time.Second

// probe is what the engine saw when it last looked at a worker.
func probe(e *screen.Env, p *monitor.WorkerProbe) string {
	text := widget.Clean(p.Verdict) + " for " + e.AgeOf(&p.Since)
	if p.Reason != "" {
		text += ": " + widget.Clean(p.Reason)
	}
	if p.HealthReason != "" {
		text += "  " + widget.Clean(p.Health) + ": " + widget.Clean(p.HealthReason)
	}
	if p.Oldest != nil {
		text += "  unstarted " + e.AgeOf(p.Oldest)
	}
	if p.Skew != nil && p.Skew.Abs() >= time.Second {
		clock := "clock " + widget.Age(p.Skew.Abs()) + " behind"
		if *p.Skew > 0 {
			clock = "clock " + widget.Age(p.Skew.Abs()) + " ahead"
		}
		if p.Skew.Abs() > skewTold {
			clock = e.Paint(theme.Warn, clock)
		}
		text += "  " + clock
	}
	if p.RTT != nil {
		text += "  rtt " + p.RTT.Round(100*time.Microsecond).String()
	}
	if !p.Valid {
		return e.Dim(" probe      " + text + "  seen " + e.AgeOf(&p.At) + " ago, too long to count")
	}
	return " probe      " + text
}

// Facts say in some lines how the worker is, by its row, the engine and the broker.
func Facts(e *screen.Env, s *Subject) []string {
	if s.Orphan {
		return []string{" Messages in this queue expire into the dead letters: no worker row owns it."}
	}
	r := &s.Worker
	lines := []string{
		" heartbeat  " + heartbeat(e, s),
		" history    " + history(e, s),
		" owns       " + owns(e, s),
		" runtimes   " + orDash(strings.Join(r.Runtimes, ", ")) + "   version " + orDash(r.Version),
	}
	if s.Queue != nil {
		lines = append(lines, " queue      "+counts(e, s.Queue))
	}
	if r.Probe != nil {
		lines = append(lines, probe(e, r.Probe))
	}
	return append(lines, warnings(e, s)...)
}

// heartbeat says when the last one came, how often they come, and how many did not.
func heartbeat(e *screen.Env, s *Subject) string {
	beat, r := "last never", &s.Worker
	if r.Heartbeat != nil {
		beat = "last " + r.Heartbeat.UTC().Format("15:04:05Z") + " (" + e.AgeOf(r.Heartbeat) + " ago)"
	}
	if d := e.Data.Workers; d != nil && d.HeartbeatEvery > 0 {
		beat += "  every " + widget.Short(d.HeartbeatEvery)
		if missed := r.Missed(d.At, d.HeartbeatEvery); missed > 1 {
			beat += "  " + e.Paint(theme.Warn, e.Theme.Glyphs.Warning+" "+e.Num(missed)+" missed")
		}
	}
	return beat + "  stale after " + widget.Age(e.Data.StaleAfter())
}

// history says for how long the worker has been there, and how often it was lost and
// back soon within a day.
func history(e *screen.Env, s *Subject) string {
	registered := "registered " + s.Worker.Created.UTC().Format("2006-01-02 15:04Z")
	d := Detail(e, s.Worker.ID)
	if d == nil || !d.Recorded {
		return registered
	}
	text := ""
	if !s.Gone() && s.Health != monitor.WorkerInactive {
		text = "up for more than a day · "
		if since := d.UpSince(); !since.IsZero() {
			text = "up " + widget.Age(e.Since(since)) + " · "
		}
	}
	if d.Flaps == 0 {
		return text + "no flap within a day · " + registered
	}
	var at []string
	for i := range d.Changes {
		if d.Changes[i].Flap && len(at) < 3 {
			at = append(at, d.Changes[i].At.UTC().Format("15:04"))
		}
	}
	return text + "flapped " + e.Num(d.Flaps) + "x within a day (" + strings.Join(at, ", ") + ") · " + registered
}

// owns says what the worker has, and since when the oldest of it runs.
func owns(e *screen.Env, s *Subject) string {
	if s.Worker.Assigned == nil {
		return widget.Unknown + ", nobody counts it here"
	}
	text := e.Plural(*s.Worker.Assigned, "execution", "executions")
	if s.Worker.Capacity != nil {
		text += " of " + e.Num(*s.Worker.Capacity) + " that it takes"
	}
	if d := Detail(e, s.Worker.ID); d != nil && len(d.Running) > 0 {
		first := &d.Running[0]
		text += ", the oldest " + strconv.FormatInt(first.ID, 10) + " for " + e.AgeOf(&first.Since)
	}
	return text
}

// warnings say what contradicts the row of the worker.
func warnings(e *screen.Env, s *Subject) []string {
	var lines []string
	if s.Health == monitor.WorkerSuspect {
		text := " ▲ suspect for " + e.AgeOf(s.Worker.SuspectSince) + ", no new work: " + orDash(s.Worker.SuspectReason)
		lines = append(lines, e.Paint(theme.Warn, text))
	}
	trust := map[string]string{
		monitor.ByHeartbeat: " but the heartbeat is stale: trust the heartbeat.",
		monitor.ByBroker:    " but nobody consumes its queue: trust the broker.",
	}[s.By]
	if s.Overruled != "" && trust != "" {
		lines = append(lines, e.Paint(theme.Warn, " ▲ status says "+widget.Clean(s.Overruled)+trust))
	}
	return lines
}

func counts(e *screen.Env, q *monitor.BrokerQueue) string {
	mark := e.Mark(screen.FeedBroker)
	return widget.Clean(q.Name) + "  ready " + e.BrokerNum(*q, q.Ready) + mark + "  unacked " +
		e.BrokerNum(*q, q.Unacked) + mark + "  consumers " + e.BrokerNum(*q, q.Consumers) + mark
}

func orDash(s string) string { return widget.Clean(cmp.Or(s, "-")) }

// Thing is the worker, of which a value was read, or the queue that no worker owns.
func (s *Subject) Thing(value any) screen.Thing {
	switch {
	case !s.Orphan:
		return screen.WorkerThing(&s.Worker, value)
	case s.Queue == nil:
		return screen.BrokerQueueThing(monitor.BrokerQueue{Name: monitor.WorkerQueue(s.Worker.ID)})
	default:
		return screen.BrokerQueueThing(*s.Queue)
	}
}
