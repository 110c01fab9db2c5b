package screen

import (
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
)

// The names of the series in History.
const (
	SeriesDone   = "done"
	SeriesQueued = "queued"
	SeriesDead   = "dead letters"
)

// QueueSeries names the depth of a queue.
func QueueSeries(id int64) string { return "queue " + strconv.FormatInt(id, 10) }

// QueueDone names the completions of a queue.
func QueueDone(id int64) string { return "queue done " + strconv.FormatInt(id, 10) }

// QueueHead names the seconds that the head of a queue has waited.
func QueueHead(id int64) string { return "queue head " + strconv.FormatInt(id, 10) }

// WorkerSeries names the taken slots of a worker.
func WorkerSeries(id int64) string { return "worker " + strconv.FormatInt(id, 10) }

// AlertSeries names the series of an alert's value. For dead letters and queues it is the series that is
// recorded without an alert too.
func (d *Data) AlertSeries(a *alerting.Alert) string {
	switch a.Measure {
	case "dead_letter_depth", "dead_letters_growth":
		return SeriesDead
	case "head_wait", "idle_slots", "queue_fill", "queue_growth", "queue_length":
		if d.Overview == nil {
			break
		}
		for i := range d.Overview.Top {
			switch q := &d.Overview.Top[i]; {
			case q.Name() != a.Target:
			case a.Measure == "head_wait":
				return QueueHead(q.ID)
			default:
				return QueueSeries(q.ID)
			}
		}
	}
	return alertSeries(a)
}

func alertSeries(a *alerting.Alert) string { return "alert " + AlertKey(a.Rule, a.Target) }

// ageMeasures grow by a second each second while their alerts are open, so their past is known.
var ageMeasures = []string{"heartbeat_age", "replica_silence", "loop_silence", "outbox_age", "stuck_seconds"}

// PutOverview stores the overview and extends the series.
func (d *Data) PutOverview(r *alerting.Overview) {
	d.Overview = r
	d.History.Record(SeriesDone, r.At, float64(r.Queues.Completed))
	d.History.Record(SeriesQueued, r.At, float64(r.Queues.Queued))
	d.recordQueues(r.At, r.Top)
	d.recordWorkers(r.At, r.WorkerList)
	if r.Alerts != nil && r.Alerts.Evaluated {
		d.recordAlerts(r.At, r.Alerts)
	}
}

// PutBroker stores the state of the broker. It carries no database time, so now is passed.
func (d *Data) PutBroker(r *monitor.Broker, now time.Time) {
	d.Broker = r
	if q, ok := r.Queue(monitor.DeadLetterQueue); ok && !q.Uncounted {
		d.History.Record(SeriesDead, now, float64(q.Ready))
	}
}

// PutQueues stores the queues and extends their series.
func (d *Data) PutQueues(r *monitor.Queues) {
	d.Queues = r
	d.recordQueues(r.At, r.List)
}

// PutQueue stores one queue and extends its series.
func (d *Data) PutQueue(r *explain.QueueDetail) {
	d.Queue = r
	d.recordQueues(r.At, []monitor.Queue{r.Queue})
}

// PutWorkers stores the workers and extends their series.
func (d *Data) PutWorkers(r *monitor.Workers) {
	d.Workers = r
	d.recordWorkers(r.At, r.List)
}

// PutAlerts stores the alerts and extends the series of their values.
func (d *Data) PutAlerts(r *alerting.Alerts) {
	d.Alerts = r
	d.recordAlerts(r.At, r)
}

func (d *Data) recordQueues(at time.Time, list []monitor.Queue) {
	for _, q := range list {
		d.History.Record(QueueSeries(q.ID), at, float64(q.Queued))
		d.History.Record(QueueDone(q.ID), at, float64(q.Completed))
		wait := 0.0
		if q.Oldest != nil {
			wait = max(at.Sub(*q.Oldest), 0).Seconds()
		}
		d.History.Record(QueueHead(q.ID), at, wait)
	}
}

// PutQueuesPast fills the series of queues with the last hour.
func (d *Data) PutQueuesPast(p *monitor.QueuesPast) {
	d.QueuesPast = p
	for i := range p.List {
		for _, minute := range slices.Backward(p.List[i].Minutes) { // so that the newest known one is the last
			d.History.Backfill(QueueSeries(p.List[i].ID), minute.At, known(minute.Depth, minute.Unseen))
			d.History.Backfill(QueueHead(p.List[i].ID), minute.At, known(minute.Head.Seconds(), minute.Unseen))
		}
	}
}

// PutWorkersPast fills the series of workers with the last hour.
func (d *Data) PutWorkersPast(p *monitor.WorkersPast) {
	d.WorkersPast = p
	for i := range p.List {
		for _, minute := range slices.Backward(p.List[i].Minutes) {
			d.History.Backfill(WorkerSeries(p.List[i].ID), minute.At, known(minute.Slots, minute.Unseen))
		}
	}
}

func (d *Data) recordWorkers(at time.Time, list []monitor.Worker) {
	for _, w := range list {
		if w.Assigned != nil {
			d.History.Record(WorkerSeries(w.ID), at, float64(*w.Assigned))
		}
	}
}

func (d *Data) recordAlerts(at time.Time, a *alerting.Alerts) {
	for i := range a.Open {
		one := &a.Open[i]
		if one.NotEvaluated {
			continue
		}
		series := alertSeries(one)
		d.History.Record(series, at, one.Value)
		if !slices.Contains(ageMeasures, one.Measure) {
			continue
		}
		for ago := time.Minute; ago <= 15*time.Minute; ago += time.Minute {
			d.History.Backfill(series, at.Add(-ago), max(0, one.Value-ago.Seconds()))
		}
	}
}

// StaleAfter is the heartbeat timeout of the monitor.
func (d *Data) StaleAfter() time.Duration {
	if d.Workers != nil && d.Workers.StaleAfter > 0 {
		return d.Workers.StaleAfter
	}
	if d.Overview != nil && d.Overview.StaleAfter > 0 {
		return d.Overview.StaleAfter
	}
	return monitor.DefaultStaleAfter
}

// Findings are the problems, the worst first. An unreachable source comes before everything else, and
// its consequences follow it; of a broker that works only the numbers are missing.
func (e *Env) Findings() []alerting.Finding {
	var found []alerting.Finding
	broker := -1
	for _, feed := range []Feed{FeedOverview, FeedBroker} {
		if f := e.Data.Fresh(feed); f.Err != nil {
			since := f.Since.Add(e.Skew) // by the database's clock, like all other findings
			level := alerting.LevelCritical
			switch {
			case feed == FeedBroker && e.BrokerWorks():
				level = alerting.LevelWarning
			case feed == FeedBroker:
				broker = len(found)
			}
			found = append(found, alerting.Finding{
				Level: level, Target: "overview", Text: f.Trouble().Fact, Hint: f.Trouble().Fix, Since: &since,
			})
		}
	}
	found = append(found, e.Data.assess(e.Heard())...)
	found = append(found, e.checkFindings()...)
	slices.SortStableFunc(found, func(x, y alerting.Finding) int { return x.Level.Rank() - y.Level.Rank() })
	if e.Data.Overview.CutOff() {
		return alerting.FoldBroker(found, broker)
	}
	return found
}

// checkFindings is one finding about all failed checks, or that they cannot be read.
func (e *Env) checkFindings() []alerting.Finding {
	one := alerting.Finding{Level: alerting.LevelWarning, Target: string(keymap.InAlerts)}
	n, fresh := int64(e.Data.Checks.Count(monitor.CheckProblem)), e.Data.Fresh(FeedChecks)
	switch {
	case fresh.Err != nil && e.Data.Fresh(FeedOverview).Err == nil:
		since := fresh.Since.Add(e.Skew)
		one.Target, one.Since = string(keymap.InOverview), &since
		one.Text, one.Hint = "the checks cannot be read", fresh.Trouble().Fact
	case n > 0:
		worst := e.checks("")[0]
		one.Text, one.Hint, one.Since = e.Plural(n, "check has failed", "checks have failed"),
			worst.Name+": "+worst.Text, worst.Seen
	default:
		return nil
	}
	return []alerting.Finding{one}
}

// Calm is the text without findings: nothing needs attention, since when, and how old that is. It is green only if
// all of it is known and recent.
func (e *Env) Calm() (sign, text string) {
	if e.Data.Overview == nil {
		return e.Dim(e.Theme.Glyphs.Scheduled), "Reading the alerts …"
	}
	if all := e.replicas(); all != nil && all.Well < all.Total {
		return e.Paint(theme.Warn, e.Theme.Glyphs.Warning), "No alert fires; see ENGINE."
	}
	sign, text = e.Paint(theme.Good, e.Theme.Glyphs.Done), "Nothing needs attention"
	switch {
	case e.Mark(FeedOverview) != "":
		sign, text = e.Paint(theme.Warn, e.Theme.Glyphs.Warning), "Nothing needed attention"
	case e.Data.Overview.Alerts == nil || e.Data.Checks == nil || e.Data.Checks.Count(monitor.CheckUnknown) > 0:
		sign, text = e.Dim("?"), "Nothing that could be checked needs attention"
	}
	if a := e.Data.Overview.Alerts; a != nil {
		if since := a.QuietSince; since != nil && e.Since(*since) < 24*time.Hour {
			text += " since " + TimeOfDay(*since) + "Z"
		} else if since != nil {
			text += " since " + since.UTC().Format(time.DateOnly)
		}
		if a.EvaluatedAt != nil {
			text += ", " + e.AgeOf(a.EvaluatedAt) + " ago"
		}
	}
	return sign, text + "."
}

// attention caches the findings: a frame asks for them several times, and they change only with their
// inputs.
type attention struct {
	overview *alerting.Overview
	broker   *monitor.Broker
	found    []alerting.Finding
}

// assess is alerting.Attention of the last readings.
func (d *Data) assess(heard *monitor.Broker) []alerting.Finding {
	if d.attention.overview != d.Overview || d.attention.broker != heard {
		d.attention = attention{d.Overview, heard, alerting.Attention(d.Overview, heard)}
	}
	return d.attention.found
}

// Depth is the number of messages in the broker's queue of dead letters; zero if unknown.
func (d *Data) Depth() int64 {
	if d.DeadLetters == nil || d.DeadLetters.Queue == nil {
		return 0
	}
	return d.DeadLetters.Queue.Ready
}
