package datapath

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
)

// d1 is the one-at-a-time design, a yardstick: one execution per transaction and one round trip per
// statement. Every admission locks the queue, checks for a duplicate, counts active and queued executions,
// inserts an entry, counts the queue again for its statistics, and changes the status twice. Completion is
// the same in reverse. Each message is a row of the outbox, claimed with SKIP LOCKED.
//
// It uses the same tables as the engine, with their triggers and history, and the same set-based workers
// and requests: only admission, completion and publishing differ.
type d1 struct {
	pool   *pgxpool.Pool
	wire   *wire
	tally  *tally
	worker int64
	limit  int
	wake   chan struct{} // the outbox has messages
}

// d1Consumers is the number of concurrent requests, and of concurrent completions, unless the scenario
// sets the schedulers.
const d1Consumers = 4

func (w *world) addReference(ctx context.Context) error {
	consumers := cmp.Or(w.scenario.Schedulers, d1Consumers)
	st, err := w.open(ctx, store.Config{MaxConnections: int32(2*consumers + 2), ApplicationName: "datapath d1"})
	if err != nil {
		return err
	}
	if _, err := st.Pool().Exec(ctx, d1IndexSQL); err != nil {
		return fmt.Errorf("create the index of D1: %w", err)
	}
	if _, err := st.Pool().Exec(ctx, d1SetupSQL, max(w.scenario.Limit, 1)); err != nil {
		return fmt.Errorf("insert the queues of D1: %w", err)
	}
	d := &d1{pool: st.Pool(), wire: w.wire, tally: w.tally, limit: w.scenario.Limit, wake: make(chan struct{}, 1)}
	for id := range w.wire.workers {
		d.worker = id
	}
	for range consumers {
		w.parts = append(w.parts,
			func(ctx context.Context) error { return consume(ctx, d.wire.requested, 1, oneByOne(d.admit)) },
			func(ctx context.Context) error { return consume(ctx, d.wire.completed, 1, oneByOne(d.complete)) })
	}
	w.parts = append(w.parts, d.publish)
	return nil
}

func oneByOne(handle func(context.Context, int64) error) func(context.Context, []note) error {
	return func(ctx context.Context, notes []note) error {
		for _, n := range notes {
			if err := handle(ctx, n.execution); err != nil {
				return fmt.Errorf("execution %d: %w", n.execution, err)
			}
		}
		return nil
	}
}

// transaction runs fn and wakes the publisher.
func (d *d1) transaction(ctx context.Context, result scheduler.Result, fn func(tx pgx.Tx) error) error {
	begun := time.Now()
	if err := pgx.BeginFunc(ctx, d.pool, fn); err != nil {
		return err
	}
	d.tally.add(result, 1, time.Since(begun))
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return nil
}

// queueOf is a queue of D1 under its lock.
type queueOf struct {
	state, action, order int64
	limit                int
	active, queued       int
}

// lock locks and reads the queue of an execution.
func (q *queueOf) lock(ctx context.Context, tx pgx.Tx, sql string, arg int64) error {
	if err := tx.QueryRow(ctx, sql, arg).Scan(&q.state, &q.action, &q.order, &q.limit); err != nil {
		return fmt.Errorf("lock the queue: %w", err)
	}
	return nil
}

func (q *queueOf) count(ctx context.Context, tx pgx.Tx) error {
	if err := tx.QueryRow(ctx, d1CountSQL, q.state, "active").Scan(&q.active); err != nil {
		return fmt.Errorf("count active executions: %w", err)
	}
	if err := tx.QueryRow(ctx, d1CountSQL, q.state, "queued").Scan(&q.queued); err != nil {
		return fmt.Errorf("count queued executions: %w", err)
	}
	return nil
}

func (d *d1) admit(ctx context.Context, id int64) error {
	return d.transaction(ctx, scheduler.Result{}, func(tx pgx.Tx) error {
		if d.limit == 0 {
			return d.dispatch(ctx, tx, id)
		}
		var q queueOf
		if err := q.lock(ctx, tx, d1LockSQL, id); err != nil {
			return err
		}
		var known bool
		if err := tx.QueryRow(ctx, d1KnownSQL, id).Scan(&known); err != nil || known {
			return err
		}
		if err := q.count(ctx, tx); err != nil {
			return err
		}
		status := "queued"
		if q.active < q.limit && q.queued == 0 {
			status = "active"
		}
		if _, err := tx.Exec(ctx, d1EntrySQL, q.state, id, status, q.order); err != nil {
			return fmt.Errorf("enter the queue: %w", err)
		}
		if _, err := tx.Exec(ctx, d1EnteredSQL, q.state); err != nil {
			return fmt.Errorf("update the queue: %w", err)
		}
		if _, err := tx.Exec(ctx, d1StatsSQL, q.action, q.state, q.limit); err != nil {
			return fmt.Errorf("recount the statistics: %w", err)
		}
		if status == "queued" {
			return nil
		}
		return d.dispatch(ctx, tx, id)
	})
}

func (d *d1) complete(ctx context.Context, id int64) error {
	return d.transaction(ctx, scheduler.Result{Released: 1}, func(tx pgx.Tx) error {
		if d.limit == 0 {
			return nil
		}
		var q queueOf
		if err := q.lock(ctx, tx, d1LockSQL, id); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, d1LeaveSQL, id)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, d1LeftSQL, q.state); err != nil {
			return fmt.Errorf("update the queue: %w", err)
		}
		if err := q.count(ctx, tx); err != nil {
			return err
		}
		if q.active < q.limit && q.queued > 0 {
			var head int64
			if err := tx.QueryRow(ctx, d1HeadSQL, q.state).Scan(&head); err != nil {
				return fmt.Errorf("find the head of the queue: %w", err)
			}
			if _, err := tx.Exec(ctx, d1ActivateSQL, head); err != nil {
				return fmt.Errorf("activate the head of the queue: %w", err)
			}
			if err := d.dispatch(ctx, tx, head); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, d1StatsSQL, q.action, q.state, q.limit); err != nil {
			return fmt.Errorf("recount the statistics: %w", err)
		}
		return nil
	})
}

var errNotChanged = errors.New("the execution has another status")

// dispatch claims and schedules an execution and appends its message to the outbox.
func (d *d1) dispatch(ctx context.Context, tx pgx.Tx, id int64) error {
	tag, err := tx.Exec(ctx, d1ClaimSQL, id)
	if err != nil || tag.RowsAffected() != 1 {
		return errors.Join(errNotChanged, err)
	}
	if tag, err = tx.Exec(ctx, d1ScheduleSQL, id, d.worker); err != nil || tag.RowsAffected() != 1 {
		return errors.Join(errNotChanged, err)
	}
	key := message.DispatchKey(d.worker)
	envelope := message.New(message.TypeExecutionRequested, message.Dispatch{
		ExecutionID: id, WorkerID: d.worker, ActionRef: "bench", Attempt: 1,
	}, time.Now(), "d1")
	body, err := envelope.Encode()
	if err != nil {
		return fmt.Errorf("encode a dispatch: %w", err)
	}
	if _, err := tx.Exec(ctx, d1AppendSQL, envelope.MessageID, message.ExchangeExecutions, key, envelope.MessageType,
		body); err != nil {
		return fmt.Errorf("append to the outbox: %w", err)
	}
	return nil
}

// publish publishes the messages of the outbox, oldest first.
func (d *d1) publish(ctx context.Context) error {
	for {
		rows, err := d.pool.Query(ctx, d1ClaimOutboxSQL)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[claimed])
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		if len(messages) > 0 {
			out := make([]broker.Message, len(messages))
			for i, m := range messages {
				out[i] = broker.Message{ID: m.ID, RoutingKey: m.Key, Body: m.Body}
			}
			d.wire.Publish(ctx, out)
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
		}
	}
}

// claimed is one message of D1's outbox.
type claimed struct {
	ID, Key string
	Body    []byte
}
