package proof

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// A node of a broker cluster is killed under load, the one to which all programs are connected. The queues have
// copies on the other nodes, all programs continue there, and every execution runs once.
func TestANodeOfTheBrokerClusterDies(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "kill a node of a broker cluster under load")
	cluster := testkit.StartBrokerCluster(t)
	s := newStageAt(t, servers{
		Database: testkit.Database(t), AMQP: cluster.AMQPURL, Management: cluster.ManagementURL,
		QueueType: "quorum",
	})
	s.runLog.longest = 100 * time.Millisecond
	s.worker("w1")
	s.worker("w2")
	s.serveTwo()
	killed := 0
	ids := s.load(func() bool {
		if killed == 0 {
			cluster.Kill(0)
		}
		killed++
		return killed > 50
	})
	s.over()
	require.Equal(t, len(ids), s.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = 'completed'`, ids),
		"%s", s.others(ids))
	s.requireStarted(ids)
	s.requireRetried()
	require.Zero(t, s.count(`SELECT count(*) FROM dead_letter`))
	s.serve() // although the queues still count the consumers of the dead node
}

// Installations on one broker need a virtual host each: their queues have the same names. An engine refuses to start
// where an engine of another database consumes.
func TestTwoInstallationsNeedTwoVirtualHosts(t *testing.T) {
	s := newStage(t)
	s.serve()
	other := *s
	other.Database = testkit.Database(t)
	refused := other.run("serve", "ATTUNE__EXECUTOR__HTTP__LISTEN=")
	testkit.Eventually(t, refused.ended, 30*time.Second)
	require.NotZero(t, refused.cmd.ProcessState.ExitCode())
	require.Contains(t, refused.log.String(), "another executor")
	other.AMQP = testkit.VHost(t)
	other.serve()
}
