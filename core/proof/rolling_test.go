package proof

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/testkit"
)

// steady requests three executions every 40 ms, 75 a second, until the context
// ends.
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

// F3: three replicas under a steady load are restarted one after the other.
// None of them takes longer than it may or ends with a fault, and no execution
// fails or is lost. The longest time in which nothing completed is logged: how
// long it is depends on what else the machine does.
func TestARollingRestartIsNotNoticed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.worker("w1")
	s.worker("w2")
	var replicas []*process
	for range 3 {
		replicas = append(replicas, s.serve())
	}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	var ids []int64
	var load sync.WaitGroup
	begun := time.Now()
	load.Go(func() { ids = s.steady(ctx) })
	ended := func(n int) func() bool {
		return func() bool { return s.count(`SELECT count(*) FROM execution WHERE finished_status IS NOT NULL`) >= n }
	}
	testkit.Eventually(t, ended(30), 20*time.Second, "the load is under way")
	for i, replica := range replicas {
		stopping := time.Now()
		require.Zero(t, replica.stop(t), "a replica that is asked to stop drains and exits with 0")
		t.Logf("replica %d stopped in %s", i, time.Since(stopping).Round(time.Millisecond))
		replicas[i] = s.serve()
		testkit.Eventually(t, ended(s.count(`SELECT count(*) FROM execution WHERE finished_status IS NOT NULL`)+30), 20*time.Second)
	}
	cancel()
	load.Wait()
	rate := float64(len(ids)) / time.Since(begun).Seconds()
	s.over()
	s.requireOnce(ids)
	var gap float64
	require.NoError(t, s.store.Pool().QueryRow(testkit.Context(t), `SELECT max(extract(epoch FROM gap))::float8 FROM (
		SELECT finished_at - lag(finished_at) OVER (ORDER BY finished_at) AS gap FROM execution) gaps`).Scan(&gap))
	t.Logf("%d executions, %.0f a second; the longest time between two completions was %.0f ms", len(ids), rate, 1000*gap)
	require.Less(t, gap, 15.0, "the queues stood still")
	for _, replica := range replicas {
		require.Zero(t, replica.stop(t))
	}
}
