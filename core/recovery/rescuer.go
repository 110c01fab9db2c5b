package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// RescuerConfig configures the Rescuer.
type RescuerConfig struct {
	// Interval is the pause between ticks. Default 60 s.
	Interval time.Duration
	// StaleAfter is the heartbeat age from which a worker counts as dead. Default 90 s.
	StaleAfter time.Duration
	// ScheduledTimeout is how long a live worker may take to start an execution, unless the action
	// sets a timeout. Default 5 min.
	ScheduledTimeout time.Duration
	// Grace is how long an execution may run beyond its timeout before the Rescuer ends it. Default
	// 30 s.
	Grace time.Duration
	// LeaveGrace is the delay between a worker marking itself inactive and the end of its running
	// executions. Existing workers mark themselves first and send no heartbeats while they finish.
	// Default 30 s, which is the longest that they take.
	LeaveGrace time.Duration
	// UnfencedTimeout is the timeout of executions at a worker that does not fence attempts, if
	// neither task nor action sets one. Such a worker ends them after five minutes. If it
	// restarted, it does not know them, and nothing else would reveal that. Default 5 min.
	UnfencedTimeout time.Duration
	// ActionTimeouts says whether timeout_seconds of an action takes effect: true, false, or
	// origin, which is true except on the schema of an existing installation. Empty means true.
	ActionTimeouts string
	// CancelTimeout is how long a live worker may take to stop a cancelled execution. Default 10
	// times Grace.
	CancelTimeout time.Duration
	// FailLost ends executions of dead workers as failed, not as abandoned.
	FailLost bool
	// DispatchesDelayed reports that dispatches may not have reached live workers, for example
	// because the broker is away. The Rescuer then ends no execution for starting late. Nil means
	// never.
	DispatchesDelayed func() bool
	// Unsure reports that heartbeats and ages prove nothing, because the database was unreachable
	// at times: workers could not record heartbeats, starts or ends. Nil means never.
	Unsure func() bool
	// Recovering reports that Unsure follows an outage. The Rescuer then reads nothing. Without an
	// outage, right after the start, it only handles running executions of workers that marked
	// themselves inactive. Nil means always.
	Recovering func() bool
}

func (c RescuerConfig) withDefaults() RescuerConfig {
	c.Interval = supervise.OrDefault(c.Interval, time.Minute)
	c.StaleAfter = supervise.OrDefault(c.StaleAfter, 90*time.Second)
	c.ScheduledTimeout = supervise.OrDefault(c.ScheduledTimeout, 5*time.Minute)
	c.Grace = supervise.OrDefault(c.Grace, 30*time.Second)
	c.LeaveGrace = supervise.OrDefault(c.LeaveGrace, 30*time.Second)
	c.UnfencedTimeout = supervise.OrDefault(c.UnfencedTimeout, 5*time.Minute)
	c.CancelTimeout = supervise.OrDefault(c.CancelTimeout, 10*c.Grace)
	if c.DispatchesDelayed == nil {
		c.DispatchesDelayed = never
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

// forever is an age in seconds that no row reaches.
const forever = 1e9

// Rescuer ends or reassigns executions of dead workers. Executions that never started, at dead or
// late workers, go to the batches, which find another worker (see scheduler.ReassignStep). The
// Rescuer ends running executions of dead workers, and executions that run beyond their timeout or
// their cancel grace. The database checks age, status and heartbeat in the statement that writes
// (invariant S9). The same transaction writes the completion message and, for a dead worker, a
// core.alert event; the reader of the message releases the slots. A worker that returns late finds
// its rows closed; its writes are refused and recorded.
type Rescuer struct {
	*supervise.Loop

	cfg    RescuerConfig
	store  *store.Store
	submit Submit
	relay  outbox.Publishing
	logger *slog.Logger
	rows   int32          // window size
	after  map[bool]int64 // start of the next window: of holders, and of live rows without a slot
	early  *time.Timer    // wakes the loop when the next worker counts as dead
}

// NewRescuer makes the loop. It calls submit with executions that batches must decide.
func NewRescuer(
	cfg RescuerConfig, st *store.Store, submit Submit, relay outbox.Publishing, logger *slog.Logger,
	metrics *supervise.Metrics,
) *Rescuer {
	o := &Rescuer{
		cfg: cfg.withDefaults(), store: st, submit: submit, relay: relay, logger: logger, rows: rowsPerSweep,
		after: map[bool]int64{},
	}
	o.Loop = supervise.NewLoop(supervise.LoopConfig{
		// Never later than the interval, which bounds the detection of a dead worker.
		Name: "timeouts", Failure: "Error checking stale executions", Interval: o.cfg.Interval * 9 / 10,
		Timeout: 30 * time.Second, Jitter: 0.1,
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

// otherWindows is how many windows of live rows without a slot one tick reads. There may be a
// million, and nearly all of them wait; the rest are parents, inquiries, and executions that
// another engine dispatched.
const otherWindows = 2

// tick reads all slot holders, and then the other live rows from where the last tick stopped, one
// transaction a window. If a worker would count as dead before the next interval, the next tick
// comes at that time.
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
				return fmt.Errorf("find orphaned executions: %w", err)
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

// window handles the orphans of one window. It returns whether there are more, and the delay until
// the next worker of the window counts as dead, 0 for none. If heartbeats prove nothing, it only
// handles executions of workers that marked themselves inactive. If a row makes the ends of the
// window fail, they are divided, so that it delays no other.
func (o *Rescuer) window(ctx context.Context, sure, holders bool) (more bool, loss time.Duration, err error) {
	var unstarted []scheduler.Unstarted
	var found store.FindOrphansRow
	after, staleAfter := o.after[holders], o.cfg.StaleAfter.Seconds()
	if !sure {
		staleAfter = forever
	}
	find := func(ctx context.Context, tx *store.Tx) error {
		after, unstarted, found = o.after[holders], nil, store.FindOrphansRow{}
		won, err := tx.TryLoopLock(ctx, "timeouts")
		if err != nil || !won {
			return err
		}
		found, err = tx.FindOrphans(ctx, store.FindOrphansParams{
			StaleAfter: staleAfter, ScheduledTimeout: o.cfg.ScheduledTimeout.Seconds(), Grace: o.cfg.Grace.Seconds(),
			CancelTimeout: o.cfg.CancelTimeout.Seconds(), LeaveGrace: o.cfg.LeaveGrace.Seconds(),
			UnfencedTimeout: o.cfg.UnfencedTimeout.Seconds(),
			Holders:         holders, After: o.after[holders], WindowSize: o.rows, ActionTimeouts: o.cfg.ActionTimeouts,
		})
		if err != nil {
			return fmt.Errorf("find orphans: %w", err)
		}
		after, loss = next(found.Last, found.Scanned, o.rows), time.Duration(found.NextLossSeconds*float64(time.Second))
		if !sure {
			found = store.FindOrphansRow{Ids: found.Ids}
		}
		for _, id := range found.Unstarted {
			unstarted = append(unstarted, scheduler.Unstarted{Execution: id})
		}
		late, err := o.overdue(ctx, tx, found.Overdue)
		unstarted = append(unstarted, late...)
		return err
	}
	err = o.store.Tx(ctx, "orphans", func(ctx context.Context, tx *store.Tx) error {
		if err := find(ctx, tx); err != nil {
			return err
		}
		return o.end(ctx, tx, found, staleAfter)
	})
	if store.Divisible(err) {
		if err = o.store.Tx(ctx, "orphans", find); err == nil {
			err = o.endParts(ctx, found, staleAfter)
		}
	}
	if err != nil {
		return false, 0, err
	}
	o.after[holders] = after
	return after > 0, loss, o.submitUnstarted(ctx, unstarted)
}

// endParts ends the executions in transactions of halves, of quarters and so on. One that fails
// alone is logged and found again later.
func (o *Rescuer) endParts(ctx context.Context, found store.FindOrphansRow, staleAfter float64) error {
	kinds := [][]int64{found.Ids, found.Overrun, found.CancelIgnored, found.Headless}
	executions := slices.Concat(kinds...)
	if len(executions) == 0 {
		return nil
	}
	err := o.store.Tx(ctx, "orphans", func(ctx context.Context, tx *store.Tx) error {
		return o.end(ctx, tx, found, staleAfter)
	})
	switch {
	case !store.Divisible(err):
		return err
	case len(executions) == 1:
		o.logger.ErrorContext(ctx, "Orphaned execution cannot be ended", "execution_id", executions[0], "error", err)
		return nil
	}
	first := setOf(executions[:len(executions)/2])
	part := func(in bool) (half store.FindOrphansRow) {
		for i, to := range []*[]int64{&half.Ids, &half.Overrun, &half.CancelIgnored, &half.Headless} {
			for _, id := range kinds[i] {
				if first[id] == in {
					*to = append(*to, id)
				}
			}
		}
		return half
	}
	if err := o.endParts(ctx, part(true), staleAfter); err != nil {
		return err
	}
	return o.endParts(ctx, part(false), staleAfter)
}

func setOf(ids []int64) map[int64]bool {
	set := make(map[int64]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// overdue describes executions that live workers did not start in time.
func (o *Rescuer) overdue(ctx context.Context, tx *store.Tx, ids []int64) ([]scheduler.Unstarted, error) {
	if len(ids) == 0 || o.cfg.DispatchesDelayed() {
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

// submitUnstarted submits unstarted executions to the batches, which find other workers.
func (o *Rescuer) submitUnstarted(ctx context.Context, unstarted []scheduler.Unstarted) error {
	if len(unstarted) == 0 {
		return nil
	}
	late := 0
	for _, one := range unstarted {
		if one.Late != nil {
			late++
		}
	}
	o.logger.WarnContext(ctx, "Unstarted executions submitted for reassignment",
		"at_workers_that_are_gone", len(unstarted)-late, "overdue_at_live_workers", late)
	found := Found{Unstarted: unstarted}
	return found.submit(ctx, pageDefault, o.submit)
}

// end ends executions of dead workers, and executions that do not end by themselves.
func (o *Rescuer) end(ctx context.Context, tx *store.Tx, found store.FindOrphansRow, staleAfter float64) error {
	kinds := []struct {
		reason string
		ids    []int64
		end    func(ids []int64) ([]endedRow, error)
		ended  []endedRow
	}{
		{
			reason: "its worker is lost", ids: found.Ids,
			end: func(ids []int64) ([]endedRow, error) { return o.endLost(ctx, tx, ids, staleAfter) },
		},
		{
			reason: overran, ids: found.Overrun,
			end: func(ids []int64) ([]endedRow, error) {
				return rowsOf(tx.EndOverruns(ctx, store.EndOverrunsParams{
					ActionTimeouts: o.cfg.ActionTimeouts, Grace: o.cfg.Grace.Seconds(),
					UnfencedTimeout: o.cfg.UnfencedTimeout.Seconds(), Ids: ids,
				}))
			},
		},
		{reason: "its worker did not stop it", ids: found.CancelIgnored, end: func(ids []int64) ([]endedRow, error) {
			return rowsOf(tx.EndIgnoredCancels(ctx, ids, o.cfg.CancelTimeout.Seconds()))
		}},
		{
			reason: "its workflow or inquiry was deleted", ids: found.Headless,
			end: func(ids []int64) ([]endedRow, error) { return rowsOf(tx.EndHeadless(ctx, ids)) },
		},
	}
	var messages []outbox.Message
	for i, kind := range kinds {
		if len(kind.ids) == 0 {
			continue
		}
		rows, err := kind.end(kind.ids)
		if err == nil {
			kinds[i].ended = rows
			messages, err = announce(messages, rows, kind.reason == overran)
		}
		if err != nil {
			return fmt.Errorf("end %d executions because %s: %w", len(kind.ids), kind.reason, err)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	row, err := outbox.Append(ctx, tx, messages)
	if err != nil {
		return err
	}
	tx.AfterCommit(func() {
		for _, kind := range kinds {
			for _, one := range kind.ended {
				o.logger.WarnContext(ctx, "Orphaned execution ended", "execution_id", one.ID, "action_ref",
					one.ActionRef, "status", string(one.Status), "reason", kind.reason)
			}
		}
		o.relay.Published(row, messages)
	})
	return nil
}

// overran is the reason why an execution is ended whose worker lives and has to stop it.
const overran = "it ran beyond its timeout"

// endedRow is an execution that was ended here.
type endedRow = store.EndOverrunsRow

func rowsOf[Row store.EndOrphanedRunsRow | endedRow | store.EndIgnoredCancelsRow | store.EndHeadlessRow](
	rows []Row, err error,
) ([]endedRow, error) {
	list := make([]endedRow, len(rows))
	for i, row := range rows {
		list[i] = endedRow(row)
	}
	return list, err
}

// announce adds the completion messages of executions, and cancel requests for their workers.
func announce(messages []outbox.Message, rows []endedRow, stop bool) ([]outbox.Message, error) {
	const source = "execution_timeout_monitor"
	for _, r := range rows {
		m, err := outbox.Completed(store.ReadOutcomesRow{
			ID: r.ID, Action: r.Action, ActionRef: r.ActionRef, Status: r.Status,
			Result: r.Result, FinishedAt: r.FinishedAt,
		}, r.FinishedAt, source)
		if err != nil {
			return nil, err
		}
		if messages = append(messages, m); !stop {
			continue
		}
		route := message.Route{Exchange: message.ExchangeExecutions, Key: message.CancelKey(r.Worker)}
		m, err = outbox.EncodeTo(route, message.TypeExecutionCancelRequested,
			message.ExecutionCancelRequested{ExecutionID: r.ID, WorkerID: r.Worker}, r.FinishedAt, source)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

func (o *Rescuer) endLost(ctx context.Context, tx *store.Tx, ids []int64, staleAfter float64) ([]endedRow, error) {
	status := lifecycle.StatusAbandoned
	if o.cfg.FailLost {
		status = lifecycle.StatusFailed
	}
	rows, err := tx.EndOrphanedRuns(ctx, store.EndOrphanedRunsParams{
		Status: string(status), Ids: ids, StaleAfter: staleAfter, LeaveGrace: o.cfg.LeaveGrace.Seconds(),
	})
	if err != nil {
		return nil, err
	}
	var alerts []outbox.Alert
	for _, row := range rows {
		alert, err := lostAlert(row, status)
		if err != nil {
			return nil, err
		}
		if alert != nil {
			alerts = append(alerts, *alert)
		}
	}
	if err := outbox.EmitAlerts(ctx, tx, nil, alerts); err != nil {
		return nil, err
	}
	return rowsOf(rows, nil)
}

// lostAlert is the core.alert event of an execution that was ended because its worker is dead. It
// is nil if the worker's row was deleted, if an operator cordoned the worker, and if the execution
// was being cancelled.
func lostAlert(row store.EndOrphanedRunsRow, status lifecycle.Status) (*outbox.Alert, error) {
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
	if worker == nil || worker.Cordoned || row.Status == lifecycle.StatusCancelled {
		return nil, nil //nolint:nilnil // no alert
	}
	return &outbox.Alert{
		Severity: "error", Category: "execution_reconciliation", FailureType: "execution_abandoned_worker_unavailable",
		ComponentType: "execution", ComponentID: &row.ID, ComponentRef: &row.ActionRef, WorkerRole: &worker.Role,
		ObservedAt: result.At.UTC(),
		Summary:    fmt.Sprintf("Execution %d is %s: its worker '%s' became unavailable", row.ID, status, worker.Name),
		Details: map[string]any{
			"execution_id": row.ID, "action_ref": row.ActionRef, "worker_id": worker.ID, "worker_name": worker.Name,
			"worker_role":   worker.Role,
			"worker_status": worker.Status, "last_heartbeat": worker.LastHeartbeat,
			"reconciliation_result": json.RawMessage(row.Result),
		},
		CorrelationID: new(fmt.Sprintf("execution:%d:worker_unavailable", row.ID)),
	}, nil
}
