package alerting

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/retention"
	"github.com/attune-go/attune/core/store"
)

// The bounds of measuring.
const (
	measureRows   = 5_000 // rows read from each end
	measureEnds   = 1_000 // the newest firings, and matched events
	measureFails  = 100   // the actions with the most failures
	measureQueues = 300   // the longest queues
	measureAhead  = 20    // of these, the queues whose timeouts are forecast
	// gapNear is how near the first gap between partitions is before it is measured: partitions for
	// the day after are not late yet.
	gapNear = 3 * 24 * time.Hour
	// fewEnds is the minimum of a ratio. fewFailures is the number of failures above which an action
	// counts.
	fewEnds     = 20
	fewFailures = 10
	// measureProbes bounds the queues of workers without a probe.
	measureProbes = 50
	// probeValid is how long the probe of a worker counts.
	probeValid = 5 * time.Minute
	// callTimeout bounds one call to the broker.
	callTimeout = 3 * time.Second
)

// readings read the measures from the engine's own tables. what names them in errors.
var readings = []struct {
	what string
	read func(ctx context.Context, tx *store.Tx, r *measuring) error
}{
	{"look at unfinished executions", func(ctx context.Context, tx *store.Tx, r *measuring) error {
		allowed := cmp.Or(r.reader.Config().ScheduledTimeout, monitor.DefaultScheduledTimeout)
		live, err := tx.AlertLive(ctx, measureRows, allowed.Seconds())
		r.set("scheduled_overdue", float64(live.Overdue), phrase.Span(allowed))
		r.set("stuck_seconds", live.Longest, fmt.Sprintf("execution %d", live.Execution))
		return err
	}},
	{"look for slots of ended executions", func(ctx context.Context, tx *store.Tx, r *measuring) error {
		leaks, err := tx.RepairEnded(ctx, store.RepairEndedParams{OlderThan: time.Minute.Seconds(), Page: measureRows})
		execution := int64(0)
		if len(leaks) > 0 {
			execution = leaks[0].ID
		}
		r.set("leaked_slots", float64(len(leaks)), fmt.Sprintf("execution %d", execution))
		return err
	}},
	{"count queues that wait for workers", func(ctx context.Context, tx *store.Tx, r *measuring) error {
		unplaced, err := tx.AlertUnplaced(ctx, measureRows)
		detail := unplaced.Reason
		if unplaced.Until.Unix() > 0 {
			detail += ". Unless one comes back, its executions fail " + phrase.Clock(unplaced.Until, r.At)
		}
		r.set("workers_missing", float64(unplaced.N), detail)
		return err
	}},
	{"look for rules that fail", func(ctx context.Context, tx *store.Tx, r *measuring) error {
		rows, err := tx.AlertRules(ctx, measureEnds)
		r.know("failing_rules")
		for _, row := range rows {
			reason := strings.TrimPrefix(row.Reason, "rule "+row.Rule+": ")
			r.add("failing_rules", Sample{Target: row.Rule, Value: float64(row.N), Detail: reason, Since: &row.Since})
		}
		return err
	}},
	{"measure how often rules fire", func(ctx context.Context, tx *store.Tx, r *measuring) error {
		rates, err := tx.AlertRuleRates(ctx, measureEnds)
		r.know("rule_rate")
		for _, row := range rates {
			r.add("rule_rate", Sample{Target: row.Rule, Value: row.Rate})
		}
		return err
	}},
	{"count retries", func(ctx context.Context, tx *store.Tx, r *measuring) error {
		retries, err := tx.AlertRetries(ctx, measureRows)
		r.share("retry_rate", retries.Repeated, retries.Requested, "requested")
		return err
	}},
	{"count what ended", readEnds},
	{"look at the outbox", func(ctx context.Context, tx *store.Tx, r *measuring) error {
		oldest, err := tx.AlertOutbox(ctx)
		detail := ""
		if oldest.Reason != "" {
			detail = ": " + oldest.Reason
		}
		r.set("outbox_age", max(oldest.Oldest, 0), detail)
		return err
	}},
	{"look at the workers", readWorkers},
	{"count dead letters", func(ctx context.Context, tx *store.Tx, r *measuring) error {
		deadLetters, err := tx.ViewDeadLetterNumbers(ctx, measureRows, monitor.RatePace.Seconds())
		r.open = deadLetters.Waiting // the depth follows from the broker
		r.set("dead_letter_rate", float64(deadLetters.Lately)/monitor.RatePace.Minutes(), "")
		return err
	}},
}

// readShared reads what the overview shows too.
func (r *measuring) readShared(ctx context.Context, tx *store.Tx, s monitor.Shape) error {
	queues, totals, _, err := r.reader.ReadQueues(ctx, tx, s, monitor.QueueFilter{}, measureQueues)
	if err != nil {
		return err
	}
	r.queues(queues, r.At)
	r.reader.measureGrowth(queues, r.Measures)
	if err := r.readTimingOut(ctx, tx, queues); err != nil {
		return err
	}
	waiting, err := monitor.ReadWorkQueues(ctx, tx, s)
	if err != nil {
		return err
	}
	r.workQueues(waiting)
	replicas, err := r.reader.ReadReplicas(ctx, tx, s, r.At)
	if replicas != nil {
		r.replicas(replicas, totals.Queued)
	}
	return err
}

// readTimingOut forecasts timeouts of the queues that leave the shortest time to each execution.
func (r *measuring) readTimingOut(ctx context.Context, tx *store.Tx, queues []monitor.Queue) error {
	r.know("timeouts_ahead")
	queues = slices.DeleteFunc(slices.Clone(queues), func(q monitor.Queue) bool {
		return q.Queued == 0 || q.QueueTimeout <= 0 || q.Paused
	})
	leaves := func(q monitor.Queue) float64 {
		limit := q.Active
		if q.Limit != nil {
			limit = *q.Limit
		}
		return q.QueueTimeout.Seconds() * float64(max(limit, 1)) / float64(q.Queued)
	}
	slices.SortStableFunc(queues, func(a, b monitor.Queue) int { return cmp.Compare(leaves(a), leaves(b)) })
	for i := range queues[:min(len(queues), measureAhead)] {
		q := &queues[i]
		t, err := r.reader.TimingOut(ctx, tx, q, r.At)
		if err != nil {
			return fmt.Errorf("forecast the timeouts of queue %d: %w", q.ID, err)
		}
		if t.Threatened() {
			r.add("timeouts_ahead", Sample{
				Target: q.Name(), Value: float64(*t.Count),
				Detail: phrase.Say("the first %s, of %d that wait", phrase.Clock(*t.First, r.At), t.Of).
					With("; ", t.Basis).String(),
			})
		}
	}
	return nil
}

// readEnds measures failures and timeouts by what ended in the last minutes.
func readEnds(ctx context.Context, tx *store.Tx, r *measuring) error {
	rows, err := tx.AlertEnds(ctx)
	if err != nil {
		return err
	}
	var ended, bad int64
	for _, row := range rows {
		ended, bad = ended+row.Ended, bad+row.Bad
	}
	r.share("failure_ratio", bad, ended, "ended")
	if err := r.readTimeouts(ctx, tx, rows); err != nil {
		return err
	}
	return r.readFailures(ctx, tx, rows)
}

// readTimeouts counts executions that were not started or not completed in time: executions that ended as timeouts, and
// executions that failed because no worker started them.
func (r *measuring) readTimeouts(ctx context.Context, tx *store.Tx, rows []store.AlertEndsRow) error {
	lost, err := tx.AlertLostWork(ctx)
	if err != nil {
		return fmt.Errorf("count lost work: %w", err)
	}
	var now, before, most, failed int64
	detail := ""
	for _, row := range rows {
		now, before = now+row.TimeoutsNow, before+row.TimeoutsBefore
		if n := max(row.TimeoutsNow, row.TimeoutsBefore); n > most {
			most, detail = n, fmt.Sprintf("%d of %s", n, row.ActionRef)
		}
	}
	for _, row := range lost {
		failed += row.N
		if row.N > most {
			most = row.N
			detail = fmt.Sprintf("%d of %s (%s)", row.N, cmp.Or(row.Worker, "a worker that is gone"), row.Cause)
		}
	}
	r.set("execution_timeouts", float64(max(now, before)+failed), detail)
	return nil
}

// readFailures finds actions whose executions fail, with the most frequent reason.
func (r *measuring) readFailures(ctx context.Context, tx *store.Tx, rows []store.AlertEndsRow) error {
	r.know("action_failures")
	rows = slices.DeleteFunc(rows, func(row store.AlertEndsRow) bool { return row.BadLately <= fewFailures })
	if len(rows) == 0 {
		return nil
	}
	slices.SortStableFunc(rows, func(a, b store.AlertEndsRow) int { return cmp.Compare(b.BadLately, a.BadLately) })
	rows = rows[:min(len(rows), measureFails)]
	actions := make([]string, len(rows))
	for i := range rows {
		actions[i] = rows[i].ActionRef
	}
	said, err := tx.MonitorFailReasons(ctx, actions, monitor.ReasonScan, 0)
	if err != nil {
		return fmt.Errorf("ask why: %w", err)
	}
	for _, row := range rows {
		detail := fmt.Sprintf("%d failed in 5m", row.BadLately)
		if reason := commonest(said, row.ActionRef); reason != "" {
			detail += ", most with: " + reason
		}
		r.add("action_failures", Sample{
			Target: row.ActionRef, Value: float64(row.BadLately) / float64(row.EndedLately), Detail: detail,
		})
	}
	return nil
}

// commonest is the most frequent reason of an action's failures, ignoring numbers.
func commonest(said []store.MonitorFailReasonsRow, action string) string {
	counts, example := map[string]int64{}, map[string]string{}
	best := ""
	for _, r := range said {
		if r.ActionRef != action || r.Reason == "" {
			continue
		}
		key := monitor.Alike(r.Reason)
		counts[key] += r.N
		example[key] = cmp.Or(example[key], r.Reason)
		if counts[key] > counts[best] || counts[key] == counts[best] && key < best {
			best = key
		}
	}
	return example[best]
}

func readWorkers(ctx context.Context, tx *store.Tx, r *measuring) error {
	list, err := store.Rows[worker](ctx, tx, store.AlertWorkers, probeValid.Seconds(), monitor.WorkerLimit)
	if err != nil {
		return err
	}
	vanished := []string{}
	for i := range list {
		if list[i].Vanished {
			vanished = append(vanished, list[i].Name)
		}
	}
	r.Measures.workers(list, r.At, r.reader.Config().StaleAfter)
	restarts, err := tx.ViewWorkerRestarts(ctx, monitor.RestartSpan.Seconds())
	if err != nil {
		return err
	}
	r.know("worker_restarts")
	for _, w := range restarts {
		r.add("worker_restarts", Sample{
			Target: w.Name, Value: float64(w.Restarts), Detail: fmt.Sprintf(", abandoned %d", w.Abandoned),
		})
	}
	r.set("workers_deactivated", float64(len(vanished)), strings.Join(vanished[:min(len(vanished), 5)], ", "))
	r.workers = list
	return nil
}

// readPartitions counts missing partitions of each table by their bounds, once the first gap is
// near, and the default partition. A table without native partitions misses none.
func (r *measuring) readPartitions(ctx context.Context) {
	tables, err := retention.ReadCoverage(ctx, r.reader.Deps().Store)
	if err != nil {
		r.lose(store.Trouble(err), "partitions_missing")
		return
	}
	r.know("partitions_missing")
	for _, table := range tables {
		if !table.Partitioned {
			continue
		}
		missing, lacks := 0, []string(nil)
		if table.Default == "" {
			missing, lacks = 1, append(lacks, "the default partition")
		}
		if table.Missing > 0 && table.Ahead < gapNear {
			missing += table.Missing
			near := "now"
			if table.Ahead > 0 {
				near = "in " + phrase.Span(table.Ahead.Round(time.Hour))
			}
			lacks = append(lacks, "the first gap is "+near)
		}
		r.add("partitions_missing",
			Sample{Target: table.Table, Value: float64(missing), Detail: strings.Join(lacks, ", ")})
	}
}

// askBroker reads the measures of the probe.
func (r *measuring) askBroker(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	r.askDepth(ctx)
	r.askWorkerQueues(ctx)
	probe := r.reader.probe
	for _, question := range []struct {
		measure string
		ask     func(context.Context) ([]string, error)
	}{
		{"dead_letter_routes_lost", probe.LostRoutes},
		{"topology_problems", probe.Missing},
		{"other_executors", probe.OtherExecutors},
	} {
		found, err := question.ask(ctx)
		if err != nil {
			r.lose(broker.Trouble(err), question.measure)
			continue
		}
		r.set(question.measure, float64(len(found)), strings.Join(found[:min(len(found), 3)], ", "))
	}
	switch alarms, asked, err := probe.Alarms(ctx); {
	case err != nil:
		r.lose(broker.Trouble(err), "broker_alarms")
	case asked:
		r.alarms(alarms)
	}
}

func (r *measuring) askDepth(ctx context.Context) {
	if r.open < 0 {
		return // unknown already, or no ledger
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ready, err := r.reader.probe.QueueDepth(ctx, monitor.DeadLetterQueue)
	if err != nil {
		r.lose(broker.Trouble(err), "dead_letter_depth", "dead_letters_growth")
		return
	}
	all := ready + r.open
	detail := fmt.Sprintf("%d in %s, %d in the ledger for a person", ready, monitor.DeadLetterQueue, r.open)
	r.set("dead_letter_depth", float64(all), detail)
	if before, known := r.reader.deadLetterDepths.record(r.At, map[string]int64{"": all}); known {
		r.set("dead_letters_growth", float64(max(all-before[""], 0)), detail)
	}
}

func (r *measuring) askWorkerQueues(ctx context.Context) {
	if r.workers == nil {
		return
	}
	r.know("worker_queue_depth")
	asked := 0
	for _, w := range r.workers {
		if w.Sensor {
			continue
		}
		ready := w.Ready
		if ready < 0 && asked < measureProbes {
			asked++
			var err error
			if ready, err = r.reader.probe.QueueDepth(ctx, monitor.WorkerQueue(w.ID)); err != nil {
				r.lose(broker.Trouble(err), "worker_queue_depth")
				return
			}
		}
		if ready >= 0 {
			r.add("worker_queue_depth", Sample{Target: w.Name, Value: float64(ready)})
		}
	}
}

// measureGrowth measures how much longer each queue is than minutes ago. If the list of queues was
// cut then, new queues in it are left out: they may have been longer before.
func (m *Reader) measureGrowth(queues []monitor.Queue, all *Measures) {
	now := map[string]int64{}
	for i := range queues {
		if !queues[i].Paused {
			now[queues[i].Name()] = queues[i].Queued
		}
	}
	before, known := m.queueDepths.record(all.At, now)
	if !known {
		return
	}
	all.know("queue_growth")
	for i := range queues {
		q := &queues[i]
		old, had := before[q.Name()]
		if q.Paused || q.Queued <= old || (!had && len(before) >= measureQueues) {
			continue
		}
		all.add("queue_growth", Sample{
			Target: q.Name(), Value: float64(q.Queued - old),
			Detail: fmt.Sprintf("%d wait, %d did; %s", q.Queued, old, cmp.Or(q.Blocked, slotsUsed(q))),
		})
	}
}

// depthMemory is how far back growth is measured, depthSlack the tolerance.
const (
	depthMemory = 5 * time.Minute
	depthSlack  = 45 * time.Second
)

// depths remembers the depths of the last minutes by name. Its zero value is ready for use.
type depths struct {
	mu   sync.Mutex
	list []depthsAt
}

type depthsAt struct {
	at time.Time
	of map[string]int64
}

// record stores depths and returns those of some minutes ago; false until there are any.
func (d *depths) record(now time.Time, of map[string]int64) (map[string]int64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, depthsAt{now, of})
	d.list = slices.DeleteFunc(d.list, func(past depthsAt) bool { return now.Sub(past.at) > depthMemory+depthSlack })
	first := d.list[0]
	return first.of, now.Sub(first.at) >= depthMemory-depthSlack
}
