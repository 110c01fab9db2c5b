package proof

import (
	"maps"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/testkit"
)

// F4: the broker is killed and started again in the middle of all five scenarios at
// once: a worker has been killed at its work, two have taken work and begin none of
// it, there is no worker at all, and one is leaving. What follows is as if nothing
// had happened to the broker: all is done once, for each loss there is one decision,
// the worker that leaves is not taken for dead, and nothing is left (L2–L5, S2, S8,
// S9, S14, S20).
func TestTheBrokerRestartsInTheMiddleOfTheScenarios(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "restart a broker of the test's own")
	stack := testkit.NewStack(t)
	h := newCluster(newStageAt(t,
		servers{Database: testkit.Database(t), AMQP: stack.AMQPURL(), Management: stack.ManagementURL()}))
	stops, fenced, down, expires, leaves := h.scenario(t, "stops"), h.scenario(t, "fenced"), h.scenario(t,
		"down"), h.scenario(t,
		"expires"), h.scenario(t, "leaves")
	dyingReplica, leaver := stops.startWorkerProcess("doomed"), leaves.startWorkerProcess("leaver",
		"ATTUNE__WORKER__SHUTDOWN_TIMEOUT=60s")
	holder := fenced.fake(true, testkit.FakeWorkerConfig{Gate: make(chan struct{})})
	existing := expires.fake(false,
		testkit.FakeWorkerConfig{Gate: make(chan struct{}), Prefetch: 1, QueueTTL: 1500 * time.Millisecond})
	down.startWorker("gone").Stop()
	var ids []int64
	request := func(c *scenario, n int) []int64 {
		requested := c.request(c.action("act", retries(10)).Ref, n)
		ids = append(ids, requested...)
		return requested
	}
	lost, kept, waiting, died, going := request(stops, 2), request(fenced, 2), request(down, 2), request(expires,
		3), request(leaves, 2)
	stops.begun(lost...)
	leaves.begun(going...)
	fenced.await(func() bool {
		return h.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status <> 'requested'`,
			append(kept, died...)) == len(kept)+len(died)
	}, "the others are dispatched")
	require.NoError(t, leaver.cmd.Process.Signal(syscall.SIGTERM))
	dyingReplica.kill()

	require.NoError(t, stack.KillBroker(testkit.Context(t)))
	require.NoError(t, stack.StartBroker(testkit.Context(t)))
	for _, c := range []*scenario{stops, fenced, down, expires} {
		c.startWorker("rescue")
		c.open()
	}
	down.reach(attune.StatusCompleted, waiting...)
	require.Equal(t, 2, h.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'running'`, going),
		"L4: a leaving worker is not presumed dead")
	leaves.open()
	leaves.await(leaver.ended, "it ends when its work has ended")
	require.Zero(t, leaver.cmd.ProcessState.ExitCode())
	holder.Kill()
	existing.Kill()

	h.over()
	starts := map[int64]int{}
	for _, c := range []*scenario{stops, fenced, down, expires, leaves} {
		maps.Copy(starts, c.allStarts())
	}
	h.requireDoneOnce(ids, starts)
	for _, id := range going {
		require.Equal(t, "completed 1", leaves.attempts(id))
	}
	for _, id := range lost {
		require.Equal(t, "worker_gone abandoned", stops.lost(id))
	}
	require.Empty(t, append(holder.Runs(), existing.Runs()...))
	t.Logf("lost and decided: %s", h.summary(`SELECT cause || ' ' || outcome AS what FROM lost_work`))
	t.Logf("dead letters: %s", h.summary(`SELECT reason || ' ' || decision AS what FROM dead_letter`))
	h.close()
}
