package proof

import (
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// flowFaultRun is a flow with two replicas for faults while workflows run.
type flowFaultRun struct {
	*flow

	replicas []*process
}

func newFlowFaultRun(s *stage) *flowFaultRun {
	c := &flowFaultRun{flow: flowOn(s)}
	c.replicas = c.serveTwo()
	c.worker("w1")
	c.worker("w2")
	return c
}

// outlive harms a flow under load until the given damage is done, and checks that all workflows ended as without
// faults.
func (c *flowFaultRun) outlive(pause time.Duration, damage int, harm func() int) {
	c.t.Helper()
	done, next := 0, time.Now()
	c.until(func() bool {
		if done < damage && !time.Now().Before(next) {
			done, next = done+harm(), time.Now().Add(pause)
		}
		return done >= damage
	})
	c.age()
	c.over()
	c.requireFlows()
}

// Workflows run and inquiries are answered while their two replicas get one fault after the other.
//
//nolint:paralleltest,tparallel // one flow, one fault after the other
func TestWorkflowsOutliveFaults(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "play faults in workflows; another test kills replicas at points of them")
	c := newFlowFaultRun(newStage(t))

	// F4.
	t.Run("AnOperatorClosesEveryConnection", func(t *testing.T) {
		c.outlive(400*time.Millisecond, 8, func() int { return c.closeConnections(t) })
	})

	// F9. Every connection to the database, not only those of batches.
	t.Run("EveryConnectionToTheDatabaseIsTerminated", func(*testing.T) {
		c.outlive(150*time.Millisecond, 20, func() int {
			return c.count(`SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name LIKE 'attune-executor%'`)
		})
	})

	// F2. A replica freezes for longer than the broker waits for it, while the other one continues without it, and
	// then continues with what it knew.
	t.Run("AReplicaIsFrozenAndThawed", func(t *testing.T) {
		testkit.NeedsSlow(t, "wait until its unfinished batch is found")
		frozen := c.replicas[0].cmd.Process
		c.outlive(0, 1, func() int {
			require.NoError(t, frozen.Signal(syscall.SIGSTOP))
			return 1
		})
		id := regexp.MustCompile(`"replica":"([0-9a-f]+)"`).FindStringSubmatch(c.replicas[0].log.String())
		require.NotNil(t, id)
		testkit.Eventually(t, func() bool {
			return !slices.ContainsFunc(c.connections(t),
				func(one connection) bool { return strings.Contains(one.Properties.Name, id[1]) })
		}, time.Minute, "the broker gives the frozen one up")
		require.NoError(t, frozen.Signal(syscall.SIGCONT))
		c.outlive(0, 0, nil)
	})

	for _, replica := range c.replicas {
		require.Zero(t, replica.stop(t))
	}
}

// F2, at the worst points: a replica freezes with a workflow locked, or with its decision written and its effects
// outstanding. Another one advances all workflows. When the first one continues, nothing that it still does counts
// twice.
func TestAReplicaThatFreezesInAWorkflowDoesNoHarmLater(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "freeze a replica in a workflow")
	for _, d := range deaths(t) {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			f := newFlow(t)
			f.worker("w1")
			f.worker("w2")
			const impatient = "ATTUNE__MESSAGE_QUEUE__RABBITMQ__HEARTBEAT_SECS=1"
			frozen := f.serve(freezeAt(d.point, d.nth), impatient)
			f.until(func() bool { return frozen.stopped(t) })
			f.age()
			next := f.serve(impatient)
			f.over()
			require.NoError(t, frozen.cmd.Process.Signal(syscall.SIGCONT))
			f.until(func() bool { return true })
			f.over()
			f.requireFlows()
			require.Zero(t, next.stop(t))
			require.Zero(t, frozen.stop(t))
		})
	}
}

// F4: the broker is killed and started again while workflows run and inquiries are open.
func TestWorkflowsOutliveARestartOfTheBroker(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "restart a broker of the test's own")
	stack := testkit.NewStack(t)
	c := newFlowFaultRun(newStageAt(t,
		servers{Database: testkit.Database(t), AMQP: stack.AMQPURL(), Management: stack.ManagementURL()}))
	for range 3 {
		c.until(func() bool { return true })
		require.NoError(t, stack.KillBroker(testkit.Context(t)))
		c.emit(2)
		require.NoError(t, stack.StartBroker(testkit.Context(t)))
	}
	c.age()
	c.over()
	c.requireOutcomes() // the subscriber to published ends also lost its connection
	for _, replica := range c.replicas {
		require.Zero(t, replica.stop(t))
	}
}
