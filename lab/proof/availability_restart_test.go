package proof

import (
	"maps"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// F4: the broker is killed and started again in the middle of all five scenarios: a worker was killed, two have
// unstarted executions, one action has no worker, and one worker is leaving. Everything runs once, one replica
// decides each loss, the leaving worker is not presumed dead, and nothing is left (L2–L5, S2, S8, S9, S14, S20).
func TestTheBrokerRestartsInTheMiddleOfTheScenarios(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "restart a broker of the test's own")
	stack := testkit.NewStack(t)
	h := newCluster(newStageAt(t,
		servers{Database: testkit.Database(t), AMQP: stack.AMQPURL(), Management: stack.ManagementURL()}))
	stops, fenced, down, expires, leaves := h.scenario(t, "stops"), h.scenario(t, "fenced"), h.scenario(t,
		"down"), h.scenario(t,
		"expires"), h.scenario(t, "leaves")
	doomed, leaver := stops.startWorkerProcess("doomed"), leaves.startWorkerProcess("leaver",
		"ATTUNE__WORKER__SHUTDOWN_TIMEOUT=60s")
	holder := fenced.fake(true, testkit.FakeWorkerConfig{Gate: make(chan struct{})})
	existing := expires.fake(false,
		testkit.FakeWorkerConfig{Gate: make(chan struct{}), Prefetch: 1, QueueTTL: 1500 * time.Millisecond})
	down.startWorker("gone").Stop()
	var ids []int64
	request := func(c *scenario, n int, options ...func(*testkit.ActionRow)) []int64 {
		requested := c.request(c.action("act", append(options, retries(10))...).Ref, n)
		ids = append(ids, requested...)
		return requested
	}
	lost, going, waiting := request(stops, 2), request(leaves, 2), request(down, 2)
	kept, died := request(fenced, 2, hurried), request(expires, 3, hurried)
	stops.begun(lost...)
	leaves.begun(going...)
	fenced.await(func() bool {
		return h.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status <> 'requested'`,
			append(kept, died...)) == len(kept)+len(died)
	}, "the others are dispatched")
	require.NoError(t, leaver.cmd.Process.Signal(syscall.SIGTERM))
	doomed.kill()

	require.NoError(t, stack.KillBroker(testkit.Context(t)))
	require.NoError(t, stack.StartBroker(testkit.Context(t)))
	for _, c := range []*scenario{stops, fenced, down, expires} {
		c.startWorker("rescue")
		c.open()
	}
	down.reach(lifecycle.StatusCompleted, waiting...)
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
