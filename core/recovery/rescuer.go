package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/attune-go/attune/core/alertevent"
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// RescuerConfig is what the search for orphaned work depends on.
type RescuerConfig struct {
	// Interval between looks. Default 60 s.
	Interval time.Duration
	// StaleAfter is the age of a heartbeat from which a worker is gone.
	// Default 90 s.
	StaleAfter time.Duration
	// ScheduledTimeout is how long a worker that lives may take to start what it
	// was handed, unless the action says. Default 5 min.
	ScheduledTimeout time.Duration
	// Grace is how long beyond its timeout an execution may run before it is ended
	// here. Default 30 s.
	Grace time.Duration
	// Farewell is how long after a worker has marked itself inactive what it runs is
	// ended: existing workers say so first and send no heartbeats while they finish.
	// Default 30 s, which is what they take at most.
	Farewell time.Duration
	// UnfencedTimeout is how long an execution whose task and action set no timeout
	// may run at a worker that does not fence attempts. Such a worker ends it after
	// five minutes, or has been started anew and knows nothing of it, which nothing
	// else would tell. Default 5 min.
	UnfencedTimeout time.Duration
	// ActionTimeouts says whether timeout_seconds of an action takes effect: true,
	// false, or origin, which is true unless the schema is that of an existing
	// installation. True if empty.
	ActionTimeouts string
	// Patience is how long a worker that lives may take to stop what it was told to
	// stop. Default 10 times Grace.
	Patience time.Duration
	// FailLost ends what ran at a worker that is gone as failed, not as abandoned.
	FailLost bool
	// Blind reports that hand-overs may not have reached the workers that live, as
	// while the broker is away; then nobody is blamed for not starting them. Nil
	// never does.
	Blind func() bool
	// Unsure reports that silence and age say nothing, because the database has not
	// been there all the time: nobody could write that he lives, or has begun, or
	// ended. Nil never does.
	Unsure func() bool
	// Recovering reports that this is because of an outage. Then nothing is looked
	// for; otherwise, right after the start, only for what workers run that have
	// marked themselves inactive. Nil always does.
	Recovering func() bool
}

func (c RescuerConfig) withDefaults() RescuerConfig {
	if c.Interval <= 0 {
		c.Interval = time.Minute
	}
	if c.StaleAfter <= 0 {
		c.StaleAfter = 90 * time.Second
	}
	if c.ScheduledTimeout <= 0 {
		c.ScheduledTimeout = 5 * time.Minute
	}
	if c.Grace <= 0 {
		c.Grace = 30 * time.Second
	}
	if c.Farewell <= 0 {
		c.Farewell = 30 * time.Second
	}
	if c.UnfencedTimeout <= 0 {
		c.UnfencedTimeout = 5 * time.Minute
	}
	if c.Patience <= 0 {
		c.Patience = 10 * c.Grace
	}
	if c.Blind == nil {
		c.Blind = never
	}
	if c.Unsure == nil {
		c.Unsure = never
	}
	if c.Recovering == nil {
		c.Recovering = func() bool { return true }
	}
	return c
}

func never() bool { return false }

// forever is an age that nothing reaches, in seconds.
const forever = 1e9

// Relay publishes what a committed transaction has put into the outbox.
type Relay interface {
	Published(row int64, messages []outbox.Message)
}

// Rescuer deals with work that its worker does not do. What was handed to one that
// is gone and never started goes to the batches, which find another worker for it
// (see scheduler.ReassignStep), and so does what one that lives has not started in time; what ran
// at one that is gone is ended, and what runs for longer than it may or than its
// cancel allows. Age, status
// and heartbeat are judged by the database in the statement that writes (invariant
// S9), and the message that the execution has ended is written with it, and a
// core.alert event where its worker was lost; slots are
// given back when that message is read. A worker that comes back late finds its
// rows closed, and what it writes is refused and recorded.
type Rescuer struct {
	*supervise.Loop

	cfg    RescuerConfig
	store  *store.Store
	submit func(context.Context, Found) error
	relay  Relay
	logger *slog.Logger
	rows   int32          // of a window
	after  map[bool]int64 // where the next window begins: of holders, and of live rows that hold no slot
	early  *time.Timer    // wakes the loop when the next worker is gone
}

// NewRescuer makes the search. submit is called with what batches are to decide.
func NewRescuer(
	cfg RescuerConfig, st *store.Store, submit func(context.Context, Found) error, relay Relay, logger *slog.Logger, metrics *supervise.Metrics,
) *Rescuer {
	o := &Rescuer{cfg: cfg.withDefaults(), store: st, submit: submit, relay: relay, logger: logger, rows: rowsPerSweep, after: map[bool]int64{}}
	o.Loop = supervise.NewLoop(supervise.LoopConfig{
		// Never later than the interval, within which the loss of a worker is promised to be seen.
		Name: "timeouts", Failure: "Error checking stale executions", Interval: o.cfg.Interval * 9 / 10, Timeout: 30 * time.Second, Jitter: 0.1,
		Tick: o.tick, Logger: logger, Metrics: metrics,
	})
	o.early = time.AfterFunc(time.Hour, o.Wake)
	o.early.Stop()
	return o
}

// Stop implements supervise.Service.
func (o *Rescuer) Stop() {
	o.Loop.Stop()
	o.early.Stop()
}

// otherWindows is how many windows of live rows without a slot one tick reads. Nearly all of
// them wait, and there may be a million; the others are parents, questions, and what another
// engine has handed over.
const otherWindows = 2

// tick looks through all slot holders, and then through the other live rows from where the last
// tick stopped, a window at a time, one transaction each. If a worker is gone before the
// interval is over unless it beats, the next tick comes then.
func (o *Rescuer) tick(ctx context.Context) error {
	soonest := o.cfg.Interval
	for _, holders := range []bool{true, false} {
		for more, windows := true, 0; more && (holders || windows < otherWindows); windows++ {
			sure := !o.cfg.Unsure()
			if !sure && o.cfg.Recovering() {
				return nil
			}
			var loss time.Duration
			var err error
			if more, loss, err = o.window(ctx, sure, holders); err != nil {
				return fmt.Errorf("look for orphaned work: %w", err)
			}
			if loss > 0 {
				soonest = min(soonest, loss)
			}
		}
	}
	if soonest < o.cfg.Interval {
		o.early.Reset(soonest + 10*time.Millisecond)
	}
	return nil
}

// window handles the orphans of one window. It returns whether there are more, and how
// long from now the next worker of the window is gone, 0 if there is none. When silence
// says nothing, it handles only executions of workers that marked themselves inactive.
func (o *Rescuer) window(ctx context.Context, sure, holders bool) (more bool, loss time.Duration, err error) {
	var unstarted []scheduler.Unstarted
	after, staleAfter := o.after[holders], o.cfg.StaleAfter.Seconds()
	if !sure {
		staleAfter = forever
	}
	err = o.store.Tx(ctx, "orphans", func(ctx context.Context, tx *store.Tx) error {
		after, unstarted = o.after[holders], nil
		won, err := tx.TryLoopLock(ctx, "timeouts")
		if err != nil || !won {
			return err
		}
		found, err := tx.FindOrphans(ctx, store.FindOrphansParams{
			StaleAfter: staleAfter, ScheduledTimeout: o.cfg.ScheduledTimeout.Seconds(), Grace: o.cfg.Grace.Seconds(),
			Patience: o.cfg.Patience.Seconds(), Farewell: o.cfg.Farewell.Seconds(), UnfencedTimeout: o.cfg.UnfencedTimeout.Seconds(),
			Holders: holders, After: o.after[holders], WindowSize: o.rows, ActionTimeouts: o.cfg.ActionTimeouts,
		})
		if err != nil {
			return fmt.Errorf("find orphans: %w", err)
		}
		after, loss = next(found.Last, found.Scanned, o.rows), time.Duration(found.NextLossSeconds*float64(time.Second))
		if !sure {
			found = store.FindOrphansRow{Ids: found.Ids}
		}
		for _, id := range found.Stranded {
			unstarted = append(unstarted, scheduler.Unstarted{Execution: id})
		}
		late, err := o.overdue(ctx, tx, found.Overdue)
		if err != nil {
			return err
		}
		unstarted = append(unstarted, late...)
		return o.end(ctx, tx, found, staleAfter)
	})
	if err != nil {
		return false, 0, err
	}
	o.after[holders] = after
	return after > 0, loss, o.handOn(ctx, unstarted)
}

// overdue describes what workers that live have not started in time.
func (o *Rescuer) overdue(ctx context.Context, tx *store.Tx, ids []int64) ([]scheduler.Unstarted, error) {
	if len(ids) == 0 || o.cfg.Blind() {
		return nil, nil
	}
	rows, err := tx.DescribeOverdue(ctx, placement.CapacityDefault, o.cfg.ScheduledTimeout.Seconds(), ids)
	if err != nil {
		return nil, fmt.Errorf("describe %d overdue executions: %w", len(ids), err)
	}
	late := make([]scheduler.Unstarted, len(rows))
	for i, row := range rows {
		late[i] = scheduler.Unstarted{
			Execution: row.ID, Worker: row.Worker, Attempt: row.Attempt,
			Late: &scheduler.Late{Allowed: time.Duration(row.AllowedSeconds * float64(time.Second)), Full: row.Full},
		}
	}
	return late, nil
}

// handOn gives what was never started to the batches, which find other workers.
func (o *Rescuer) handOn(ctx context.Context, unstarted []scheduler.Unstarted) error {
	if len(unstarted) == 0 {
		return nil
	}
	late := 0
	for _, one := range unstarted {
		if one.Late != nil {
			late++
		}
	}
	o.logger.WarnContext(ctx, "Executions lie at workers that do not start them",
		"at_workers_that_are_gone", len(unstarted)-late, "overdue_at_live_workers", late)
	found := Found{Unstarted: unstarted}
	for !found.Empty() {
		if err := o.submit(ctx, found.take(pageDefault)); err != nil {
			return err
		}
	}
	return nil
}

// end ends what runs at workers that are gone, and what does not end by itself.
func (o *Rescuer) end(ctx context.Context, tx *store.Tx, found store.FindOrphansRow, staleAfter float64) error {
	lost, err := o.endLost(ctx, tx, found.Ids, staleAfter)
	if err != nil {
		return err
	}
	over, err := o.endOverruns(ctx, tx, found.Overrun)
	if err != nil {
		return err
	}
	unheard, err := o.endUnheard(ctx, tx, found.Unheard)
	if err != nil {
		return err
	}
	headless, err := o.endHeadless(ctx, tx, found.Headless)
	if err != nil {
		return err
	}
	said := slices.Concat(lost, over, unheard, headless)
	if len(said) == 0 {
		return nil
	}
	messages, err := encode(said)
	if err != nil {
		return err
	}
	row, err := outbox.Append(ctx, tx, messages)
	if err != nil {
		return err
	}
	tx.AfterCommit(func() {
		o.log(ctx, "its worker is gone", lost)
		o.log(ctx, "it ran beyond its timeout", over)
		o.log(ctx, "its worker did not stop it", unheard)
		o.log(ctx, "its workflow or inquiry is gone", headless)
		o.relay.Published(row, messages)
	})
	return nil
}

// log names the executions that were ended in place of their workers.
func (o *Rescuer) log(ctx context.Context, reason string, ended []told) {
	for _, one := range ended {
		if end, ok := one.payload.(message.ExecutionCompleted); ok {
			o.logger.WarnContext(ctx, "Orphaned execution ended", "execution_id", end.ExecutionID, "action_ref", end.ActionRef,
				"status", end.Status, "reason", reason)
		}
	}
}

func (o *Rescuer) endLost(ctx context.Context, tx *store.Tx, ids []int64, staleAfter float64) (said []told, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	status := attune.StatusAbandoned
	if o.cfg.FailLost {
		status = attune.StatusFailed
	}
	rows, err := tx.EndOrphanedRuns(ctx, store.EndOrphanedRunsParams{
		Status: string(status), Ids: ids, StaleAfter: staleAfter, Farewell: o.cfg.Farewell.Seconds(),
	})
	if err != nil {
		return nil, fmt.Errorf("end what ran at workers that are gone: %w", err)
	}
	var alerts []alertevent.Alert
	for _, row := range rows {
		said = append(said, endOf(row))
		alert, err := lostAlert(row, status)
		if err != nil {
			return nil, err
		}
		if alert != nil {
			alerts = append(alerts, *alert)
		}
	}
	return said, alertevent.Emit(ctx, tx, nil, alerts)
}

// lostAlert is the core.alert event of an execution that was ended because its worker
// is gone; nil where the worker's row is gone too, where an operator has cordoned it,
// and where the end was asked for.
func lostAlert(row store.EndOrphanedRunsRow, status attune.Status) (*alertevent.Alert, error) {
	var result struct {
		At     time.Time `json:"reconciled_at"`
		Worker *struct {
			ID            int64           `json:"id"`
			Name          string          `json:"name"`
			Role          string          `json:"role"`
			Status        *string         `json:"status"`
			LastHeartbeat json.RawMessage `json:"last_heartbeat"`
			Cordoned      bool            `json:"cordoned"`
		} `json:"worker"`
	}
	if err := json.Unmarshal(row.Result, &result); err != nil {
		return nil, fmt.Errorf("read the result of execution %d: %w", row.ID, err)
	}
	worker := result.Worker
	if worker == nil || worker.Cordoned || row.Status == attune.StatusCancelled {
		return nil, nil //nolint:nilnil // nothing to tell
	}
	return &alertevent.Alert{
		Severity: "error", Category: "execution_reconciliation", FailureType: "execution_abandoned_worker_unavailable",
		ComponentType: "execution", ComponentID: &row.ID, ComponentRef: &row.ActionRef, WorkerRole: &worker.Role, ObservedAt: result.At.UTC(),
		Summary: fmt.Sprintf("Execution %d is %s: its worker '%s' became unavailable", row.ID, status, worker.Name),
		Details: map[string]any{
			"execution_id": row.ID, "action_ref": row.ActionRef, "worker_id": worker.ID, "worker_name": worker.Name, "worker_role": worker.Role,
			"worker_status": worker.Status, "last_heartbeat": worker.LastHeartbeat, "reconciliation_result": json.RawMessage(row.Result),
		},
		CorrelationID: new(fmt.Sprintf("execution:%d:worker_unavailable", row.ID)),
	}, nil
}

// endOverruns has the workers told to stop, too.
func (o *Rescuer) endOverruns(ctx context.Context, tx *store.Tx, ids []int64) (said []told, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.EndOverruns(ctx, store.EndOverrunsParams{
		ActionTimeouts: o.cfg.ActionTimeouts, Grace: o.cfg.Grace.Seconds(), UnfencedTimeout: o.cfg.UnfencedTimeout.Seconds(), Ids: ids,
	})
	if err != nil {
		return nil, fmt.Errorf("end what runs for too long: %w", err)
	}
	for _, row := range rows {
		stop := message.ExecutionCancelRequested{ExecutionID: row.ID, WorkerID: row.Worker}
		said = append(said, endOf(row), told{message.TypeExecutionCancelRequested, message.CancelKey(row.Worker), stop, row.FinishedAt})
	}
	return said, nil
}

func (o *Rescuer) endUnheard(ctx context.Context, tx *store.Tx, ids []int64) (said []told, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.EndUnheardCancels(ctx, ids, o.cfg.Patience.Seconds())
	if err != nil {
		return nil, fmt.Errorf("end what was to be stopped: %w", err)
	}
	for _, row := range rows {
		said = append(said, endOf(row))
	}
	return said, nil
}

// endHeadless ends parents and questions whose other half was deleted.
func (o *Rescuer) endHeadless(ctx context.Context, tx *store.Tx, ids []int64) (said []told, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.EndHeadless(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("end what nothing is left of: %w", err)
	}
	for _, row := range rows {
		said = append(said, endOf(row))
	}
	return said, nil
}

// told is something to be said in the engine's name.
type told struct {
	kind, key string
	payload   any
	at        time.Time
}

// endOf is the message that an execution has ended.
func endOf[Row store.EndOrphanedRunsRow | store.EndOverrunsRow | store.EndUnheardCancelsRow | store.EndHeadlessRow](row Row) told {
	r := store.EndOverrunsRow(row)
	payload := message.ExecutionCompleted{
		ExecutionID: r.ID, ActionRef: r.ActionRef, Status: string(r.Status), Result: json.RawMessage(r.Result), CompletedAt: r.FinishedAt.UTC(),
	}
	if r.Action != nil {
		payload.ActionID = *r.Action
	}
	return told{message.TypeExecutionCompleted, message.KeyExecutionCompleted, payload, payload.CompletedAt}
}

// encode makes messages of what is to be said.
func encode(list []told) ([]outbox.Message, error) {
	messages := make([]outbox.Message, len(list))
	for i, one := range list {
		envelope := message.New(one.kind, one.payload, one.at.UTC(), "execution_timeout_monitor")
		body, err := envelope.Encode()
		if err != nil {
			return nil, fmt.Errorf("encode %s for %s: %w", one.kind, one.key, err)
		}
		messages[i] = outbox.Message{
			ID: envelope.MessageID, Exchange: message.ExchangeExecutions, RoutingKey: one.key, Type: one.kind, Body: body,
		}
	}
	return messages, nil
}
