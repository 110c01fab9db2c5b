// Package executor is the executor of an existing installation as its published documents describe it,
// for tests and rehearsals. It shares no code with the engine.
//
// It admits by policy, dispatches executions to live workers in turn, releases slots, and advances
// running workflows whose transitions and inputs contain no expressions. It matches no events, starts
// no workflows, retries no tasks and opens no inquiries. It ignores the runtimes and labels of workers.
package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/installation/wire"
)

const (
	requestsQueue  = "attune.execution.requests.queue"
	completedQueue = "attune.execution.completed.queue"

	prefetch   = 10
	busyPause  = 50 * time.Millisecond // before the message of a fresh claim is requeued
	claimStale = 30 * time.Second
)

// errClaimed sends a message back to its queue: another claim is still fresh.
var errClaimed = errors.New("the execution is being claimed")

// Executor is one running executor.
type Executor struct {
	pool  *pgxpool.Pool
	conn  *amqp.Connection
	wire  wire.Publisher
	stop  context.CancelFunc
	loops sync.WaitGroup
	turn  int // of the workers; only the scheduler uses it

	mu   sync.Mutex
	errs []error // guarded by mu
}

// Start declares the topology of the published executor and consumes until Stop.
// databaseURL names a database whose schema is "attune".
func Start(ctx context.Context, databaseURL, amqpURL string) (*Executor, error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	pool, err := installation.Open(ctx, databaseURL, "attune", "executor")
	if err != nil {
		stop()
		return nil, err
	}
	e := &Executor{stop: stop, pool: pool}
	if e.conn, err = amqp.Dial(amqpURL); err != nil {
		e.Stop()
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	if err := e.consume(ctx); err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

// Stop stops consuming after the current message. Unacknowledged messages return to their queues.
func (e *Executor) Stop() {
	e.stop()
	e.loops.Wait()
	if e.conn != nil {
		_ = e.conn.CloseDeadline(time.Now().Add(5 * time.Second)) // the connection may be lost already
	}
	e.pool.Close()
}

// Err joins the errors that rejected a message, nil if none did.
func (e *Executor) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.errs...)
}

func (e *Executor) consume(ctx context.Context) error {
	channel, err := e.conn.Channel()
	if err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	err = wire.Declare(channel,
		wire.Queue{Name: "attune.executor.events.queue", Exchange: wire.Events, Keys: []string{"event.created"}},
		wire.Queue{Name: "attune.enforcements.queue", Exchange: wire.Executions, Keys: []string{"enforcement.#"}},
		wire.Queue{Name: requestsQueue, Exchange: wire.Executions, Keys: []string{"execution.requested"}},
		wire.Queue{
			Name: "attune.execution.status.queue", Exchange: wire.Executions,
			Keys: []string{"execution.status.changed"},
		},
		wire.Queue{Name: completedQueue, Exchange: wire.Executions, Keys: []string{"execution.completed"}},
		wire.Queue{
			Name: "attune.inquiry.responses.queue", Exchange: wire.Executions,
			Keys: []string{"inquiry.responded"},
		},
	)
	if err != nil {
		return err
	}
	if err := channel.Confirm(false); err != nil {
		return fmt.Errorf("switch the channel to confirms: %w", err)
	}
	e.wire = wire.Publisher{Channel: channel, Service: "executor"}
	for _, one := range []struct {
		queue, tag string
		handle     func(context.Context, int64) error
	}{
		{requestsQueue, "executor.scheduler", e.schedule},
		{completedQueue, "executor.completion", e.complete},
	} {
		channel, err := e.conn.Channel()
		if err != nil {
			return fmt.Errorf("open a channel: %w", err)
		}
		if err := channel.Qos(prefetch, 0, false); err != nil {
			return fmt.Errorf("set the prefetch: %w", err)
		}
		deliveries, err := channel.Consume(one.queue, one.tag, false, false, false, false, nil)
		if err != nil {
			return fmt.Errorf("consume %s: %w", one.queue, err)
		}
		e.loops.Go(func() { e.run(ctx, deliveries, one.handle) })
	}
	return nil
}

// run handles one message at a time. An error rejects the message; a fresh claim requeues it.
func (e *Executor) run(ctx context.Context, deliveries <-chan amqp.Delivery,
	handle func(context.Context, int64) error,
) {
	for {
		select {
		case <-ctx.Done():
			return
		case delivery, open := <-deliveries:
			if !open {
				return
			}
			var message struct {
				Payload struct {
					ExecutionID int64 `json:"execution_id"`
				} `json:"payload"`
			}
			err := json.Unmarshal(delivery.Body, &message)
			if err == nil {
				err = handle(ctx, message.Payload.ExecutionID)
			}
			switch {
			case ctx.Err() != nil:
				return // not acknowledged: the broker redelivers it
			case err == nil:
				_ = delivery.Ack(false) // after a lost connection the broker redelivers it
			case errors.Is(err, errClaimed):
				select {
				case <-ctx.Done():
				case <-time.After(busyPause):
				}
				_ = delivery.Nack(false, true)
			default:
				e.mu.Lock()
				e.errs = append(e.errs, err)
				e.mu.Unlock()
				_ = delivery.Nack(false, false)
			}
		}
	}
}

// Request publishes execution.requested for an execution.
func (e *Executor) Request(ctx context.Context, id int64) error {
	var payload struct {
		ExecutionID   int64           `json:"execution_id"`
		ActionID      *int64          `json:"action_id"`
		ActionRef     string          `json:"action_ref"`
		ParentID      *int64          `json:"parent_id"`
		EnforcementID *int64          `json:"enforcement_id"`
		Config        json.RawMessage `json:"config"`
	}
	err := e.pool.QueryRow(ctx,
		"SELECT id, action, action_ref, parent, enforcement, config FROM execution WHERE id = $1", id).
		Scan(&payload.ExecutionID, &payload.ActionID, &payload.ActionRef, &payload.ParentID, &payload.EnforcementID,
			&payload.Config)
	if err != nil {
		return fmt.Errorf("read execution %d: %w", id, err)
	}
	return e.wire.Send(ctx, wire.Executions, "execution.requested", "ExecutionRequested", payload)
}
