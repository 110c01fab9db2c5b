package supervise_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/lab/testkit/supervisetest"
)

func TestLoopStress(t *testing.T) {
	t.Parallel()
	supervisetest.Stress(t, func(*testing.T) supervise.Service {
		return supervise.NewLoop(supervise.LoopConfig{
			Name: "stress", Interval: time.Millisecond, Jitter: 0.5,
			Tick: func(context.Context) error { return nil },
		})
	})
}

func TestLoopMisuse(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { supervise.NewLoop(supervise.LoopConfig{Name: "x", Interval: time.Second}) })
	require.Panics(t, func() {
		supervise.NewLoop(supervise.LoopConfig{Name: "x", Tick: func(context.Context) error { return nil }})
	})
}

// startLoop runs a loop inside a bubble of fake time and stops it at the end.
func startLoop(t *testing.T, cfg supervise.LoopConfig) *supervise.Loop {
	t.Helper()
	loop := supervise.NewLoop(cfg)
	require.NoError(t, loop.Start(t.Context()))
	t.Cleanup(loop.Stop)
	return loop
}

func TestLoopTicks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ticks atomic.Int64
		loop := startLoop(t, supervise.LoopConfig{
			Name: "steady", Interval: 10 * time.Second,
			Tick: func(context.Context) error { ticks.Add(1); return nil },
		})
		synctest.Wait()
		require.EqualValues(t, 1, ticks.Load(), "the first tick comes at once")
		require.Equal(t, time.Now(), loop.LastTick())

		time.Sleep(9 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, ticks.Load())
		time.Sleep(21 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 4, ticks.Load())
		require.Equal(t, time.Now(), loop.LastTick())
		require.NoError(t, loop.LastError())
	})
}

func TestLoopJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		loop := startLoop(t, supervise.LoopConfig{
			Name: "spread", Interval: 10 * time.Second, Jitter: 0.2,
			Tick: func(context.Context) error { at = append(at, time.Now()); return nil },
		})
		time.Sleep(10 * time.Minute)
		loop.Stop()
		require.Greater(t, len(at), 40)
		var pauses []time.Duration
		for i := 1; i < len(at); i++ {
			pauses = append(pauses, at[i].Sub(at[i-1]))
		}
		require.GreaterOrEqual(t, slices.Min(pauses), 8*time.Second)
		require.LessOrEqual(t, slices.Max(pauses), 12*time.Second)
		require.Less(t, slices.Min(pauses), 10*time.Second, "jitter lengthens and shortens pauses")
		require.Greater(t, slices.Max(pauses), 10*time.Second)
	})
}

func TestLoopWake(t *testing.T) {
	t.Parallel()

	t.Run("TicksNow", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var ticks atomic.Int64
			loop := startLoop(t, supervise.LoopConfig{
				Name: "woken", Interval: time.Hour,
				Tick: func(context.Context) error { ticks.Add(1); return nil },
			})
			synctest.Wait()
			begin := time.Now()
			loop.Wake()
			synctest.Wait()
			require.EqualValues(t, 2, ticks.Load())
			require.Equal(t, begin, time.Now())
		})
	})

	t.Run("DuringATickMeansOneMore", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var ticks atomic.Int64
			loop := startLoop(t, supervise.LoopConfig{
				Name: "busy", Interval: time.Hour,
				Tick: func(ctx context.Context) error {
					ticks.Add(1)
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
					return nil
				},
			})
			synctest.Wait()
			for range 10 {
				loop.Wake()
			}
			time.Sleep(time.Minute)
			require.EqualValues(t, 2, ticks.Load())
		})
	})

	t.Run("DoesNotHeatAFailingLoop", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var ticks atomic.Int64
			loop := startLoop(t, supervise.LoopConfig{
				Name: "failing", Interval: 20 * time.Second,
				Tick: func(context.Context) error { ticks.Add(1); return errors.New("down") },
			})
			for range 100 {
				loop.Wake()
				time.Sleep(100 * time.Millisecond)
			}
			synctest.Wait()
			require.GreaterOrEqual(t, ticks.Load(), int64(9))
			require.LessOrEqual(t, ticks.Load(), int64(11))
		})
	})
}

func TestLoopDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loop := startLoop(t, supervise.LoopConfig{
			Name: "slow", Interval: time.Hour, Timeout: 5 * time.Second,
			Tick: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		})
		begin := time.Now()
		time.Sleep(6 * time.Second)
		synctest.Wait()
		require.Equal(t, begin.Add(5*time.Second), loop.LastTick())
		require.ErrorIs(t, loop.LastError(), context.DeadlineExceeded)
		require.ErrorContains(t, loop.LastError(), "tick of slow took longer than 5s")
	})
}

// Readiness calls a loop stuck after its TickTimeout. A loop whose ticks all use their whole timeout and fail is slow,
// not stuck.
func TestLoopWithSlowFailingTicksIsNotStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ended []time.Time
		loop := startLoop(t, supervise.LoopConfig{
			Name: "slow", Interval: time.Second, MaxBackoff: time.Minute, Jitter: 0.2, Timeout: 2 * time.Minute,
			Tick: func(ctx context.Context) error { <-ctx.Done(); ended = append(ended, time.Now()); return ctx.Err() },
		})
		time.Sleep(time.Hour)
		loop.Stop()
		require.Greater(t, len(ended), 10)
		for i := 1; i < len(ended); i++ {
			require.Less(t, ended[i].Sub(ended[i-1]), loop.TickTimeout())
		}
	})
}

// A watcher receives every outcome. The loop does not log an error that the watcher handles, and
// the watcher's pause replaces the loop's, whatever the interval.
func TestLoopIsWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		theirs, ours := errors.New("theirs"), errors.New("ours")
		outcomes := []error{theirs, theirs, nil, ours}
		var at []time.Time
		var told []error
		loop := supervise.NewLoop(supervise.LoopConfig{
			Name: "watched", Interval: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Tick: func(context.Context) error { at = append(at, time.Now()); return outcomes[len(at)-1] },
		})
		loop.Watch(func(err error) time.Duration {
			told = append(told, err)
			if errors.Is(err, theirs) {
				return 5 * time.Second
			}
			return 0
		})
		require.NoError(t, loop.Start(t.Context()))
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		loop.Stop()
		require.Equal(t, outcomes, told)
		require.Equal(t, 5*time.Second, at[1].Sub(at[0]))
		require.Equal(t, 5*time.Second, at[2].Sub(at[1]))
		require.Equal(t, time.Hour, at[3].Sub(at[2]))
		require.NotContains(t, log.String(), "theirs")
		require.Contains(t, log.String(), "ours")
	})
}

// moments notes when something happened.
type moments struct {
	mu sync.Mutex
	at []time.Time
}

func (m *moments) note() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = append(m.at, time.Now())
}

func (m *moments) read() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.at)
}

func TestLoopBacksOffAndRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			at      moments
			healthy atomic.Bool
		)
		begin := time.Now()
		loop := startLoop(t, supervise.LoopConfig{
			Name: "flaky", Interval: time.Second, MaxBackoff: 10 * time.Second,
			Tick: func(context.Context) error {
				at.note()
				if !healthy.Load() {
					return errors.New("down")
				}
				return nil
			},
		})
		time.Sleep(35 * time.Second)
		synctest.Wait()
		var seconds []int
		for _, moment := range at.read() {
			seconds = append(seconds, int(moment.Sub(begin).Seconds()))
		}
		require.Equal(t, []int{0, 2, 6, 14, 24, 34}, seconds)
		require.EqualError(t, loop.LastError(), "down")
		require.Zero(t, loop.LastSuccess(), "a failed tick has done nothing")

		before := len(at.read())
		healthy.Store(true)
		time.Sleep(12 * time.Second) // at 47 s: ticks at 44, 45, 46, 47
		synctest.Wait()
		require.Len(t, at.read(), before+4)
		require.NoError(t, loop.LastError())
		require.Equal(t, loop.LastTick(), loop.LastSuccess())

		healthy.Store(false)
		time.Sleep(8 * time.Second)
		synctest.Wait()
		seconds = nil
		for _, moment := range at.read()[before+4:] {
			seconds = append(seconds, int(moment.Sub(begin).Seconds()))
		}
		require.Equal(t, []int{48, 50, 54}, seconds, "after a success the pauses begin short again")
	})
}

func TestLoopSurvivesPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			log      bytes.Buffer
			ticks    atomic.Int64
			registry = prometheus.NewRegistry()
		)
		loop := startLoop(t, supervise.LoopConfig{
			Name: "wild", Interval: time.Second,
			Logger:  slog.New(slog.NewJSONHandler(&log, nil)),
			Metrics: supervise.NewMetrics(registry),
			Tick: func(context.Context) error {
				if ticks.Add(1) == 1 {
					panic("unexpected")
				}
				return nil
			},
		})
		synctest.Wait()
		require.ErrorContains(t, loop.LastError(), "panic: unexpected")
		require.ErrorContains(t, loop.LastError(), "loop_test.go", "the stack names the place")

		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.GreaterOrEqual(t, ticks.Load(), int64(2))
		loop.Stop()
		require.Contains(t, log.String(), `"loop":"wild"`)
		require.Equal(t, 1, testutil.CollectAndCount(registry, "attune_loop_errors_total"))
		families, err := registry.Gather()
		require.NoError(t, err)
		values := map[string]float64{}
		for _, family := range families {
			metric := family.GetMetric()[0]
			values[family.GetName()] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
				float64(metric.GetHistogram().GetSampleCount())
		}
		require.InDelta(t, 1, values["attune_loop_errors_total"], 0)
		require.InDelta(t, ticks.Load(), values["attune_loop_duration_seconds"], 0)
		require.InDelta(t, float64(loop.LastTick().UnixMilli())/1000, values["attune_loop_last_tick_timestamp_seconds"],
			0.001)
	})
}

func TestLoopStopInterruptsTheTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cause error
		loop := startLoop(t, supervise.LoopConfig{
			Name: "stopped", Interval: time.Second, Timeout: time.Hour,
			Tick: func(ctx context.Context) error { <-ctx.Done(); cause = context.Cause(ctx); return ctx.Err() },
		})
		synctest.Wait()
		loop.Stop()
		require.ErrorIs(t, cause, supervise.ErrStopping)
		require.NoError(t, loop.LastError(), "a tick that Stop interrupted has not failed")
	})
}

// A loop that fails is soon unhealthy. One whose next tick is far off may fail once, as in an outage of the database
// that is over.
func TestLoopMayFailAsLongAsItsPauseAllows(t *testing.T) {
	t.Parallel()
	for interval, within := range map[time.Duration][2]time.Duration{
		10 * time.Second: {time.Minute, time.Minute},
		time.Hour:        {2 * time.Hour, 3 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			var succeeds atomic.Bool
			loop := supervise.NewLoop(supervise.LoopConfig{
				Name: "often or rarely", Interval: interval, Timeout: 5 * time.Minute,
				Tick: func(context.Context) error {
					if !succeeds.Load() {
						return errors.New("the database was away")
					}
					return nil
				},
			})
			require.NoError(t, loop.Start(t.Context()))
			synctest.Wait()
			require.GreaterOrEqual(t, loop.SuccessTimeout(), within[0])
			require.LessOrEqual(t, loop.SuccessTimeout(), within[1])
			succeeds.Store(true)
			time.Sleep(2 * interval)
			synctest.Wait()
			require.Equal(t, loop.TickTimeout(), loop.SuccessTimeout())
			loop.Stop()
		})
	}
}
