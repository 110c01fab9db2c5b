package proof

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// victim is a worker under faults. It returns after each of them.
type victim struct {
	name   string
	worker *process
	until  time.Time // the end of the freeze or the absence
}

// mishap kills, freezes or stops a worker, for up to twice the age at which a heartbeat is stale.
func (s *stage) mishap(v *victim, rng *rand.Rand) string {
	now := time.Now()
	switch {
	case v.until.After(now):
		return ""
	case v.worker == nil || v.worker.ended():
		v.worker, v.until = s.run("worker", "ATTUNE__WORKER__NAME="+v.name, "ATTUNE__WORKER__HEARTBEAT_INTERVAL=200ms",
			"ATTUNE__WORKER__MAX_CONCURRENT_TASKS=4", "ATTUNE__MESSAGE_QUEUE__RABBITMQ__RECONNECT_DELAY_SECS=1"),
			time.Time{}
		return "started"
	case !v.until.IsZero():
		v.until = time.Time{}
		require.NoError(s.t, v.worker.cmd.Process.Signal(syscall.SIGCONT))
		return "continues"
	}
	away := now.Add(time.Duration(rng.Int64N(int64(2 * staleness))))
	switch rng.IntN(6) {
	case 0, 1:
		v.worker.kill()
		v.until = away
		return "killed"
	case 2:
		require.NoError(s.t, v.worker.cmd.Process.Signal(syscall.SIGTERM))
		return "asked to stop"
	case 3:
		v.until = away
		require.NoError(s.t, v.worker.cmd.Process.Signal(syscall.SIGSTOP))
		return "freezes"
	default:
		return ""
	}
}

// Three replicas run all loops while workers are killed, stopped and frozen at random, connections are cut, and
// one worker accepts work without starting it. In the end everything ran once, each execution ended once, one
// replica decided each loss, and nothing is left (S1, S2, S8, S9, S19, S20; L2, L3, L4, L5).
func TestThreeReplicasAgreeWhileWorkersFall(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "let workers fall at random; other tests play each kind of fall")
	seed, lasts := rand.Uint64(), 20*time.Second
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := newStage(t)
	starts := s.scriptFor(`0.$((ATTUNE_EXEC_ID % 8))`)
	testkit.Exec(t, s.store, `UPDATE action SET max_retries = 30 WHERE ref = $1`, actScript)
	h := newCluster(s)
	idler := testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: s.AMQP, DatabaseURL: s.Database, HeartbeatInterval: 200 * time.Millisecond,
		Concurrency: 3, Prefetch: 2, QueueTTL: 1500 * time.Millisecond, Gate: make(chan struct{}),
	})
	var victims []*victim
	for i := range 4 {
		victims = append(victims, &victim{name: fmt.Sprintf("w-victim-%d", i)})
	}
	did := map[string]int{}
	var ids []int64
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(60 * time.Millisecond) {
		ids = append(ids, s.request(actScript, 3)...)
		did[s.mishap(victims[rng.IntN(len(victims))], rng)]++
		if rng.IntN(25) == 0 {
			did["cut"] += s.closeConnections(t)
		}
	}
	delete(did, "")
	t.Logf("%d executions; workers and connections: %v", len(ids), did)
	idler.Kill()
	for _, v := range victims {
		if v.worker != nil && !v.worker.ended() {
			require.NoError(t, v.worker.cmd.Process.Signal(syscall.SIGCONT))
		}
	}
	s.process("w-rescue")
	falling := time.Now()
	s.over()
	t.Logf("all is over after %s", time.Since(falling).Round(time.Millisecond))
	s.requireDoneOnce(ids, starts())
	require.Zero(t, s.count(`SELECT count(*) FROM (
		SELECT FROM execution_history h WHERE operation = 'UPDATE'
			AND new_values->>'status' IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
			AND old_values->>'status' IS DISTINCT FROM new_values->>'status'
		GROUP BY h.entity_id HAVING count(*) <> 1) twice`), "S8: each execution ended once")
	t.Logf("lost and decided: %s", s.summary(`SELECT cause || ' ' || outcome AS what FROM lost_work`))
	t.Logf("dead letters: %s", s.summary(`SELECT reason || ' ' || decision AS what FROM dead_letter`))
	h.close()
}

// summary describes the counts that a query returns.
func (s *stage) summary(query string) (text string) {
	s.t.Helper()
	require.NoError(s.t, s.store.Pool().QueryRow(testkit.Context(s.t),
		`SELECT coalesce(string_agg(format('%s %s', n, what), ', '), 'none') FROM (SELECT what, count(*) AS n FROM (`+query+`) q GROUP BY what ORDER BY 2 DESC) c`).Scan(&text))
	return text
}
