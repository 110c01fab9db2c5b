package datapath

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/attune-go/attune/core/doctor"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
)

// Growth is the duration of one operation on one queue by its length: the time of the whole batch, with
// the reads before the locks and the commit.
type Growth struct {
	Design    Design  `json:"design"`
	Waiting   int     `json:"waiting"`
	Operation string  `json:"operation"`
	Batch     int     `json:"batch"`
	P50       float64 `json:"ms_p50"`
	P99       float64 `json:"ms_p99"`
	Samples   int     `json:"samples"`
}

// The operations of Growth.
const (
	operationAdmit    = "admit"
	operationComplete = "complete and promote"
)

// GrowthPlan configures the measurement of the growth.
type GrowthPlan struct {
	Levels    []int `json:"levels"`     // lengths of the queue
	Samples   int   `json:"samples"`    // of every operation and level, over all rounds
	SamplesD1 int   `json:"samples_d1"` // of the one-at-a-time design, which is slow
}

// growthBatch is both the larger batch and the limit of the queue.
const growthBatch = 100

// growthQueue is one queue with a given number of queued executions.
type growthQueue struct {
	world     *world
	waiting   int
	scheduler *scheduler.Scheduler
	relay     *recorder
	pool      *pgxpool.Pool
	holders   []int64 // executions with a slot, oldest first
	action    int64
	took      map[string]map[int][]time.Duration // by operation and batch
}

// recorder records the messages of batches.
type recorder struct {
	mu   sync.Mutex
	rows []int64 // guarded by mu
	held []int64 // dispatched executions; guarded by mu
}

// Published implements scheduler.Relay.
func (b *recorder) Published(row int64, messages []outbox.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows = append(b.rows, row)
	for _, m := range messages {
		if sent, err := message.Decode[message.Dispatch](m.Body); err == nil {
			b.held = append(b.held, sent.Payload.ExecutionID)
		}
	}
}

// grow measures the levels side by side, operation by operation, so that other programs affect all of
// them alike.
func (s *server) grow(ctx context.Context, plan GrowthPlan,
	progress func(string, ...any),
) (results []Growth, err error) {
	var queues []*growthQueue
	defer func() {
		for _, p := range queues {
			p.world.close()
		}
	}()
	for _, level := range plan.Levels {
		progress("growth: filling a queue with %d", level)
		p, err := s.newGrowthQueue(ctx, level)
		if p != nil {
			queues = append(queues, p)
		}
		if err != nil {
			return nil, fmt.Errorf("fill a queue with %d: %w", level, err)
		}
	}
	if err := s.execute(ctx, "CHECKPOINT"); err != nil {
		return nil, err
	}
	progress("growth: %d samples", plan.Samples)
	for _, batch := range []int{1, growthBatch} {
		if err := measureAll(ctx, queues, plan.Samples, batch, (*growthQueue).sample); err != nil {
			return nil, err
		}
	}
	for _, p := range queues {
		if results, err = p.conclude(ctx, results); err != nil {
			return nil, err
		}
	}
	if plan.SamplesD1 == 0 {
		return results, nil
	}
	progress("growth: %d samples of D1", plan.SamplesD1)
	for _, p := range queues { // an active execution of D1 has an entry too
		if _, err := p.pool.Exec(ctx, d1IndexSQL); err != nil {
			return nil, fmt.Errorf("create the index of D1: %w", err)
		}
		if _, err := p.pool.Exec(ctx, growthConvertSQL); err != nil {
			return nil, fmt.Errorf("insert the entries of D1: %w", err)
		}
	}
	if err := measureAll(ctx, queues, plan.SamplesD1, 1, (*growthQueue).sampleD1); err != nil {
		return nil, err
	}
	for _, p := range queues {
		results = p.report(results, DesignD1)
	}
	return results, nil
}

func measureAll(ctx context.Context, queues []*growthQueue, samples, batch int,
	sample func(*growthQueue, context.Context, int, bool) error,
) error {
	warm := min(5, samples)
	for i := range warm + samples {
		for _, p := range queues {
			if err := sample(p, ctx, batch, i >= warm); err != nil {
				return fmt.Errorf("with %d waiting: %w", p.waiting, err)
			}
		}
	}
	return nil
}

// newGrowthQueue builds a queue with the given number of queued executions and no free slot.
func (s *server) newGrowthQueue(ctx context.Context, waiting int) (*growthQueue, error) {
	w, err := s.build(ctx, Scenario{Design: DesignEngine, Keys: 1, Limit: growthBatch, Workers: 1})
	if err != nil {
		return nil, err
	}
	p := &growthQueue{world: w, waiting: waiting, relay: &recorder{}, took: map[string]map[int][]time.Duration{}}
	hot, err := w.open(ctx,
		store.Config{MaxConnections: batchConnections, ApplicationName: applicationBatches, HotPath: true})
	if err != nil {
		return p, err
	}
	p.pool = w.query.Pool()
	p.scheduler = scheduler.New(scheduler.Config{MaxQueued: maxQueued},
		scheduler.Deps{Store: hot, Relay: p.relay, Logger: w.logger})
	if err := p.pool.QueryRow(ctx, growthActionSQL).Scan(&p.action); err != nil {
		return p, fmt.Errorf("read the action: %w", err)
	}
	ids, err := p.request(ctx, growthBatch)
	if err != nil {
		return p, err
	}
	result, err := p.scheduler.Run(ctx, scheduler.FillStep{}, scheduler.NewRequestStep(ids))
	if err != nil || result.Granted != growthBatch {
		return p, fmt.Errorf("take every slot: %+v: %w", result, err)
	}
	if err := p.settle(ctx); err != nil {
		return p, err
	}
	return p, p.fill(ctx)
}

// fill inserts the queued executions as the engine does.
func (p *growthQueue) fill(ctx context.Context) error {
	conn, err := p.world.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // all its work is committed
	for _, sql := range []string{
		growthQuietSQL, growthExecutionsSQL, growthEntriesSQL, growthStateSQL, growthStatsSQL,
		growthVacuumSQL,
	} {
		args := []any{}
		if sql == growthExecutionsSQL {
			args = []any{p.waiting, p.action}
		}
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			return fmt.Errorf("fill the queue: %w", err)
		}
	}
	return nil
}

func (p *growthQueue) request(ctx context.Context, n int) ([]int64, error) {
	rows, err := p.pool.Query(ctx, growthRequestSQL, n, p.action)
	if err != nil {
		return nil, fmt.Errorf("request %d executions: %w", n, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// settle records the dispatched executions and deletes their messages.
func (p *growthQueue) settle(ctx context.Context) error {
	p.relay.mu.Lock()
	rows := p.relay.rows
	p.holders = append(p.holders, p.relay.held...)
	p.relay.rows, p.relay.held = nil, nil
	p.relay.mu.Unlock()
	if len(rows) == 0 {
		return nil
	}
	_, err := p.world.query.DeleteOutbox(ctx, rows)
	return err
}

func (p *growthQueue) record(operation string, batch int, took time.Duration, counts bool) {
	if !counts {
		return
	}
	if p.took[operation] == nil {
		p.took[operation] = map[int][]time.Duration{}
	}
	p.took[operation][batch] = append(p.took[operation][batch], took)
}

// sample admits a batch, then completes and promotes one, so that the length of the queue stays.
func (p *growthQueue) sample(ctx context.Context, batch int, counts bool) error {
	ids, err := p.request(ctx, batch)
	if err != nil {
		return err
	}
	begun := time.Now()
	result, err := p.scheduler.Run(ctx, scheduler.FillStep{}, scheduler.NewRequestStep(ids))
	p.record(operationAdmit, batch, time.Since(begun), counts)
	if err != nil || result.Enqueued != batch {
		return fmt.Errorf("admit %d: %+v: %w", batch, result, err)
	}
	done := p.holders[:batch]
	p.holders = p.holders[batch:]
	if _, err := p.pool.Exec(ctx, growthFinishSQL, done); err != nil {
		return fmt.Errorf("finish %d executions: %w", batch, err)
	}
	begun = time.Now()
	result, err = p.scheduler.Run(ctx, scheduler.NewReleaseStep(done), scheduler.FillStep{})
	p.record(operationComplete, batch, time.Since(begun), counts)
	if err != nil || result.Released != batch || result.Granted != batch {
		return fmt.Errorf("complete %d: %+v: %w", batch, result, err)
	}
	return p.settle(ctx)
}

// conclude checks the invariants and reports the engine's figures.
func (p *growthQueue) conclude(ctx context.Context, results []Growth) ([]Growth, error) {
	violations, err := doctor.Invariants(ctx, p.pool)
	if err != nil {
		return nil, fmt.Errorf("check the invariants: %w", err)
	}
	if len(violations) > 0 {
		return nil, fmt.Errorf("%w: with %d waiting: %s", ErrFaulty, p.waiting, violations[0])
	}
	return p.report(results, DesignEngine), nil
}

func (p *growthQueue) report(results []Growth, design Design) []Growth {
	for _, operation := range []string{operationAdmit, operationComplete} {
		for _, batch := range []int{1, growthBatch} {
			if took := p.took[operation][batch]; len(took) > 0 {
				results = append(results, Growth{
					Design: design, Waiting: p.waiting, Operation: operation, Batch: batch,
					P50: ms(quantile(took, 0.5)), P99: ms(quantile(took, 0.99)), Samples: len(took),
				})
			}
		}
	}
	p.took = map[string]map[int][]time.Duration{}
	return results
}

// sampleD1 is sample for D1.
func (p *growthQueue) sampleD1(ctx context.Context, batch int, counts bool) error {
	d := &d1{pool: p.pool, wire: p.world.wire, tally: newTally(), limit: growthBatch, wake: make(chan struct{}, 1)}
	for id := range p.world.wire.workers {
		d.worker = id
	}
	ids, err := p.request(ctx, batch)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := d.admit(ctx, ids[0]); err != nil {
		return fmt.Errorf("admit: %w", err)
	}
	p.record(operationAdmit, batch, time.Since(begun), counts)
	done := p.holders[:batch]
	p.holders = p.holders[batch:]
	if _, err := p.pool.Exec(ctx, growthFinishSQL, done); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	begun = time.Now()
	if err := d.complete(ctx, done[0]); err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	p.record(operationComplete, batch, time.Since(begun), counts)
	return nil
}
