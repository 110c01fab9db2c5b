package alerting

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

func sortedNames[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// queues takes over the waits and lengths of queues.
func (m *Measures) queues(list []monitor.Queue, now time.Time) {
	m.know("head_wait", "idle_slots", "paused_wait", "queue_fill", "queue_length", "queue_paused")
	for i := range list {
		q := &list[i]
		if q.Queued == 0 {
			continue
		}
		s := Sample{Target: q.Name(), Value: float64(q.Queued), Since: q.Oldest}
		if q.Paused {
			m.paused(q, s, now)
			continue
		}
		s.Detail = cmp.Or(q.Blocked, slotsUsed(q))
		m.add("queue_length", s)
		if q.MaxQueued != nil {
			full := Sample{Target: s.Target, Value: float64(q.Queued) / float64(*q.MaxQueued), Since: s.Since}
			full.Detail = fmt.Sprintf("%d of at most %d wait, %s", q.Queued, *q.MaxQueued, s.Detail)
			m.add("queue_fill", full)
		}
		if q.Oldest == nil {
			continue
		}
		s.Value, s.Detail = max(now.Sub(*q.Oldest).Seconds(), 0), fmt.Sprintf("%d deep, %s", q.Queued, s.Detail)
		m.add("head_wait", s)
		if (q.Limit == nil || q.Active < *q.Limit) && q.BlockedScope == nil && q.BlockedUntil == nil {
			m.add("idle_slots", s)
		}
	}
}

// paused takes over how many wait in a queue that is paused, and for how long they do
// for that reason.
func (m *Measures) paused(q *monitor.Queue, s Sample, now time.Time) {
	s.Detail = fmt.Sprintf("%s, %d wait", pausedBy(q, now), q.Queued)
	if q.PauseReason != "" {
		s.Detail += ": " + q.PauseReason
	}
	m.add("queue_paused", s)
	begun := q.Oldest
	if q.PausedAt != nil && (begun == nil || q.PausedAt.After(*begun)) {
		begun = q.PausedAt
	}
	if begun != nil {
		s.Value, s.Since = max(now.Sub(*begun).Seconds(), 0), begun
		m.add("paused_wait", s)
	}
}

// pausedBy says who has paused the queue and how long ago, as far as that is known.
func pausedBy(q *monitor.Queue, now time.Time) string {
	by := "by " + cmp.Or(q.PausedBy, "somebody")
	if q.PausedAt != nil {
		by += " for " + phrase.Since(*q.PausedAt, now)
	}
	return by
}

func slotsUsed(q *monitor.Queue) string {
	if q.Limit != nil {
		return fmt.Sprintf("%d of %d slots used", q.Active, *q.Limit)
	}
	return phrase.Plural(q.Active, "slot", "slots") + " used"
}

// replicas takes over how the replicas of the engine are.
func (m *Measures) replicas(all *monitor.Replicas, waiting int64) {
	m.know("replica_silence", "loop_silence", "replica_problems", "installation_faults")
	alive, connected := 0, 0
	for i := range all.List {
		r := &all.List[i]
		where := fmt.Sprintf("host %s, pid %d", r.Host, r.PID)
		m.add("replica_silence", Sample{Target: r.Short(), Value: r.Age.Seconds(), Detail: where, Since: &r.LastSeen})
		if !r.Alive() {
			continue
		}
		alive++
		if r.State != monitor.StateDisconnected {
			connected++
		}
		if faults := r.Details.Installation; len(faults) > 0 {
			m.add("installation_faults", Sample{
				Target: r.Short(), Value: float64(len(faults)), Detail: faults[0].Problem + ": " + faults[0].Fix, Since: &faults[0].Since,
			})
		}
		if troubles := r.Troubles(); len(troubles) > 0 {
			m.add("replica_problems", Sample{Target: r.Short(), Value: float64(len(troubles)), Detail: strings.Join(troubles, ", ")})
		}
		for _, loop := range r.SilentLoops() {
			over := r.Silence(loop) - r.Details.Loops[loop].Patience
			m.add("loop_silence", Sample{Target: r.Short() + "/" + loop, Value: over.Seconds(), Detail: cmp.Or(r.Details.Loops[loop].Error, where)})
		}
	}
	m.cutOff = alive > 0 && connected == 0
	detail := ""
	if waiting > 0 {
		detail = fmt.Sprintf(": %s", phrase.Plural(waiting, "execution waits", "executions wait"))
	}
	sample := Sample{Value: float64(alive), Detail: detail}
	if alive == 0 {
		sample.Since = all.LastSeen
	}
	m.Samples["replicas"] = []Sample{sample}
}

// alarms takes over the alarms of the broker.
func (m *Measures) alarms(list []string) {
	m.set("broker_alarms", float64(len(list)), strings.Join(list, ", "))
}

// worker is what the rules about workers look at.
type worker struct {
	name               string
	sensor             bool
	active             bool // by its row
	kept               bool // cordoned or draining
	silence            time.Duration
	suspect            *time.Duration
	suspectWhy, health string
	assigned           int64
	never              bool // it never sent a heartbeat
}

// workers takes over heartbeats and suspicions, and how many workers take work.
func (m *Measures) workers(list []worker, now time.Time, staleAfter time.Duration) {
	m.know("heartbeat_age", "suspect_seconds")
	active, unhealthy, ill := int64(0), 0, []string{}
	for _, w := range list {
		since := now.Add(-w.silence)
		owns := ""
		if w.assigned > 0 {
			owns = ", owns " + phrase.Plural(w.assigned, "execution", "executions")
		}
		detail := owns
		if w.never {
			detail = ", it never reported" + owns
		}
		m.add("heartbeat_age", Sample{Target: w.name, Value: w.silence.Seconds(), Detail: detail, Since: &since})
		if w.suspect != nil {
			begun := now.Add(-*w.suspect)
			m.add("suspect_seconds", Sample{
				Target: w.name, Value: max(w.suspect.Seconds(), 0.001), Detail: cmp.Or(w.suspectWhy, "its queue took nothing") + owns, Since: &begun,
			})
		}
		if !w.active || w.sensor || w.kept || w.silence > staleAfter || w.suspect != nil {
			continue
		}
		active++
		if w.health == "unhealthy" {
			unhealthy++
			ill = append(ill, w.name)
		}
	}
	m.working(active)
	share := 0.0
	if active > 0 {
		share = float64(unhealthy) / float64(active)
	}
	m.set("unhealthy_workers", share, strings.Join(ill[:min(len(ill), 5)], ", "))
}

// working takes over how many workers are given work.
func (m *Measures) working(n int64) {
	s := Sample{Value: float64(n)}
	if m.cutOff {
		s.Hint = hintCutOff
	}
	m.Samples["active_workers"] = []Sample{s}
}

func (m *Reader) measureWorkers(ctx context.Context, tx *store.Tx, all *Measures) ([]store.AlertWorkersRow, error) {
	rows, err := tx.AlertWorkers(ctx, probeValid.Seconds(), monitor.WorkerLimit)
	if err != nil {
		return nil, fmt.Errorf("look at the workers: %w", err)
	}
	list, vanished := make([]worker, len(rows)), []string{}
	for i, r := range rows {
		if r.Vanished {
			vanished = append(vanished, r.Name)
		}
		w := worker{
			name: r.Name, sensor: r.Role == "sensor", active: r.Active, kept: r.Cordoned || r.Draining, suspectWhy: r.SuspectReason,
			health: r.Health, assigned: r.Assigned, silence: monitor.Seconds(r.Silence), never: r.Silence < 0,
		}
		if w.never {
			w.silence = monitor.Seconds(r.Age)
		}
		if r.Suspect >= 0 {
			since := monitor.Seconds(r.Suspect)
			w.suspect = &since
		}
		list[i] = w
	}
	all.workers(list, all.At, m.Config().StaleAfter)
	all.set("workers_deactivated", float64(len(vanished)), strings.Join(vanished[:min(len(vanished), 5)], ", "))
	return rows, nil
}

// measureBroker asks the broker. open is how many letters wait in the ledger,
// negative when that is not known.
func (m *Reader) measureBroker(ctx context.Context, all *Measures, open int64, workers []store.AlertWorkersRow) {
	ctx, cancel := context.WithTimeout(ctx, 2*probePatience)
	defer cancel()
	m.measureDepth(ctx, all, open)
	m.measureWorkerQueues(ctx, all, workers)
	for _, question := range []struct {
		measure string
		ask     func(context.Context) ([]string, error)
	}{
		{"dead_letter_routes_lost", m.probe.LostRoutes},
		{"topology_problems", m.probe.Missing},
		{"other_executors", m.probe.OtherExecutors},
	} {
		found, err := question.ask(ctx)
		if err != nil {
			all.lose(err, question.measure)
			continue
		}
		all.set(question.measure, float64(len(found)), strings.Join(found[:min(len(found), 3)], ", "))
	}
	switch alarms, asked, err := m.probe.Alarms(ctx); {
	case err != nil:
		all.lose(err, "broker_alarms")
	case asked:
		all.alarms(alarms)
	}
}

func (m *Reader) measureDepth(ctx context.Context, all *Measures, open int64) {
	if open < 0 {
		return // unknown already, or nobody keeps a ledger
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	ready, err := m.probe.QueueDepth(ctx, monitor.DeadLetterQueue)
	if err != nil {
		all.lose(err, "dead_letter_depth", "dead_letters_growth")
		return
	}
	all.letters(ready, open, fmt.Sprintf("%d in %s, %d in the ledger for a person", ready, monitor.DeadLetterQueue, open))
	if before, known := m.letterDepths.record(all.At, map[string]int64{"": ready + open}); known {
		all.set("dead_letters_growth", float64(max(ready+open-before[""], 0)), all.Samples["dead_letter_depth"][0].Detail)
	}
}

// letters takes over how many dead letters wait.
func (m *Measures) letters(ready, open int64, detail string) {
	m.set("dead_letter_depth", float64(ready+open), detail)
}

func (m *Reader) measureWorkerQueues(ctx context.Context, all *Measures, workers []store.AlertWorkersRow) {
	if workers == nil {
		return
	}
	all.know("worker_queue_depth")
	asked := 0
	for _, w := range workers {
		if w.Role == "sensor" {
			continue
		}
		ready := w.Ready
		if ready < 0 && asked < measureProbes {
			asked++
			depth, err := m.probe.QueueDepth(ctx, monitor.WorkerQueue(w.ID))
			if err != nil {
				all.lose(err, "worker_queue_depth")
				return
			}
			ready = depth
		}
		if ready >= 0 {
			all.add("worker_queue_depth", Sample{Target: w.Name, Value: float64(ready)})
		}
	}
}

// measureByManagement takes what the management interface says, for who has no
// connection to the broker.
func (m *Reader) measureByManagement(ctx context.Context, all *Measures, open int64) {
	b, err := m.Broker(ctx)
	all.Sources = append(all.Sources, b.Sources...)
	if err != nil {
		all.lose(err, "broker_alarms", "dead_letter_depth", "dead_letters_growth")
		return
	}
	if b.AlarmsUnknown == "" {
		all.alarms(b.Alarms)
	}
	if dead, ok := b.Queue(monitor.DeadLetterQueue); ok && !dead.Uncounted && open >= 0 {
		all.letters(dead.Ready, open, consumers(dead))
	}
}

// workQueues takes over the items that wait in work queues.
func (m *Measures) workQueues(list []monitor.WorkQueue) {
	m.know("work_queue_items")
	for i := range list {
		q := &list[i]
		m.add("work_queue_items", Sample{Target: q.Ref, Value: float64(q.Items().Value), Detail: q.Words(m.At), Since: &q.Oldest})
	}
}
