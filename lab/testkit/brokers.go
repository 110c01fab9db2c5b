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
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, sub := range []string{"", "conf.d", "generated"} {
		require.NoError(t, os.MkdirAll(file(sub), 0o700))
	}
	for name, text := range map[string]string{
		".erlang.cookie": "cluster", "rabbitmq-env.conf": "", "advanced.config": "[].\n",
		"enabled_plugins": "[rabbitmq_management].\n",
		"rabbitmq.conf": fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d\nmanagement.tcp.ip = 127.0.0.1\n"+
			"management.tcp.port = %d\ndisk_free_limit.absolute = 50MB\nvm_memory_high_watermark.absolute = 500MB\n"+
			"collect_statistics_interval = 500\n", n.amqp, n.management),
	} {
		require.NoError(t, os.WriteFile(file(name), []byte(text), 0o400))
	}
	n.env = []string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + dir, "RABBITMQ_NODENAME=" + name,
		"RABBITMQ_MNESIA_BASE=" + file("mnesia"), "RABBITMQ_LOG_BASE=" + file("log"),
		"RABBITMQ_CONFIG_FILE=" + file("rabbitmq.conf"), "RABBITMQ_CONFIG_FILES=" + file("conf.d"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + file("advanced.config"),
		"RABBITMQ_CONF_ENV_FILE=" + file("rabbitmq-env.conf"),
		"RABBITMQ_GENERATED_CONFIG_DIR=" + file("generated"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + file("enabled_plugins"), "RABBITMQ_PID_FILE=" + file("pid"),
		fmt.Sprintf("RABBITMQ_DIST_PORT=%d", FreePort(t)), fmt.Sprintf("ERL_EPMD_PORT=%d", mapper),
		"ERL_EPMD_ADDRESS=127.0.0.1", "RUNNING_UNDER_SYSTEMD=true", // so that the script becomes the broker
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
	}
	return n
}
