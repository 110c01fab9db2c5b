// Package worker is a worker of an existing installation, for tests and
// rehearsals: plain SQL and plain AMQP as the published documents describe them,
// and nothing of the engine's code.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Worker is one running worker. Like the existing ones it acknowledges a dispatch when the task starts, writes its
// statuses by id without any guard, and reports every end as "Completed".
//
// It keeps its own record of what it ran, which is the judge of how often and
// how much at once an execution was started.
type Worker struct {
	ID   int64
	Name string

	cfg     Config
	logger  *slog.Logger
	pool    *pgxpool.Pool
	conn    *amqp.Connection
	socket  net.Conn
	publish *amqp.Channel

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

// Config says where a worker works and how it behaves.
type Config struct {
	AMQPURL      string
	DatabaseURL  string
	Capabilities map[string]any // as Capabilities gives them when nil

	// Behave decides what happens with a job. It runs in a goroutine of its
	// own, and its context ends when the execution is cancelled or the worker
	// stops. Nil succeeds at once.
	Behave func(ctx context.Context, job Job) Answer

	Concurrency       int             // how many jobs at once; 10 when zero
	Gate              <-chan struct{} // what it has taken it does not begin before this is closed; nil for at once
	HeartbeatInterval time.Duration   // 1 s when zero
	Name              string          // unique when empty
	// how many dispatches it takes before it acknowledges one; Concurrency+2 when zero
	Prefetch    int
	QueueTTL    time.Duration // of its queue of dispatches; 5 min when zero
	Schema      string        // "attune" when empty
	SkipRunning bool          // report only ends, never that something runs
	Logger      *slog.Logger  // of what goes wrong in the worker itself; nil discards it
}

// Job is one dispatch that reached the worker.
type Job struct {
	ExecutionID int64
	ActionRef   string
	Config      json.RawMessage // as the row has it
	MessageID   string
	Redelivered bool
}

// Answer is what a worker makes of a job.
type Answer struct {
	Status string // the terminal status to write; completed when empty
	Result any
	Never  bool // write and send nothing after running: the slot stays taken
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
	if c.Concurrency == 0 {
		c.Concurrency = 10
	}
	if c.Capabilities == nil {
		c.Capabilities = Capabilities(c.Concurrency)
	}
	if c.HeartbeatInterval == 0 {
		c.HeartbeatInterval = time.Second
	}
	if c.Name == "" {
		c.Name = "worker-" + uuid.NewString()[:8]
	}
	if c.Prefetch == 0 {
		c.Prefetch = c.Concurrency + 2
	}
	if c.QueueTTL == 0 {
		c.QueueTTL = 5 * time.Minute
	}
	if c.Schema == "" {
		c.Schema = "attune"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Behave == nil {
		c.Behave = func(context.Context, Job) Answer { return Answer{} }
	}
	return c
}

// Capabilities is what a worker of every usual runtime announces.
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

func (w *Worker) start(ctx context.Context) error {
	poolConfig, err := pgxpool.ParseConfig(w.cfg.DatabaseURL)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	poolConfig.ConnConfig.RuntimeParams["search_path"] = w.cfg.Schema + ", public"
	poolConfig.ConnConfig.RuntimeParams["application_name"] = w.Name
	if w.pool, err = pgxpool.NewWithConfig(ctx, poolConfig); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	if err := w.register(ctx); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	if err := w.connect(); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	dispatches, cancels, err := w.consume()
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	beatCtx, beat := context.WithCancel(ctx)
	w.beat = beat
	w.loops.Go(func() { w.heartbeat(beatCtx) })
	w.loops.Go(func() { w.takeDispatches(ctx, dispatches) })
	w.loops.Go(func() { w.takeCancels(cancels) })
	return nil
}

// register is by name: a known worker keeps its id and becomes active again.
func (w *Worker) register(ctx context.Context) error {
	capabilities, err := json.Marshal(w.cfg.Capabilities)
	if err != nil {
		return err
	}
	return w.pool.QueryRow(ctx, `
		insert into worker (name, worker_type, worker_role, host, status, capabilities, last_heartbeat)
		values ($1, 'local', 'action', 'localhost', 'active', $2, $3)
		on conflict (name) do update set status = 'active', host = excluded.host,
			capabilities = excluded.capabilities, last_heartbeat = excluded.last_heartbeat
		returning id`, w.Name, string(capabilities), time.Now()).Scan(&w.ID)
}

func (w *Worker) connect() error {
	var err error
	w.conn, err = amqp.DialConfig(w.cfg.AMQPURL, amqp.Config{
		Heartbeat: 10 * time.Second,
		Dial: func(network, address string) (net.Conn, error) {
			socket, err := amqp.DefaultDial(10*time.Second)(network, address)
			w.socket = socket
			return socket, err
		},
	})
	if err != nil {
		return err
	}
	if w.publish, err = w.conn.Channel(); err != nil {
		return err
	}
	return w.declare(w.publish)
}

// declare makes what every service declares, and the worker's own queues.
func (w *Worker) declare(ch *amqp.Channel) error {
	for name, kind := range map[string]string{
		"attune.events": "topic", "attune.executions": "topic", "attune.notifications": "fanout",
		"attune.dlx": "direct",
	} {
		if err := ch.ExchangeDeclare(name, kind, true, false, false, false, nil); err != nil {
			return err
		}
	}
	dead := amqp.Table{"x-dead-letter-exchange": "attune.dlx"}
	expiring := amqp.Table{"x-dead-letter-exchange": "attune.dlx",
		"x-message-ttl": int32(w.cfg.QueueTTL.Milliseconds())}
	for _, queue := range []struct {
		name, exchange string
		keys           []string
		args           amqp.Table
	}{
		{"attune.dlx.queue", "attune.dlx", []string{"#"}, nil},
		{w.queue("executions"), "attune.executions", []string{fmt.Sprintf("execution.dispatch.worker.%d", w.ID)},
			expiring},
		{w.queue("cancel"), "attune.executions", []string{fmt.Sprintf("execution.cancel.worker.%d", w.ID)}, dead},
		{w.queue("packs"), "attune.events", []string{"pack.registered", "pack.deleted"}, dead},
	} {
		if _, err := ch.QueueDeclare(queue.name, true, false, false, false, queue.args); err != nil {
			return err
		}
		for _, key := range queue.keys {
			if err := ch.QueueBind(queue.name, key, queue.exchange, false, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Worker) queue(kind string) string { return fmt.Sprintf("worker.%d.%s", w.ID, kind) }

func (w *Worker) consume() (dispatches, cancels <-chan amqp.Delivery, err error) {
	ch, err := w.conn.Channel()
	if err != nil {
		return nil, nil, err
	}
	if err := ch.Qos(w.cfg.Prefetch, 0, false); err != nil {
		return nil, nil, err
	}
	if dispatches, err = ch.Consume(w.queue("executions"), w.Name+".executions", false, false, false, false,
		nil); err != nil {
		return nil, nil, err
	}
	cancels, err = ch.Consume(w.queue("cancel"), w.Name+".cancel", true, false, false, false, nil)
	return dispatches, cancels, err
}

// heartbeat writes the worker's own clock; the broker hears nothing of it.
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

// StopHeartbeat makes the worker look dead while it goes on working.
func (w *Worker) StopHeartbeat() { w.beat() }

// Runs returns what was started so far, in order.
func (w *Worker) Runs() []Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Run(nil), w.record...)
}

// MostAtOnce is the highest number of jobs that ran at the same time.
func (w *Worker) MostAtOnce() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mostAtOne
}

// Stop leaves in order: the row becomes inactive, running jobs finish, then the
// connection closes.
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

// Kill dies as a process does: the socket is cut, nothing is written or sent
// any more, not even by jobs that run. Killing twice does nothing.
func (w *Worker) Kill() {
	w.stop()
	if w.socket != nil {
		_ = w.socket.Close() // that it breaks things is the purpose
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
