package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// OrphansConfig is what the search for orphaned work depends on.
type OrphansConfig struct {
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
	// Farewell is how much longer than StaleAfter a worker that has marked itself
	// inactive may be silent before what it runs is ended: existing workers send no
	// heartbeats while they finish. Default 30 s, which is what they take at most.
	Farewell time.Duration
	// UnfencedTimeout is how long an execution whose task and action set no timeout
	// may run at a worker that does not fence attempts. Such a worker ends it after
	// five minutes, or has been started anew and knows nothing of it, which nothing
	// else would tell. Default 5 min.
	UnfencedTimeout time.Duration
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
	// ended. Then nothing is looked for. Nil never does.
	Unsure func() bool
}

func (c OrphansConfig) withDefaults() OrphansConfig {
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
	return c
}

func never() bool { return false }

// Relay publishes what a committed transaction has put into the outbox.
type Relay interface {
	Published(row int64, messages []outbox.Message)
}

// Orphans deals with work that its worker does not do. What was handed to one that
// is gone and never started goes to the rounds, which find another worker for it
// (see Rehome), and so does what one that lives has not started in time; what ran
// at one that is gone is ended, and what runs for longer than it may or than its
// cancel allows. Age, status
// and heartbeat are judged by the database in the statement that writes (invariant
// S9), and the message that the execution has ended is written with it; slots are
// given back when that message is read. A worker that comes back late finds its
// rows closed, and what it writes is refused and recorded.
type Orphans struct {
	*supervise.Loop

	cfg    OrphansConfig
	store  *store.Store
	submit func(context.Context, Found) error
	relay  Relay
	logger *slog.Logger
	after  int64 // where the next window begins
}

// NewOrphans makes the search. submit is called with what rounds are to decide.
func NewOrphans(
	cfg OrphansConfig, st *store.Store, submit func(context.Context, Found) error, relay Relay, logger *slog.Logger, metrics *supervise.Metrics,
) *Orphans {
	o := &Orphans{cfg: cfg.withDefaults(), store: st, submit: submit, relay: relay, logger: logger}
	o.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "timeouts", Interval: o.cfg.Interval, Timeout: 30 * time.Second, Jitter: 0.2,
		Tick: o.tick, Logger: logger, Metrics: metrics,
	})
	return o
}

// tick looks through all live rows, a window at a time, one transaction each.
func (o *Orphans) tick(ctx context.Context) error {
	for !o.cfg.Unsure() {
		full, err := o.window(ctx)
		if err != nil {
			return fmt.Errorf("look for orphaned work: %w", err)
		}
		if !full {
			return nil
		}
	}
	return nil
}

// window deals with the orphans of one window and reports whether there are more.
func (o *Orphans) window(ctx context.Context) (full bool, err error) {
	var stranded []Stranded
	after := o.after
	err = o.store.Tx(ctx, "orphans", func(ctx context.Context, tx *store.Tx) error {
		after, stranded = o.after, nil
		won, err := tx.TryLoopLock(ctx, "timeouts")
		if err != nil || !won {
			return err
		}
		found, err := tx.FindOrphans(ctx, store.FindOrphansParams{
			StaleAfter: o.cfg.StaleAfter.Seconds(), ScheduledTimeout: o.cfg.ScheduledTimeout.Seconds(), Grace: o.cfg.Grace.Seconds(),
			Patience: o.cfg.Patience.Seconds(), Farewell: o.cfg.Farewell.Seconds(), UnfencedTimeout: o.cfg.UnfencedTimeout.Seconds(),
			After: o.after, WindowSize: rowsPerSweep,
		})
		if err != nil {
			return fmt.Errorf("find orphans: %w", err)
		}
		after = next(found.Last, found.Scanned)
		for _, id := range found.Stranded {
			stranded = append(stranded, Stranded{Execution: id})
		}
		late, err := o.overdue(ctx, tx, found.Overdue)
		if err != nil {
			return err
		}
		stranded = append(stranded, late...)
		return o.end(ctx, tx, found)
	})
	if err != nil {
		return false, err
	}
	o.after = after
	return after > 0, o.handOn(ctx, stranded)
}

// overdue describes what workers that live have not started in time.
func (o *Orphans) overdue(ctx context.Context, tx *store.Tx, ids []int64) ([]Stranded, error) {
	if len(ids) == 0 || o.cfg.Blind() {
		return nil, nil
	}
	rows, err := tx.DescribeOverdue(ctx, placement.CapacityDefault, o.cfg.ScheduledTimeout.Seconds(), ids)
	if err != nil {
		return nil, fmt.Errorf("describe %d overdue executions: %w", len(ids), err)
	}
	late := make([]Stranded, len(rows))
	for i, row := range rows {
		late[i] = Stranded{
			Execution: row.ID, Worker: row.Worker, Attempt: row.Attempt,
			Late: &Late{Allowed: time.Duration(row.AllowedSeconds * float64(time.Second)), Full: row.Full},
		}
	}
	return late, nil
}

// handOn gives what was never started to the rounds, which find other workers.
func (o *Orphans) handOn(ctx context.Context, stranded []Stranded) error {
	if len(stranded) == 0 {
		return nil
	}
	late := 0
	for _, one := range stranded {
		if one.Late != nil {
			late++
		}
	}
	o.logger.WarnContext(ctx, "Executions lie at workers that do not start them",
		"at_workers_that_are_gone", len(stranded)-late, "overdue_at_live_workers", late)
	found := Found{Stranded: stranded}
	for !found.Empty() {
		if err := o.submit(ctx, found.take(pageDefault)); err != nil {
			return err
		}
	}
	return nil
}

// end ends what runs at workers that are gone, and what does not end by itself.
func (o *Orphans) end(ctx context.Context, tx *store.Tx, found store.FindOrphansRow) error {
	lost, err := o.endLost(ctx, tx, found.Ids)
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
		o.logger.WarnContext(ctx, "Work has been ended that its workers did not end",
			"at_workers_that_are_gone", len(lost), "beyond_their_timeout", len(over)/2, "cancelled_in_vain", len(unheard), "without_a_workflow", len(headless))
		o.relay.Published(row, messages)
	})
	return nil
}

func (o *Orphans) endLost(ctx context.Context, tx *store.Tx, ids []int64) (said []told, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	status := attune.StatusAbandoned
	if o.cfg.FailLost {
		status = attune.StatusFailed
	}
	rows, err := tx.EndOrphanedRuns(ctx, store.EndOrphanedRunsParams{
		Status: string(status), Ids: ids, StaleAfter: o.cfg.StaleAfter.Seconds(), Farewell: o.cfg.Farewell.Seconds(),
	})
	if err != nil {
		return nil, fmt.Errorf("end what ran at workers that are gone: %w", err)
	}
	for _, row := range rows {
		said = append(said, endOf(row))
	}
	return said, nil
}

// endOverruns has the workers told to stop, too.
func (o *Orphans) endOverruns(ctx context.Context, tx *store.Tx, ids []int64) (said []told, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.EndOverruns(ctx, o.cfg.Grace.Seconds(), o.cfg.UnfencedTimeout.Seconds(), ids)
	if err != nil {
		return nil, fmt.Errorf("end what runs for too long: %w", err)
	}
	for _, row := range rows {
		stop := message.ExecutionCancelRequested{ExecutionID: row.ID, WorkerID: row.Worker}
		said = append(said, endOf(row), told{message.TypeExecutionCancelRequested, message.CancelKey(row.Worker), stop, row.FinishedAt})
	}
	return said, nil
}

func (o *Orphans) endUnheard(ctx context.Context, tx *store.Tx, ids []int64) (said []told, err error) {
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
func (o *Orphans) endHeadless(ctx context.Context, tx *store.Tx, ids []int64) (said []told, err error) {
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
