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

// Growth is what one operation takes on one queue, by how many wait in it:
// the time of the whole round as its caller sees it, with the reading before
// the locks and the commit.
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

// GrowthPlan says what of the growth is measured.
type GrowthPlan struct {
	Levels    []int `json:"levels"`     // how many wait
	Samples   int   `json:"samples"`    // of every operation and level, over all rounds
	SamplesD1 int   `json:"samples_d1"` // of the one-at-a-time design, which is slow
}

// growthBatch is both the larger batch and the limit of the queue.
const growthBatch = 100

// pond is one queue with a certain number of waiters.
type pond struct {
	world   *world
	waiting int
	rounds  *scheduler.Scheduler
	relay   *basin
	pool    *pgxpool.Pool
	holders []int64 // executions that hold a slot, oldest first
	action  int64
	took    map[string]map[int][]time.Duration // by operation and batch
}

// basin keeps what rounds publish.
type basin struct {
	mu   sync.Mutex
	rows []int64 // guarded by mu
	held []int64 // executions that were dispatched; guarded by mu
}

// Published implements scheduler.Relay.
func (b *basin) Published(row int64, messages []outbox.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows = append(b.rows, row)
	for _, m := range messages {
		if sent, err := message.Decode[message.Dispatch](m.Body); err == nil {
			b.held = append(b.held, sent.Payload.ExecutionID)
		}
	}
}

func (b *basin) drain() (rows, held []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows, held = b.rows, b.held
	b.rows, b.held = nil, nil
	return rows, held
}

// grow measures the growth: the levels side by side, operation by operation,
// so that what else the machine does strikes all of them alike.
func (s *server) grow(ctx context.Context, plan GrowthPlan,
	progress func(string, ...any)) (results []Growth, err error) {
	var ponds []*pond
	defer func() {
		for _, p := range ponds {
			p.world.close()
		}
	}()
	for _, level := range plan.Levels {
		progress("growth: filling a queue with %d", level)
		p, err := s.dig(ctx, level)
		if p != nil {
			ponds = append(ponds, p)
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
		if err := measureAll(ctx, ponds, plan.Samples, batch, (*pond).sample); err != nil {
			return nil, err
		}
	}
	for _, p := range ponds {
		if results, err = p.conclude(ctx, results); err != nil {
			return nil, err
		}
	}
	if plan.SamplesD1 == 0 {
		return results, nil
	}
	progress("growth: %d samples of D1", plan.SamplesD1)
	for _, p := range ponds {
		if err := p.convert(ctx); err != nil {
			return nil, err
		}
	}
	if err := measureAll(ctx, ponds, plan.SamplesD1, 1, (*pond).sampleD1); err != nil {
		return nil, err
	}
	for _, p := range ponds {
		results = p.report(results, DesignD1)
	}
	return results, nil
}

func measureAll(ctx context.Context, ponds []*pond, samples, batch int,
	sample func(*pond, context.Context, int, bool) error) error {
	warm := min(5, samples)
	for i := range warm + samples {
		for _, p := range ponds {
			if err := sample(p, ctx, batch, i >= warm); err != nil {
				return fmt.Errorf("with %d waiting: %w", p.waiting, err)
			}
		}
	}
	return nil
}

// dig makes a queue with that many waiters whose slots are all taken.
func (s *server) dig(ctx context.Context, waiting int) (*pond, error) {
	w, err := s.build(ctx, Scenario{Design: DesignEngine, Keys: 1, Limit: growthBatch, Workers: 1})
	if err != nil {
		return nil, err
	}
	p := &pond{world: w, waiting: waiting, relay: &basin{}, took: map[string]map[int][]time.Duration{}}
	hot, err := w.open(ctx,
		store.Config{MaxConnections: roundConnections, ApplicationName: applicationRounds, HotPath: true})
	if err != nil {
		return p, err
	}
	p.pool = w.query.Pool()
	p.rounds = scheduler.New(scheduler.Config{MaxQueued: maxQueued},
		scheduler.Deps{Store: hot, Relay: p.relay, Logger: w.logger})
	if err := p.pool.QueryRow(ctx, growthActionSQL).Scan(&p.action); err != nil {
		return p, fmt.Errorf("read the action: %w", err)
	}
	ids, err := p.request(ctx, growthBatch)
	if err != nil {
		return p, err
	}
	result, err := p.rounds.Run(ctx, scheduler.FillStep{}, scheduler.NewRequestStep(ids))
	if err != nil || result.Granted != growthBatch {
		return p, fmt.Errorf("take every slot: %+v: %w", result, err)
	}
	if err := p.settle(ctx); err != nil {
		return p, err
	}
	return p, p.fill(ctx)
}

// fill puts the waiters into the tables as the engine would have.
func (p *pond) fill(ctx context.Context) error {
	conn, err := p.world.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // its work is committed
	for _, sql := range []string{growthQuietSQL, growthExecutionsSQL, growthEntriesSQL, growthStateSQL, growthStatsSQL,
		growthVacuumSQL} {
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

func (p *pond) request(ctx context.Context, n int) ([]int64, error) {
	rows, err := p.pool.Query(ctx, growthRequestSQL, n, p.action)
	if err != nil {
		return nil, fmt.Errorf("request %d executions: %w", n, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// settle takes note of what was dispatched and deletes the messages.
func (p *pond) settle(ctx context.Context) error {
	rows, held := p.relay.drain()
	p.holders = append(p.holders, held...)
	if len(rows) == 0 {
		return nil
	}
	_, err := p.world.query.DeleteOutbox(ctx, rows)
	return err
}

func (p *pond) note(operation string, batch int, took time.Duration, counts bool) {
	if !counts {
		return
	}
	if p.took[operation] == nil {
		p.took[operation] = map[int][]time.Duration{}
	}
	p.took[operation][batch] = append(p.took[operation][batch], took)
}

// sample admits a batch and then completes and promotes one, so that as many
// wait as before.
func (p *pond) sample(ctx context.Context, batch int, counts bool) error {
	ids, err := p.request(ctx, batch)
	if err != nil {
		return err
	}
	begun := time.Now()
	result, err := p.rounds.Run(ctx, scheduler.FillStep{}, scheduler.NewRequestStep(ids))
	p.note(operationAdmit, batch, time.Since(begun), counts)
	if err != nil || result.Enqueued != batch {
		return fmt.Errorf("admit %d: %+v: %w", batch, result, err)
	}
	done := p.holders[:batch]
	p.holders = p.holders[batch:]
	if _, err := p.pool.Exec(ctx, growthFinishSQL, done); err != nil {
		return fmt.Errorf("finish %d executions: %w", batch, err)
	}
	begun = time.Now()
	result, err = p.rounds.Run(ctx, scheduler.NewReleaseStep(done), scheduler.FillStep{})
	p.note(operationComplete, batch, time.Since(begun), counts)
	if err != nil || result.Released != batch || result.Granted != batch {
		return fmt.Errorf("complete %d: %+v: %w", batch, result, err)
	}
	return p.settle(ctx)
}

// conclude reports the engine's figures and checks what it has left.
func (p *pond) conclude(ctx context.Context, results []Growth) ([]Growth, error) {
	violations, err := doctor.Invariants(ctx, p.pool)
	if err != nil {
		return nil, fmt.Errorf("check the invariants: %w", err)
	}
	if len(violations) > 0 {
		return nil, fmt.Errorf("%w: with %d waiting: %s", ErrFaulty, p.waiting, violations[0])
	}
	return p.report(results, DesignEngine), nil
}

func (p *pond) report(results []Growth, design Design) []Growth {
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

// convert turns the queue into one of D1, where who is active has an entry too.
func (p *pond) convert(ctx context.Context) error {
	if _, err := p.pool.Exec(ctx, d1IndexSQL); err != nil {
		return fmt.Errorf("make the index of D1: %w", err)
	}
	if _, err := p.pool.Exec(ctx, growthConvertSQL); err != nil {
		return fmt.Errorf("make the entries of D1: %w", err)
	}
	return nil
}

// sampleD1 is sample for D1.
func (p *pond) sampleD1(ctx context.Context, batch int, counts bool) error {
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
	p.note(operationAdmit, batch, time.Since(begun), counts)
	done := p.holders[:batch]
	p.holders = p.holders[batch:]
	if _, err := p.pool.Exec(ctx, growthFinishSQL, done); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	begun = time.Now()
	if err := d.complete(ctx, done[0]); err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	p.note(operationComplete, batch, time.Since(begun), counts)
	return nil
}
