package testkit

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/devstack"
)

// BrokerCluster is a RabbitMQ cluster of three nodes. The test's end removes it.
type BrokerCluster struct {
	// AMQPURL and ManagementURL name all nodes.
	AMQPURL, ManagementURL string

	nodes []*Server
}

// brokerNode is a node before its start.
type brokerNode struct {
	dir, name        string
	amqp, management int
	env              []string
}

// StartBrokerCluster starts three nodes, the second and third of which join the first.
func StartBrokerCluster(t testing.TB) *BrokerCluster {
	t.Helper()
	scripts, _ := filepath.Glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin") // fails only for a malformed pattern
	if len(scripts) == 0 {
		t.Skip("a cluster needs RabbitMQ in /usr/lib/rabbitmq")
	}
	sbin := slices.Max(scripts)
	epmd, err := exec.LookPath("epmd")
	require.NoError(t, err)
	base, err := os.MkdirTemp("", "attune-cluster-*")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	mapper := FreePort(t)
	StartServer(t, exec.Command(epmd, "-port", fmt.Sprint(mapper), "-address", "127.0.0.1"))

	c := &BrokerCluster{}
	var nodes []brokerNode
	var hosts, managements []string
	for i := range 3 {
		n := newBrokerNode(t, filepath.Join(base, fmt.Sprint(i)), fmt.Sprintf("n%d@localhost", i), mapper)
		nodes = append(nodes, n)
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", n.amqp))
		managements = append(managements, fmt.Sprintf("127.0.0.1:%d", n.management))
		cmd := exec.Command(filepath.Join(sbin, "rabbitmq-server"))
		cmd.Env, cmd.Dir = n.env, n.dir
		c.nodes = append(c.nodes, StartServer(t, cmd))
	}
	c.AMQPURL = "amqp://guest:guest@" + strings.Join(hosts, ",") + "/%2f"
	c.ManagementURL = "http://guest:guest@" + strings.Join(managements, ",")
	control := func(n brokerNode, args ...string) {
		cmd := exec.CommandContext(Context(t), filepath.Join(sbin, "rabbitmqctl"), args...)
		cmd.Env, cmd.Dir = n.env, n.dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "rabbitmqctl %v: %s", args, out)
	}
	for _, n := range nodes {
		Eventually(t, func() bool {
			return manage(Context(t), fmt.Sprintf("http://guest:guest@127.0.0.1:%d", n.management), http.MethodGet,
				"/api/overview", nil, nil) == nil
		}, 60*time.Second, "%s answers", n.name)
	}
	for _, n := range nodes[1:] {
		control(n, "stop_app")
		control(n, "join_cluster", nodes[0].name)
		control(n, "start_app")
	}
	return c
}

// Kill ends a node as a crash does.
func (c *BrokerCluster) Kill(node int) { c.nodes[node].Stop(syscall.SIGKILL) }

func newBrokerNode(t testing.TB, dir, name string, mapper int) brokerNode {
	t.Helper()
	n := brokerNode{dir: dir, name: name, amqp: FreePort(t), management: FreePort(t)}
	config := fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d\nmanagement.tcp.ip = 127.0.0.1\nmanagement.tcp.port = %d\n"+
		"disk_free_limit.absolute = 50MB\nvm_memory_high_watermark.absolute = 500MB\ncollect_statistics_interval = 500\n",
		n.amqp, n.management)
	require.NoError(t, devstack.WriteBroker(dir, "cluster", config))
	n.env = append([]string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"},
		devstack.BrokerEnv(dir, name, FreePort(t), mapper)...)
	return n
}
