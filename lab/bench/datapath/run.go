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

	Before    float64 `json:"per_before,omitempty"`     // ÷ the earlier program, same round
	BeforeCPU float64 `json:"cpu_per_before,omitempty"` // CPU time of all ÷ that of the earlier program
	River     float64 `json:"per_river,omitempty"`      // ÷ River, same round

	LockWaits      float64 `json:"lock_waits,omitempty"` // share of the batches' time in row locks
	Queued         float64 `json:"queued"`               // share of executions that had to wait
	Rounds         int     `json:"rounds"`               // committed batches
	Failed         int     `json:"failed_rounds"`        // failed batches
	BatchP50       int     `json:"batch_p50"`            // messages of a batch
	BatchP99       int     `json:"batch_p99"`
	RoundP50       float64 `json:"round_ms_p50"`
	RoundP99       float64 `json:"round_ms_p99"`
	WaitP50        float64 `json:"wait_ms_p50,omitempty"` // request visible → dispatch received, if paced
	WaitP99        float64 `json:"wait_ms_p99,omitempty"`
	Commits        float64 `json:"commits_per_execution"`
	WALBytes       float64 `json:"wal_bytes_per_execution"`
	HotRatio       float64 `json:"hot_ratio"`
	HotRatioQueues float64 `json:"hot_ratio_queues"`
	GoMicros       float64 `json:"go_cpu_micros_per_execution"` // load, replicas, workers
	PGMicros       float64 `json:"postgres_cpu_micros_per_execution"`
	Foreign        float64 `json:"foreign_cpu"` // CPUs that other programs used
	MostRunning    int     `json:"most_running"`

	Faults Faults `json:"faults"`
}

// warmUp is the number of executions before the measurement: at least one for every key, so that queues
// exist and statements are prepared.
func (s Scenario) warmUp() int { return max(s.Keys, min(200, s.Executions)) }

// run runs one measurement.
func (s *server) run(ctx context.Context, scenario Scenario, floor float64) (result Result, err error) {
	w, err := s.build(ctx, scenario)
	if err != nil {
		return result, fmt.Errorf("prepare: %w", err)
	}
	defer w.close()
	conn, err := w.connect(ctx)
	if err != nil {
		return result, err
	}
	before, err := w.server.count(ctx, conn)
	_ = conn.Close(context.WithoutCancel(ctx)) // it only read
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
	w.tally.reset()
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
	result.Commits = float64(after.commits-before.commits) / float64(total)
	result.HotRatio = share(after.hot-before.hot, after.updates-before.updates)
	result.HotRatioQueues = share(after.queueHot-before.queueHot, after.queueUpdates-before.queueUpdates)
	result.Faults.Deadlocks = after.deadlocks - before.deadlocks
	if result.Faults.Deadlocks > 0 {
		return result, fmt.Errorf("%w: %d deadlocks", ErrFaulty, result.Faults.Deadlocks)
	}
	return result, nil
}

// measure runs the measured executions.
func (w *world) measure(ctx context.Context, floor float64) (r Result, err error) {
	n := w.scenario.Executions
	rate := w.scenario.Pace * floor
	if rate > 0 {
		w.wire.mu.Lock()
		w.wire.asked = map[int64]time.Time{}
		w.wire.mu.Unlock()
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
			return r, fmt.Errorf("insert a crowd of workers: %w", err)
		}
	}
	// The insertion of the crowd counts for the time, but not for the executions' WAL and CPU.
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
	r.LockWaits = share(int64(waiting*took.Seconds()*1e6), w.tally.into(&r).Microseconds())
	w.wire.mu.Lock()
	defer w.wire.mu.Unlock()
	r.WaitP50, r.WaitP99 = ms(quantile(w.wire.waits, 0.5)), ms(quantile(w.wire.waits, 0.99))
	return r, nil
}

// lockReadings is the pause between two readings of lock waits.
const lockReadings = 10 * time.Millisecond

// watchLocks counts the batches that wait for row locks, from another database whose commits are not
// measured. done ends it and returns the mean.
func (w *world) watchLocks(ctx context.Context) (done func() (float64, error), err error) {
	measured, err := pgx.ParseConfig(w.url)
	if err != nil {
		return nil, fmt.Errorf("read the address of the database: %w", err)
	}
	conn, err := pgx.Connect(ctx, w.server.url)
	if err != nil {
		return nil, fmt.Errorf("connect to read locks: %w", err)
	}
	reading, cancel := context.WithCancel(ctx)
	total, readings := 0, 0
	failed := make(chan error, 1)
	go func() {
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it only read
		for {
			var waiting int
			if err := conn.QueryRow(ctx, lockWaitsSQL, measured.Database,
				applicationBatches).Scan(&waiting); err != nil {
				failed <- ignoreEnd(ctx, err)
				return
			}
			total, readings = total+waiting, readings+1
			if !supervise.Sleep(reading, lockReadings) {
				failed <- nil
				return
			}
		}
	}()
	return func() (float64, error) {
		cancel()
		err := <-failed
		return float64(total) / float64(max(readings, 1)), err
	}, nil
}

// into writes the sums into r and returns the time of all batches together.
func (t *tally) into(r *Result) (busy time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Rounds, r.Failed = len(t.batches), t.failed
	r.BatchP50, r.BatchP99 = quantile(t.sizes, 0.5), quantile(t.sizes, 0.99)
	r.RoundP50, r.RoundP99 = ms(quantile(t.batches, 0.5)), ms(quantile(t.batches, 0.99))
	r.Queued = float64(t.enqueued) / float64(r.Executions)
	for _, took := range t.batches {
		busy += took
	}
	return busy
}

// ms returns a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
