// Package worker is a worker of an existing installation, for tests and rehearsals: plain SQL and AMQP
// as the published documents describe them. It shares no code with the engine.
package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/installation/wire"
)

// Worker is one running worker. Like the existing ones it acknowledges a dispatch when the task starts,
// writes statuses by id without any guard, and reports every end as "Completed".
//
// It records every start, so that tests can count how often and how many at once it started executions.
type Worker struct {
	ID   int64
	Name string

	cfg    Config
	logger *slog.Logger
	pool   *pgxpool.Pool
	conn   *amqp.Connection
	socket net.Conn
	wire   wire.Publisher

	stop   context.CancelFunc
	beat   context.CancelFunc
	loops  sync.WaitGroup
	jobs   sync.WaitGroup
	permit chan struct{}

	mu        sync.Mutex
	record    []Run                        // guarded by mu
	running   int                          // guarded by mu
	mostAtOne int                          // guarded by mu
	cancels   map[int64]context.CancelFunc // guarded by mu; running executions
}

// Config configures a worker.
type Config struct {
	AMQPURL      string
	DatabaseURL  string
	Capabilities map[string]any // those of Capabilities when nil

	// Behave decides the outcome of a job. It runs in a goroutine of its own, and its context ends when
	// the execution is cancelled or the worker stops. Nil succeeds at once.
	Behave func(ctx context.Context, job Job) Answer

	Concurrency       int             // jobs at once; 10 when zero
	Gate              <-chan struct{} // received jobs start when it closes; nil starts them at once
	HeartbeatInterval time.Duration   // 1 s when zero
	Name              string          // unique when empty
	Prefetch          int             // unacknowledged dispatches; Concurrency+2 when zero
	QueueTTL          time.Duration   // of its queue of dispatches; 5 min when zero
	Schema            string          // "attune" when empty
	SkipRunning       bool            // never report that an execution runs
	Logger            *slog.Logger    // of the worker's own errors; nil discards them
}

// Job is one dispatch that reached the worker.
type Job struct {
	ExecutionID int64
	ActionRef   string
	Config      json.RawMessage // of the row
	MessageID   string
	Redelivered bool
}

// Answer is the outcome of a job.
type Answer struct {
	Status string // the terminal status to write; completed when empty
	Result any
	Never  bool // write and send nothing after running: the execution keeps its slot
	Times  int  // how often the end is written and reported; once when zero
}

// Run is one start of an execution, as the worker saw it.
type Run struct {
	Job        Job
	Start, End time.Time // End is zero while it runs and when it never answered
}

// Start registers the worker, declares its queues, and works until Stop or Kill.
func Start(cfg Config) (*Worker, error) {
	w := &Worker{cfg: cfg.withDefaults(), cancels: map[int64]context.CancelFunc{}}
	w.Name, w.permit, w.logger = w.cfg.Name, make(chan struct{}, w.cfg.Concurrency), w.cfg.Logger
	ctx, stop := context.WithCancel(context.Background()) //nolint:forbidigo // it works until Stop or Kill
	w.stop = stop
	if err := w.start(ctx); err != nil {
		w.Kill()
		return nil, fmt.Errorf("start worker %s: %w", w.Name, err)
	}
	return w, nil
}

func (c Config) withDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, 10)
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, time.Second)
	c.Name = cmp.Or(c.Name, "worker-"+uuid.NewString()[:8])
	c.Prefetch = cmp.Or(c.Prefetch, c.Concurrency+2)
	c.QueueTTL = cmp.Or(c.QueueTTL, 5*time.Minute)
	c.Schema = cmp.Or(c.Schema, "attune")
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Capabilities == nil {
		c.Capabilities = Capabilities(c.Concurrency)
	}
	if c.Behave == nil {
		c.Behave = func(context.Context, Job) Answer { return Answer{} }
	}
	return c
}

// Capabilities returns the capabilities of a worker with every usual runtime.
func Capabilities(concurrency int) map[string]any {
	return map[string]any{
		"runtimes":                  []string{"native", "python", "shell", "node"},
		"runtime_versions":          map[string]any{"python": []string{"3.11.2"}, "node": []string{"20.10.0"}},
		"max_concurrent_executions": concurrency,
		"worker_version":            "0.1.0",
		"labels":                    map[string]string{},
		"taints":                    []any{},
	}
}

func (w *Worker) start(ctx context.Context) (err error) {
	if w.pool, err = installation.Open(ctx, w.cfg.DatabaseURL, w.cfg.Schema, w.Name); err != nil {
		return err
	}
	capabilities, err := json.Marshal(w.cfg.Capabilities)
	if err != nil {
		return fmt.Errorf("encode the capabilities: %w", err)
	}
	// A registered worker keeps its id and becomes active again.
	err = w.pool.QueryRow(ctx, `
		insert into worker (name, worker_type, worker_role, host, status, capabilities, last_heartbeat)
		values ($1, 'local', 'action', 'localhost', 'active', $2, $3)
		on conflict (name) do update set status = 'active', host = excluded.host,
			capabilities = excluded.capabilities, last_heartbeat = excluded.last_heartbeat
		returning id`, w.Name, string(capabilities), time.Now()).Scan(&w.ID)
	if err != nil {
		return fmt.Errorf("register: %w", err)
	}
	dispatches, cancels, err := w.consume()
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	beatCtx, beat := context.WithCancel(ctx)
	w.beat = beat
	w.loops.Go(func() { w.heartbeat(beatCtx) })
	w.loops.Go(func() { w.consumeDispatches(ctx, dispatches) })
	w.loops.Go(func() { w.consumeCancels(cancels) })
	return nil
}

// consume connects, declares the worker's queues and consumes the dispatches and the cancel requests.
func (w *Worker) consume() (dispatches, cancels <-chan amqp.Delivery, err error) {
	w.conn, err = amqp.DialConfig(w.cfg.AMQPURL, amqp.Config{
		Heartbeat: 10 * time.Second,
		Dial: func(network, address string) (net.Conn, error) {
			socket, err := amqp.DefaultDial(10*time.Second)(network, address)
			w.socket = socket
			return socket, err
		},
	})
	if err != nil {
		return nil, nil, err
	}
	w.wire.Service = "worker"
	if w.wire.Channel, err = w.conn.Channel(); err != nil {
		return nil, nil, err
	}
	own := func(kind string) string { return fmt.Sprintf("worker.%d.%s", w.ID, kind) }
	requests := wire.Dispatches(w.ID, w.cfg.QueueTTL)
	err = wire.Declare(w.wire.Channel, requests,
		wire.Queue{
			Name: own("cancel"), Exchange: wire.Executions,
			Keys: []string{fmt.Sprintf("execution.cancel.worker.%d", w.ID)},
		},
		wire.Queue{Name: own("packs"), Exchange: wire.Events, Keys: []string{"pack.registered", "pack.deleted"}})
	if err != nil {
		return nil, nil, err
	}
	channel, err := w.conn.Channel()
	if err != nil {
		return nil, nil, err
	}
	if err := channel.Qos(w.cfg.Prefetch, 0, false); err != nil {
		return nil, nil, err
	}
	dispatches, err = channel.Consume(requests.Name, w.Name+".executions", false, false, false, false, nil)
	if err != nil {
		return nil, nil, err
	}
	cancels, err = channel.Consume(own("cancel"), w.Name+".cancel", true, false, false, false, nil)
	return dispatches, cancels, err
}

// heartbeat writes the worker's own clock into its row. It sends no message.
func (w *Worker) heartbeat(ctx context.Context) {
	ticker := time.NewTicker(w.cfg.HeartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_, err := w.pool.Exec(ctx, `update worker set last_heartbeat = $2 where id = $1`, w.ID, time.Now())
			if err != nil && ctx.Err() == nil {
				w.logger.Warn("Heartbeat failed", "worker", w.Name, "error", err)
			}
		}
	}
}

// StopHeartbeat makes the worker look dead while it continues to work.
func (w *Worker) StopHeartbeat() { w.beat() }

// Runs returns the starts so far, in order.
func (w *Worker) Runs() []Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.record)
}

// MostAtOnce returns the highest number of jobs that ran at the same time.
func (w *Worker) MostAtOnce() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mostAtOne
}

// Stop sets the row inactive, lets running jobs finish, and closes the connection.
func (w *Worker) Stop(ctx context.Context) error {
	_, err := w.pool.Exec(ctx, `update worker set status = 'inactive' where id = $1`, w.ID)
	w.beat()
	w.jobs.Wait()
	if closing := w.conn.CloseDeadline(time.Now().Add(5 * time.Second)); closing != nil &&
		!errors.Is(closing, amqp.ErrClosed) {
		err = errors.Join(err, closing)
	}
	w.Kill()
	return err
}

// Kill ends the worker as kill -9 does: it cuts the socket, and not even running jobs write or send
// anything more. A second call does nothing.
func (w *Worker) Kill() {
	w.stop()
	if w.socket != nil {
		_ = w.socket.Close() // a broken connection is the purpose
	}
	w.loops.Wait()
	w.jobs.Wait()
	if w.conn != nil {
		_ = w.conn.CloseDeadline(time.Now()) // the socket is gone; this ends the client's own goroutines
	}
	if w.pool != nil {
		w.pool.Close()
	}
}
