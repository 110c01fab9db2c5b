package screen

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/theme"
)

// The names of the series that are kept between polls.
const (
	SeriesDone   = "done"
	SeriesQueued = "queued"
	SeriesDead   = "dead letters"
)

// QueueSeries names the depth of a queue, QueueDone its completions.
func QueueSeries(id int64) string { return "queue " + strconv.FormatInt(id, 10) }

// QueueDone names the completions of a queue.
func QueueDone(id int64) string { return "queue done " + strconv.FormatInt(id, 10) }

// QueueHead names for how many seconds the head of a queue has waited.
func QueueHead(id int64) string { return "queue head " + strconv.FormatInt(id, 10) }

// WorkerSeries names the slots taken at a worker.
func WorkerSeries(id int64) string { return "worker " + strconv.FormatInt(id, 10) }

// AlertSeries names the course of what an alert is about. Of dead letters and of queues
// it is known from before the alert, and from before the dashboard began.
func (d *Data) AlertSeries(a *alerting.Alert) string {
	switch a.Measure {
	case "dead_letter_depth", "dead_letters_growth":
		return SeriesDead
	case "head_wait", "idle_slots", "queue_fill", "queue_growth", "queue_length":
		if d.Overview == nil {
			break
		}
		for i := range d.Overview.Top {
			if q := &d.Overview.Top[i]; q.Name() == a.Target && a.Measure == "head_wait" {
				return QueueHead(q.ID)
			} else if q.Name() == a.Target {
				return QueueSeries(q.ID)
			}
		}
	}
	return alertSeries(a)
}

func alertSeries(a *alerting.Alert) string { return "alert " + AlertKey(a.Rule, a.Target) }

// ageing are the measures that grow by a second each second for as long as their
// alerts last, so that their course is known without having been seen.
var ageing = []string{"heartbeat_age", "replica_silence", "loop_silence", "outbox_age", "stuck_seconds"}

// PutOverview stores the overview and extends the trends with it.
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

// PutBroker stores what the broker says, which carries no time of the database.
func (d *Data) PutBroker(r *monitor.Broker, now time.Time) {
	d.Broker = r
	if q, ok := r.Queue(monitor.DeadLetterQueue); ok && !q.Uncounted {
		d.History.Record(SeriesDead, now, float64(q.Ready))
	}
}

// PutQueues stores the queues and extends their trends.
func (d *Data) PutQueues(r *monitor.Queues) {
	d.Queues = r
	d.recordQueues(r.At, r.List)
}

// PutQueue stores one queue and extends its trends.
func (d *Data) PutQueue(r *explain.QueueDetail) {
	d.Queue = r
	d.recordQueues(r.At, []monitor.Queue{r.Queue})
}

// PutWorkers stores the workers and extends their trends.
func (d *Data) PutWorkers(r *monitor.Workers) {
	d.Workers = r
	d.recordWorkers(r.At, r.List)
}

// PutAlerts stores the alerts and extends the course of what they are about.
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

// PutQueuesPast begins the trends of queues with the last hour.
func (d *Data) PutQueuesPast(p *monitor.QueuesPast) {
	d.QueuesPast = p
	for i := range p.List {
		for _, minute := range p.List[i].Minutes {
			d.History.Backfill(QueueSeries(p.List[i].ID), minute.At, minute.Depth)
			d.History.Backfill(QueueHead(p.List[i].ID), minute.At, minute.Head.Seconds())
		}
	}
}

// PutWorkersPast begins the trends of workers with the last hour, and fills what no poll
// has seen since.
func (d *Data) PutWorkersPast(p *monitor.WorkersPast) {
	d.WorkersPast = p
	for i := range p.List {
		for _, minute := range p.List[i].Minutes {
			d.History.Backfill(WorkerSeries(p.List[i].ID), minute.At, minute.Slots)
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

// recordAlerts keeps the values of what is open, so that it is seen whether they grow.
func (d *Data) recordAlerts(at time.Time, a *alerting.Alerts) {
	for i := range a.Open {
		one := &a.Open[i]
		if one.NotEvaluated {
			continue
		}
		d.History.Record(alertSeries(one), at, one.Value)
		if slices.Contains(ageing, one.Measure) {
			d.seedAge(alertSeries(one), at, one.Value)
		}
	}
}

// seedAge tells of the quarter of an hour before how old something was that is so many
// seconds old.
func (d *Data) seedAge(series string, at time.Time, value float64) {
	for ago := time.Minute; ago <= 15*time.Minute; ago += time.Minute {
		d.History.Backfill(series, at.Add(-ago), max(0, value-ago.Seconds()))
	}
}

// StaleAfter is the heartbeat limit that the monitor judges by.
func (d *Data) StaleAfter() time.Duration {
	if d.Workers != nil && d.Workers.StaleAfter > 0 {
		return d.Workers.StaleAfter
	}
	if d.Overview != nil && d.Overview.StaleAfter > 0 {
		return d.Overview.StaleAfter
	}
	return monitor.DefaultStaleAfter
}

// Findings is what needs attention, the worst first; a source that cannot be
// reached comes before everything, and what follows from that behind it.
func (e *Env) Findings() []alerting.Finding {
	var found []alerting.Finding
	broker := -1
	for _, source := range []struct {
		feed Feed
		name string
	}{{FeedOverview, "PostgreSQL"}, {FeedBroker, "RabbitMQ management"}} {
		if f := e.Data.Fresh(source.feed); f.Err != nil {
			since := f.Since.Add(e.Now.Sub(e.Clock)) // by the database's clock, as all that stands beside it
			if source.feed == FeedBroker {
				broker = len(found)
			}
			found = append(found, alerting.Finding{
				Level: alerting.LevelCritical, Target: string("overview"),
				Text: source.name + " " + cmp.Or(explain.Cause(f.Err), "cannot be read"), Since: &since,
				Hint: f.Err.Error(),
			})
		}
	}
	found = append(found, e.Data.judge(e.Heard())...)
	if e.Data.Overview.CutOff() {
		return alerting.FoldBroker(found, broker)
	}
	return found
}

// Calm says that nothing needs attention, unless an engine replica or a check is red, or
// the alerts have not been read yet.
func (e *Env) Calm() (sign, text string) {
	if e.Data.Overview == nil {
		return e.Paint(theme.Dim, e.Theme.Glyphs.Scheduled), "Reading the alerts …"
	}
	var red []string
	if ov := e.Data.Overview; ov != nil && ov.Replicas != nil && ov.Replicas.Well < ov.Replicas.Total {
		red = append(red, "ENGINE")
	}
	if e.FailedChecks() > 0 {
		red = append(red, "CHECKS")
	}
	if len(red) > 0 {
		return e.Paint(theme.Warn, e.Theme.Glyphs.Warning), "No alert fires; see " + strings.Join(red, " and ") + "."
	}
	return e.Paint(theme.Good, e.Theme.Glyphs.Done), "Nothing needs attention."
}

// Unevaluated reports whether no live replica evaluates the rules of alerts.
func (d *Data) Unevaluated() bool {
	return d.Overview != nil && d.Overview.Alerts != nil && !d.Overview.Alerts.Evaluated
}

// judgedWithin is how much older than the overview its alerts may be.
const judgedWithin = time.Minute

// judged is the overview with the alerts that were evaluated here while no replica does
// that, so that every view says the same.
func (d *Data) judged() *alerting.Overview {
	a := d.Alerts
	if !d.Unevaluated() || a == nil || !a.Judged || d.Overview.At.Sub(a.At) > judgedWithin {
		return d.Overview
	}
	o := *d.Overview
	o.Alerts = a
	return &o
}

// attention is the last judgement with what it was made of: a frame asks for it several
// times, and it changes only with what is read.
type attention struct {
	overview *alerting.Overview
	alerts   *alerting.Alerts
	broker   *monitor.Broker
	growth   int64
	grown    bool
	made     bool
	found    []alerting.Finding
}

// judge is alerting.Attention of what was read last.
func (d *Data) judge(heard *monitor.Broker) []alerting.Finding {
	a := attention{overview: d.Overview, alerts: d.Alerts, broker: heard, made: true}
	a.growth, a.grown = d.History.Change(SeriesDead, 5*time.Minute)
	if last := d.attention; last.overview == a.overview && last.alerts == a.alerts && last.broker == a.broker &&
		last.growth == a.growth && last.grown == a.grown && last.made {
		return last.found
	}
	var growth *int64
	if a.grown {
		growth = &a.growth
	}
	a.found = alerting.Attention(d.judged(), heard, growth)
	d.attention = a
	return a.found
}

// Depth is how many messages lie in the broker's queue of dead letters, as far as that is
// known.
func (d *Data) Depth() int64 {
	if d.DeadLetters == nil || d.DeadLetters.Queue == nil {
		return 0
	}
	return d.DeadLetters.Queue.Ready
}
