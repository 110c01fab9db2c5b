package datapath

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/core/supervise"
)

// Result is one run of one scenario.
type Result struct {
	Executions int     `json:"executions"`
	Seconds    float64 `json:"seconds"`
	PerSecond  float64 `json:"per_second"`
	OfIdeal    float64 `json:"of_ideal,omitempty"` // of limit ÷ hold, when jobs are held

	Floor1  float64 `json:"per_floor_1,omitempty"`    // ÷ the floor on one connection, same round
	Floor16 float64 `json:"per_floor_16,omitempty"`   // ÷ the floor on sixteen
	D1      float64 `json:"per_d1,omitempty"`         // ÷ the one-at-a-time design
	OfAlone float64 `json:"of_one_replica,omitempty"` // ÷ the same with one replica, or without the crowd

	Before    float64 `json:"per_before,omitempty"`     // ÷ the program of before, same round
	BeforeCPU float64 `json:"cpu_per_before,omitempty"` // CPU time of all ÷ that of the program of before
	River     float64 `json:"per_river,omitempty"`      // ÷ River, same round

	LockWaits      float64 `json:"lock_waits,omitempty"` // share of the rounds' time in which they waited for row locks
	Queued         float64 `json:"queued"`               // share of executions that had to wait
	Rounds         int     `json:"rounds"`               // committed
	Failed         int     `json:"failed_rounds"`        // failed and delivered again
	BatchP50       int     `json:"batch_p50"`            // messages a round
	BatchP99       int     `json:"batch_p99"`
	RoundP50       float64 `json:"round_ms_p50"`
	RoundP99       float64 `json:"round_ms_p99"`
	WaitP50        float64 `json:"wait_ms_p50,omitempty"` // request visible → dispatch received, at a pace
	WaitP99        float64 `json:"wait_ms_p99,omitempty"`
	Commits        float64 `json:"commits_per_execution"`
	WALBytes       float64 `json:"wal_bytes_per_execution"`
	HotRatio       float64 `json:"hot_ratio"`
	HotRatioQueues float64 `json:"hot_ratio_queues"`
	GoMicros       float64 `json:"go_cpu_micros_per_execution"` // load, replicas, workers
	PGMicros       float64 `json:"postgres_cpu_micros_per_execution"`
	Foreign        float64 `json:"foreign_cpu"` // CPUs that others used
	MostRunning    int     `json:"most_running"`

	Faults Faults `json:"faults"`
}

// warmUp is how many executions run before the measurement begins: one for
// every key at least, so that queues exist and statements are prepared.
func (s Scenario) warmUp() int { return max(s.Keys, min(200, s.Executions)) }

// run makes one measurement.
func (s *server) run(ctx context.Context, scenario Scenario, floor float64) (result Result, err error) {
	w, err := s.build(ctx, scenario)
	if err != nil {
		return result, fmt.Errorf("prepare: %w", err)
	}
	defer w.close()
	before, err := w.countFirst(ctx)
	if err != nil {
		return result, err
	}
	if err := w.start(ctx); err != nil {
		return result, err
	}
	warm := scenario.warmUp()
	if err := w.send(ctx, 0, warm, 0); err != nil {
		return result, err
	}
	if err := w.await(ctx, warm); err != nil {
		return result, fmt.Errorf("warm up: %w", err)
	}
	w.tally.forget()
	if result, err = w.measure(ctx, floor); err != nil {
		return result, err
	}
	if err := w.stop(); err != nil {
		return result, err
	}
	total := warm + scenario.Executions
	if result.Faults, err = w.check(ctx, w.query.Pool(), total); err != nil {
		return result, err
	}
	w.leave()
	after, err := s.countLast(ctx, w.url)
	if err != nil {
		return result, err
	}
	result.counted(before, after, total)
	if result.Faults.Deadlocks > 0 {
		return result, fmt.Errorf("%w: %d deadlocks", ErrFaulty, result.Faults.Deadlocks)
	}
	return result, nil
}

// countFirst reads the counters before anything runs.
func (w *world) countFirst(ctx context.Context) (counters, error) {
	conn, err := w.connect(ctx)
	if err != nil {
		return counters{}, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it only read
	return w.server.count(ctx, conn)
}

// measure runs the executions that count.
func (w *world) measure(ctx context.Context, floor float64) (r Result, err error) {
	n := w.scenario.Executions
	rate := w.scenario.Pace * floor
	if rate > 0 {
		w.wire.time()
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	locks, err := w.watchLocks(ctx)
	if err != nil {
		return r, err
	}
	begun := time.Now()
	if w.scenario.Crowd > 0 {
		if _, err := w.query.Pool().Exec(ctx, crowdSQL, w.scenario.Crowd); err != nil {
			return r, fmt.Errorf("make a crowd of workers: %w", err)
		}
	}
	// The insertion of the crowd counts as time, and as no execution's WAL or CPU.
	before := w.server.burned()
	walBefore, err := w.server.wal(ctx)
	if err != nil {
		return r, err
	}
	if err := w.send(ctx, w.scenario.warmUp(), n, rate); err != nil {
		return r, err
	}
	if err := w.await(ctx, n); err != nil {
		return r, err
	}
	took := time.Since(begun)
	waiting, err := locks()
	if err != nil {
		return r, err
	}
	spent := w.server.burned().since(before)
	walAfter, err := w.server.wal(ctx)
	if err != nil {
		return r, err
	}
	each := float64(n)
	r = Result{
		Executions: n, Seconds: took.Seconds(), PerSecond: each / took.Seconds(),
		WALBytes: float64(walAfter-walBefore) / each,
		GoMicros: float64(spent.own.Microseconds()) / each, PGMicros: float64(spent.postgres.Microseconds()) / each,
		Foreign: spent.foreign.Seconds() / spent.elapsed.Seconds(),
	}
	if w.scenario.Hold > 0 && w.scenario.Limit > 0 {
		r.OfIdeal = r.PerSecond / (float64(w.scenario.Limit*w.scenario.Keys) / w.scenario.Hold.Seconds())
	}
	if w.scenario.Rate > 0 {
		r.OfIdeal = r.PerSecond / float64(w.scenario.Rate)
	}
	_, r.MostRunning = w.running.violations()
	w.tally.into(&r)
	r.LockWaits = share(int64(waiting*took.Seconds()*1e6), w.tally.busy().Microseconds())
	w.wire.into(&r)
	return r, nil
}

// lockLooks is the pause between two readings of lock waits.
const lockLooks = 10 * time.Millisecond

// watchLocks counts from another database, whose commits are not measured, how many rounds
// wait for row locks. done ends it and returns the mean.
func (w *world) watchLocks(ctx context.Context) (done func() (float64, error), err error) {
	measured, err := pgx.ParseConfig(w.url)
	if err != nil {
		return nil, fmt.Errorf("read the address of the database: %w", err)
	}
	conn, err := pgx.Connect(ctx, w.server.url)
	if err != nil {
		return nil, fmt.Errorf("connect to look at locks: %w", err)
	}
	looking, cancel := context.WithCancel(ctx)
	total, looks := 0, 0
	failed := make(chan error, 1)
	go func() {
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it only read
		for {
			var waiting int
			if err := conn.QueryRow(ctx, lockWaitsSQL, measured.Database,
				applicationRounds).Scan(&waiting); err != nil {
				failed <- over(ctx, err)
				return
			}
			total, looks = total+waiting, looks+1
			if !supervise.Sleep(looking, lockLooks) {
				failed <- nil
				return
			}
		}
	}()
	return func() (float64, error) {
		cancel()
		err := <-failed
		return float64(total) / float64(max(looks, 1)), err
	}, nil
}

// busy is the time of all rounds together.
func (t *tally) busy() (sum time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, took := range t.rounds {
		sum += took
	}
	return sum
}

func (t *tally) into(r *Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Rounds, r.Failed = len(t.rounds), t.failed
	r.BatchP50, r.BatchP99 = quantile(t.sizes, 0.5), quantile(t.sizes, 0.99)
	r.RoundP50, r.RoundP99 = ms(quantile(t.rounds, 0.5)), ms(quantile(t.rounds, 0.99))
	r.Queued = float64(t.enqueued) / float64(r.Executions)
}

// ms is a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// time begins to note how long requests wait.
func (w *wire) time() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = make(map[int64]time.Time)
}

func (w *wire) into(r *Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.WaitP50, r.WaitP99 = ms(quantile(w.waits, 0.5)), ms(quantile(w.waits, 0.99))
}

// counted takes the database's counters of the whole life of the database.
func (r *Result) counted(before, after counters, executions int) {
	r.Commits = float64(after.commits-before.commits) / float64(executions)
	r.HotRatio = share(after.hot-before.hot, after.updates-before.updates)
	r.HotRatioQueues = share(after.queueHot-before.queueHot, after.queueUpdates-before.queueUpdates)
	r.Faults.Deadlocks = after.deadlocks - before.deadlocks
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
