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

// Assessed is a worker with its health and its queue at the broker, or a queue without a worker.
type Assessed struct {
	monitor.Worker

	Seen monitor.Assessment
	// Queue is nil if the broker does not know it or was not read.
	Queue *monitor.BrokerQueue
	// Orphan is true if no row has the id.
	Orphan bool
}

// Title is the name of the worker, or its number if it has none.
func (j *Assessed) Title() string { return cmp.Or(j.Name, "worker "+strconv.FormatInt(j.ID, 10)) }

// Thing is the worker with the given value, or the queue if no worker owns it.
func (j *Assessed) Thing(value any) screen.Thing {
	switch {
	case !j.Orphan:
		return screen.WorkerThing(&j.Worker, value)
	case j.Queue == nil:
		return screen.BrokerQueueThing(monitor.BrokerQueue{Name: monitor.WorkerQueue(j.ID)})
	default:
		return screen.BrokerQueueThing(*j.Queue)
	}
}

// assess finds the worker with the id among the rows and queues that were read.
func assess(e *screen.Env, id int64) Assessed {
	j := Assessed{Worker: monitor.Worker{ID: id}, Seen: monitor.Assessment{Health: monitor.WorkerStale}}
	j.Queue = e.Data.Broker.WorkerQueue(id)
	d := e.Data.Workers
	if d == nil {
		return j
	}
	for i := range d.List {
		if d.List[i].ID == id {
			j.Worker, j.Seen = d.List[i], e.Assess(&d.List[i], d.At)
			return j
		}
	}
	j.Orphan = !d.More
	return j
}

// Detail is the detail of a worker; nil until it was read.
func Detail(e *screen.Env, id int64) *monitor.WorkerDetail {
	if d := e.Data.Worker; d != nil && d.ID == id {
		return d
	}
	return nil
}

// facts describe a worker by its row, the probe of the engine and the broker. The page of a worker shows
// brief facts, because it has its history, load and queue in parts of their own.
func facts(e *screen.Env, j *Assessed, brief bool) []string {
	if j.Orphan {
		return []string{" No worker row owns this queue. Its messages expire and become dead letters."}
	}
	lines := []string{" heartbeat  " + heartbeat(e, j)}
	if !brief {
		lines = append(lines, " history    "+history(e, j), " owns       "+owns(e, j))
	}
	lines = append(lines, " runtimes   "+orDash(strings.Join(j.Runtimes, ", "))+"   version "+orDash(j.Version))
	if j.Queue != nil && !brief {
		lines = append(lines, " queue      "+counts(e, j.Queue))
	}
	if j.Probe != nil {
		lines = append(lines, probe(e, j.Probe))
	}
	return append(lines, warnings(e, j)...)
}

// heartbeat says when the last one came, how often they come, and how many are missing.
func heartbeat(e *screen.Env, j *Assessed) string {
	beat := "none yet"
	if j.Heartbeat != nil {
		beat = "last " + j.Heartbeat.UTC().Format("15:04:05Z") + " (" + e.AgeOf(j.Heartbeat) + " ago)"
	}
	if d := e.Data.Workers; d != nil && d.HeartbeatEvery > 0 {
		beat += "  every " + widget.Short(d.HeartbeatEvery)
		if missed := j.Missed(d.At, d.HeartbeatEvery); missed > 1 {
			beat += "  " + e.Paint(theme.Warn, e.Theme.Glyphs.Warning+" "+e.Num(missed)+" missed")
		}
	}
	return beat + "  stale after " + widget.Age(e.Data.StaleAfter())
}

// history says since when the worker is up, and how often it flapped.
func history(e *screen.Env, j *Assessed) string {
	registered := "registered " + j.Created.UTC().Format("2006-01-02 15:04Z")
	d := Detail(e, j.ID)
	if d == nil || !d.Recorded {
		return registered
	}
	text := ""
	if !j.Seen.Gone() && j.Seen.Health != monitor.WorkerInactive {
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

// owns counts the executions of the worker.
func owns(e *screen.Env, j *Assessed) string {
	if j.Assigned == nil {
		return widget.Unknown + ", not counted here"
	}
	text := e.Plural(*j.Assigned, "execution", "executions")
	if j.Capacity != nil {
		text += " of " + e.Plural(*j.Capacity, "slot", "slots")
	}
	if d := Detail(e, j.ID); d != nil && len(d.Running) > 0 {
		first := &d.Running[0]
		text += ", the oldest " + strconv.FormatInt(first.ID, 10) + " for " + e.AgeOf(&first.Since)
	}
	return text
}

// skewLimit is the difference of a worker's clock above which it is marked.
const skewLimit = 5 * time.Second

// probe is the last look of the engine at the worker.
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
		clock := "clock " + monitor.SkewText(*p.Skew)
		if p.Skew.Abs() > skewLimit {
			clock = e.Paint(theme.Warn, clock)
		}
		text += "  " + clock
	}
	if p.RTT != nil {
		text += "  rtt " + p.RTT.Round(100*time.Microsecond).String()
	}
	if !p.Valid {
		return e.Dim(" probe      " + text + "  seen " + e.AgeOf(&p.At) + " ago, outdated")
	}
	return " probe      " + text
}

// warnings name the signs that contradict the row of the worker.
func warnings(e *screen.Env, j *Assessed) []string {
	var lines []string
	if j.Seen.Health == monitor.WorkerSuspect {
		text := " ▲ suspect for " + e.AgeOf(j.SuspectSince) + ", no new work: " + orDash(j.SuspectReason)
		lines = append(lines, e.Paint(theme.Warn, text))
	}
	trust := map[string]string{
		monitor.ByHeartbeat: " but the heartbeat is stale: trust the heartbeat.",
		monitor.ByBroker:    " but its queue has no consumer: trust the broker.",
	}[j.Seen.By]
	if j.Seen.Overruled != "" && trust != "" {
		lines = append(lines, e.Paint(theme.Warn, " ▲ status says "+widget.Clean(j.Seen.Overruled)+trust))
	}
	return lines
}

func counts(e *screen.Env, q *monitor.BrokerQueue) string {
	mark := e.Mark(screen.FeedBroker)
	return widget.Clean(q.Name) + "  ready " + e.BrokerNum(*q, q.Ready) + mark + "  unacked " +
		e.BrokerNum(*q, q.Unacked) + mark + "  consumers " + e.BrokerNum(*q, q.Consumers) + mark
}

func orDash(s string) string { return widget.Clean(cmp.Or(s, "-")) }
