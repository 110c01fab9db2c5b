package alerting

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/retention"
	"github.com/attune-go/attune/core/store"
)

// Sample is one value of a measure.
type Sample struct {
	// Target is what it is about; empty for the installation as a whole.
	Target string `json:"target,omitempty"`
	Value  float64
	// Detail is what a person wants to know besides.
	Detail string
	// Since is when it began, where that is known.
	Since *time.Time
	// Hint replaces the hint of the measure if it is set, but not that of a rule.
	Hint string
}

// Measures is a snapshot of everything that alert rules watch. A measure that is in
// neither map was not asked for.
type Measures struct {
	monitor.Reading
	// Samples has the values of the measures that are known. One without values is
	// known and zero for every target.
	Samples map[string][]Sample
	// Unknown says why a measure could not be read.
	Unknown map[string]string

	// cutOff says that no live replica has a connection to the broker.
	cutOff bool
}

// newMeasures makes an empty snapshot.
func newMeasures() *Measures {
	return &Measures{Samples: map[string][]Sample{}, Unknown: map[string]string{}}
}

// Known reports whether a measure was read.
func (m *Measures) Known(measure string) bool {
	_, known := m.Samples[measure]
	return known
}

// Value is the value of a measure of the whole, and false when it is not known.
func (m *Measures) Value(measure string) (float64, bool) {
	list, known := m.Samples[measure]
	if !known || len(list) != 1 || list[0].Target != "" {
		return 0, false
	}
	return list[0].Value, true
}

// set records the value of a measure of the whole.
func (m *Measures) set(measure string, value float64, detail string) {
	m.Samples[measure] = []Sample{{Value: value, Detail: detail}}
}

// add records the value of one target.
func (m *Measures) add(measure string, s Sample) { m.Samples[measure] = append(m.Samples[measure], s) }

// know says that a measure was read, whatever targets it has.
func (m *Measures) know(measures ...string) {
	for _, name := range measures {
		if !m.Known(name) {
			m.Samples[name] = nil
		}
	}
}

// lose says of measures that they could not be read.
func (m *Measures) lose(err error, measures ...string) {
	for _, name := range measures {
		delete(m.Samples, name)
		m.Unknown[name] = reasonOf(err)
	}
}

// reasonOf is the last part of an error, for people.
func reasonOf(err error) string {
	const most = 200
	text := []rune(err.Error())
	if cause := explain.Cause(err); cause != "" {
		text = []rune("the server " + cause + ": " + err.Error())
	}
	return string(text[:min(len(text), most)])
}

// Prober asks the broker what rules want to know. Each question is bounded by its
// context, and an answer may be as old as a minute.
type Prober interface {
	// QueueDepth is how many messages wait in a queue; one that does not exist has
	// none.
	QueueDepth(ctx context.Context, queue string) (int64, error)
	// LostRoutes names the routing keys whose dead letters would be lost, and Missing
	// what is declared and not there. Nil and no error say that all is well.
	LostRoutes(ctx context.Context) ([]string, error)
	Missing(ctx context.Context) ([]string, error)
	// OtherExecutors describes consumers of the engine's queues that are no replica.
	OtherExecutors(ctx context.Context) ([]string, error)
	// Alarms lists the alarms of the broker; asked is false where nobody can tell.
	Alarms(ctx context.Context) (list []string, asked bool, err error)
}

// The bounds of measuring.
const (
	measureRows   = 5_000 // executions and letters looked at, from each end
	measureEnds   = 1_000 // of each way to end the newest that are looked at
	measureQueues = 300   // the longest queues
	// gapNear is how far ahead the first gap between partitions is at most when it
	// is measured: those that are made for the day after are not late yet.
	gapNear = 3 * 24 * time.Hour
	// fewEnds is how many executions make a ratio; of one action more than fewFailures
	// must have failed.
	fewEnds     = 20
	fewFailures = 10
	// measureProbes is how many queues of workers without a probe are asked for.
	measureProbes = 50
	// probeValid is how long what the probe of a worker has found counts.
	probeValid = 5 * time.Minute
	// probePatience bounds one question to the broker.
	probePatience = 3 * time.Second
)

// databaseMeasures are those that are unknown when the database is.
var databaseMeasures = []string{
	"action_failures", "active_workers", "dead_letter_depth", "dead_letter_rate", "dead_letters_growth", "execution_timeouts", "failing_rules", "failure_ratio",
	"head_wait", "heartbeat_age", "idle_slots", "installation_faults", "leaked_slots", "loop_silence", "outbox_age", "partitions_missing", "paused_wait", "queue_fill", "queue_growth",
	"queue_length", "queue_paused", "replica_problems", "replica_silence", "replicas", "retry_rate", "rule_rate", "scheduled_overdue", "stuck_seconds",
	"suspect_seconds", "unhealthy_workers", "work_queue_items", "worker_queue_depth", "workers_deactivated", "workers_missing",
}

// Measure reads everything that alert rules watch: the database in one read-only
// transaction, then the broker. What could not be read is unknown, with the
// reason; the error is set when the database was not there at all.
func (m *Reader) Measure(ctx context.Context) (*Measures, error) {
	all := newMeasures()
	var workers []store.AlertWorkersRow
	open, counted := int64(-1), false
	err := m.Read(ctx, "measures", &all.Reading, func(ctx context.Context, tx *store.Tx, s monitor.Shape) (err error) {
		*all = Measures{Reading: all.Reading, Samples: map[string][]Sample{}, Unknown: map[string]string{}}
		if err := m.measureShared(ctx, tx, s, all); err != nil {
			return err
		}
		there, err := tx.AlertSchema(ctx)
		if err != nil || !there || !s.Shared {
			return err
		}
		counted = true
		if err := m.measureExecutions(ctx, tx, all); err != nil {
			return err
		}
		if workers, err = m.measureWorkers(ctx, tx, all); err != nil {
			return err
		}
		open, err = m.measureLetters(ctx, tx, all)
		return err
	})
	if err != nil {
		all.lose(err, databaseMeasures...)
	} else if counted {
		m.measurePartitions(ctx, all)
	}
	switch {
	case m.probe != nil:
		m.measureBroker(ctx, all, open, workers)
	case m.Deps().Broker != nil:
		m.measureByManagement(ctx, all, open)
	}
	m.finish(all)
	return all, err
}

// finish adds what is measured about measuring.
func (m *Reader) finish(all *Measures) {
	all.know("unmeasured")
	for _, name := range sortedNames(all.Unknown) {
		all.add("unmeasured", Sample{Target: name, Value: 1, Detail: all.Unknown[name]})
	}
}

// measureShared reads what the overview shows too.
func (m *Reader) measureShared(ctx context.Context, tx *store.Tx, s monitor.Shape, all *Measures) error {
	queues, totals, _, err := m.ReadQueues(ctx, tx, s, monitor.QueueFilter{}, measureQueues)
	if err != nil {
		return err
	}
	all.queues(queues, all.At)
	m.measureGrowth(queues, all)
	waiting, err := monitor.ReadWorkQueues(ctx, tx, s)
	if err != nil {
		return err
	}
	all.workQueues(waiting)
	replicas, err := m.ReadReplicas(ctx, tx, s, all.At)
	if err != nil {
		return err
	}
	if replicas != nil {
		all.replicas(replicas, totals.Queued)
	}
	return nil
}

func (m *Reader) measureExecutions(ctx context.Context, tx *store.Tx, all *Measures) error {
	allowed := cmp.Or(m.Config().ScheduledTimeout, monitor.DefaultScheduledTimeout)
	live, err := tx.AlertLive(ctx, measureRows, allowed.Seconds())
	if err != nil {
		return fmt.Errorf("look at unfinished executions: %w", err)
	}
	all.set("scheduled_overdue", float64(live.Overdue), phrase.Span(allowed))
	all.set("stuck_seconds", live.Longest, fmt.Sprintf("execution %d", live.Execution))
	lost, err := tx.AlertLostWork(ctx)
	if err != nil {
		return fmt.Errorf("count executions that timed out: %w", err)
	}
	timeouts, first := 0.0, ""
	for _, row := range lost {
		timeouts += float64(row.N)
		if first == "" {
			first = fmt.Sprintf("%d of %s (%s)", row.N, cmp.Or(row.Worker, "a worker that is gone"), row.Cause)
		}
	}
	all.set("execution_timeouts", timeouts, first)
	leaks, err := tx.AlertLeaks(ctx)
	if err != nil {
		return fmt.Errorf("look for slots of ended executions: %w", err)
	}
	all.set("leaked_slots", float64(leaks.N), fmt.Sprintf("execution %d", leaks.Execution))
	unplaced, err := tx.AlertUnplaced(ctx, measureRows)
	if err != nil {
		return fmt.Errorf("count queues that wait for workers: %w", err)
	}
	all.set("workers_missing", float64(unplaced.N), unplaced.Reason)
	if err := m.measureRules(ctx, tx, all); err != nil {
		return err
	}
	return m.measureShares(ctx, tx, all)
}

// measureRules looks for rules that fail, and at how often each fires.
func (m *Reader) measureRules(ctx context.Context, tx *store.Tx, all *Measures) error {
	rows, err := tx.AlertRules(ctx, measureEnds)
	if err != nil {
		return fmt.Errorf("look for rules that fail: %w", err)
	}
	all.know("failing_rules")
	for _, row := range rows {
		reason := strings.TrimPrefix(row.Reason, "rule "+row.Rule+": ")
		all.add("failing_rules", Sample{Target: row.Rule, Value: float64(row.N), Detail: reason, Since: &row.Since})
	}
	rates, err := tx.AlertRuleRates(ctx, measureEnds)
	if err != nil {
		return fmt.Errorf("measure how often rules fire: %w", err)
	}
	all.know("rule_rate")
	for _, row := range rates {
		all.add("rule_rate", Sample{Target: row.Rule, Value: row.Rate})
	}
	return nil
}

func (m *Reader) measureShares(ctx context.Context, tx *store.Tx, all *Measures) error {
	retries, err := tx.AlertRetries(ctx, measureRows)
	if err != nil {
		return fmt.Errorf("count repetitions: %w", err)
	}
	all.share("retry_rate", retries.Repeated, retries.Requested, "requested")
	ends, err := tx.AlertEnds(ctx, measureEnds)
	if err != nil {
		return fmt.Errorf("count failures: %w", err)
	}
	all.share("failure_ratio", ends.Failed, ends.Ended, "ended")
	if err := m.measureActions(ctx, tx, all); err != nil {
		return err
	}
	oldest, err := tx.AlertOutbox(ctx)
	if err != nil {
		return fmt.Errorf("look at the outbox: %w", err)
	}
	all.set("outbox_age", max(oldest, 0), "")
	return nil
}

// measureActions looks for actions whose executions fail, and for what most of these say.
func (m *Reader) measureActions(ctx context.Context, tx *store.Tx, all *Measures) error {
	rows, err := tx.AlertActionEnds(ctx, measureEnds, fewFailures)
	if err != nil {
		return fmt.Errorf("count failures by action: %w", err)
	}
	all.know("action_failures")
	if len(rows) == 0 {
		return nil
	}
	actions := make([]string, len(rows))
	for i := range rows {
		actions[i] = rows[i].ActionRef
	}
	said, err := tx.AlertActionReasons(ctx, monitor.ReasonScan, actions)
	if err != nil {
		return fmt.Errorf("ask why executions of actions failed: %w", err)
	}
	for _, row := range rows {
		if row.Bad == 0 {
			continue
		}
		detail := fmt.Sprintf("%d failed in 5m", row.Failed)
		if reason := commonest(said, row.ActionRef); reason != "" {
			detail += ", most with: " + reason
		}
		all.add("action_failures", Sample{Target: row.ActionRef, Value: float64(row.Bad) / float64(row.Bad+row.Good), Detail: detail})
	}
	return nil
}

// commonest is what most of the failed executions of an action say: one of the reasons
// that differ by numbers only.
func commonest(said []store.AlertActionReasonsRow, action string) string {
	counts, example := map[string]int64{}, map[string]string{}
	best := ""
	for _, r := range said {
		if r.ActionRef != action || r.Reason == "" {
			continue
		}
		key := monitor.Alike(r.Reason)
		counts[key] += r.N
		if example[key] == "" {
			example[key] = r.Reason
		}
		if counts[key] > counts[best] || counts[key] == counts[best] && key < best {
			best = key
		}
	}
	return example[best]
}

// measurePartitions counts what is missing of the partitions of each table, by
// their bounds and whatever their names, as soon as the first gap is near; and the
// default partition. A table that is not natively partitioned has none to miss.
func (m *Reader) measurePartitions(ctx context.Context, all *Measures) {
	tables, err := retention.ReadCoverage(ctx, m.Deps().Store)
	if err != nil {
		all.lose(err, "partitions_missing")
		return
	}
	all.know("partitions_missing")
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
			lacks = append(lacks, "the first gap is "+nearness(table.Ahead))
		}
		all.add("partitions_missing", Sample{Target: table.Table, Value: float64(missing), Detail: strings.Join(lacks, ", ")})
	}
}

// nearness says how far ahead a gap is.
func nearness(ahead time.Duration) string {
	if ahead <= 0 {
		return "now"
	}
	return "in " + phrase.Span(ahead.Round(time.Hour))
}

func (m *Measures) share(measure string, part, whole int64, word string) {
	if whole < fewEnds {
		m.set(measure, 0, "")
		return
	}
	m.set(measure, float64(part)/float64(whole), fmt.Sprintf("%d of %d %s in 15m", part, whole, word))
}

// measureLetters returns how many letters wait in the ledger; the depth is known
// once the broker has been asked.
func (m *Reader) measureLetters(ctx context.Context, tx *store.Tx, all *Measures) (int64, error) {
	letters, err := tx.AlertLetters(ctx, measureRows)
	if err != nil {
		return -1, fmt.Errorf("count dead letters: %w", err)
	}
	const minutes = 5
	all.set("dead_letter_rate", float64(letters.Recent)/minutes, "")
	return letters.Open, nil
}

// measureGrowth says by how much each queue is longer than some minutes ago. A queue
// beyond the longest that are read may have been there before without being counted:
// where such a list was cut, its newcomers are left out.
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

// depthMemory is how far back growth is measured, and depthSlack how much less will do.
const (
	depthMemory = 5 * time.Minute
	depthSlack  = 45 * time.Second
)

// depths remembers how many waited in the last minutes, by name. Its zero value is
// ready for use.
type depths struct {
	mu   sync.Mutex
	list []depthsAt
}

type depthsAt struct {
	at time.Time
	of map[string]int64
}

// record remembers depths and returns those of some minutes ago; false while so much
// time has not been seen.
func (d *depths) record(now time.Time, of map[string]int64) (map[string]int64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, depthsAt{now, of})
	d.list = slices.DeleteFunc(d.list, func(past depthsAt) bool { return now.Sub(past.at) > depthMemory+depthSlack })
	first := d.list[0]
	return first.of, now.Sub(first.at) >= depthMemory-depthSlack
}
