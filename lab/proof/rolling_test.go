package proof

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/lab/testkit"
)

// steady requests three executions every 40 ms, 75 a second, until the context ends.
func (s *stage) steady(ctx context.Context) (ids []int64) {
	beat := time.NewTicker(40 * time.Millisecond)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return ids
		case <-beat.C:
		}
		var batch []submit.Request
		for _, ref := range []string{actFree, actFree, actLimited} {
			batch = append(batch, submit.Request{ActionRef: ref, Params: json.RawMessage(`{}`)})
		}
		done, err := s.submitter.RequestMany(context.WithoutCancel(ctx), batch)
		if err != nil {
			s.t.Errorf("request: %v", err)
			return ids
		}
		for _, r := range done {
			ids = append(ids, r.ID)
		}
	}
}

// roll restarts three replicas under a steady load, one after the other, and returns the longest time without a
// completion.
func (s *stage) roll() (longest time.Duration) {
	s.worker("w1")
	s.worker("w2")
	var replicas []*process
	for range 3 {
		replicas = append(replicas, s.serve())
	}
	ctx, cancel := context.WithCancel(testkit.Context(s.t))
	defer cancel()
	var ids []int64
	var load sync.WaitGroup
	begun := time.Now()
	load.Go(func() { ids = s.steady(ctx) })
	ended := func() int { return s.count(`SELECT count(*) FROM execution e WHERE e.finished_status IS NOT NULL`) }
	testkit.Eventually(s.t, func() bool { return ended() >= 30 }, 20*time.Second, "the load is under way")
	for i, replica := range replicas {
		stopping := time.Now()
		require.Zero(s.t, replica.stop(s.t), "a replica that is asked to stop drains and exits with 0")
		s.t.Logf("replica %d stopped in %s", i, time.Since(stopping).Round(time.Millisecond))
		replicas[i] = s.serve()
		goal := ended() + 30
		testkit.Eventually(s.t, func() bool { return ended() >= goal }, 20*time.Second)
	}
	cancel()
	load.Wait()
	rate := float64(len(ids)) / time.Since(begun).Seconds()
	s.over()
	s.requireOnce(ids)
	for _, replica := range replicas {
		require.Zero(s.t, replica.stop(s.t))
	}
	var gap float64
	require.NoError(s.t, s.store.Pool().QueryRow(testkit.Context(s.t), `SELECT max(extract(epoch FROM gap))::float8 FROM (
		SELECT finished_at - lag(finished_at) OVER (ORDER BY finished_at) AS gap FROM execution) gaps`).Scan(&gap))
	s.t.Logf("%d executions, %.0f a second; the longest time between two completions was %.0f ms", len(ids), rate,
		1000*gap)
	return time.Duration(gap * float64(time.Second))
}

// F3: three replicas under a steady load are restarted one after the other. Each restart is in time and without a
// fault, and no execution fails or is lost. The test logs the longest time without a completion, and the benchmark
// below measures it, since it depends on the load of the machine.
// machine does.
func TestARollingRestartIsNotNoticed(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "restart replicas in turn under load")
	require.Less(t, newStage(t).roll(), time.Minute, "the queues stood still")
}

// BenchmarkRollingRestart measures the effect of a rolling restart on executions.
func BenchmarkRollingRestart(b *testing.B) {
	var longest time.Duration
	for b.Loop() {
		longest = max(longest, newStage(b).roll())
	}
	b.ReportMetric(float64(longest.Milliseconds()), "ms-gap")
}
