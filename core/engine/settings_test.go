package engine_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// The keys of message_queue.rabbitmq reach the connections and the topology.
func TestTheBrokerIsUsedAsConfigured(t *testing.T) {
	s := servers{Database: testkit.Database(t), AMQP: testkit.VHost(t), Management: testkit.ManagementURL(t)}
	own := s.config()
	cfg, err := config.Load("", []string{"ATTUNE__SERVICE_NAME=billing", "ATTUNE__ENVIRONMENT=lab"})
	require.NoError(t, err)
	cfg.Database, cfg.MessageQueue, cfg.Executor = own.Database, own.MessageQueue, own.Executor
	cfg.MessageQueue.RabbitMQ.Heartbeat = 7 * time.Second
	startEngine(t, cfg)

	type connection struct {
		Heartbeat  int `json:"timeout"`
		Properties struct {
			Name        string `json:"connection_name"`
			Service     string `json:"service_name"`
			Environment string `json:"environment"`
		} `json:"client_properties"`
	}
	var ours []connection
	testkit.Eventually(t, func() bool {
		var all []connection
		testkit.Manage(t, http.MethodGet, "/api/vhosts/"+testkit.VHostName(t, s.AMQP)+"/connections", nil, &all)
		ours = ours[:0]
		for _, c := range all {
			if strings.HasPrefix(c.Properties.Name, "attune-executor") && c.Heartbeat > 0 {
				ours = append(ours, c)
			}
		}
		return len(ours) == 2
	}, 15*time.Second, "the broker lists the engine's two connections")
	for _, c := range ours {
		require.Equal(t, 7, c.Heartbeat)
		require.Equal(t, []string{"billing", "lab"}, []string{c.Properties.Service, c.Properties.Environment})
	}
	require.Positive(t, testkit.Count(t, testkit.OpenStore(t, s.Database), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'billing attune-executor'`))

	b := &bundle{servers: s}
	wire := b.connect(t, "look")
	state, err := wire.QueueState(testkit.Context(t), message.QueueExecutionRequests)
	require.NoError(t, err)
	require.True(t, state.Exists)
	for _, probe := range wire.ProbeDeadLetters(testkit.Context(t), message.DeadLetterKeys()) {
		require.NoError(t, probe.Err)
		require.True(t, probe.Routed, probe.Key)
	}
}

// Without a broker a replica starts, and says that it is not ready.
func TestAReplicaStartsWithoutABroker(t *testing.T) {
	t.Parallel()
	s := servers{
		Database: testkit.Database(t), AMQP: "amqp://wrong:wrong@127.0.0.1:1/none",
		Management: testkit.ManagementURL(t),
	}
	e := startEngine(t, s.config())
	found := false
	for _, check := range e.Ready(testkit.Context(t)) {
		if check.Name == "broker" {
			found = true
			require.False(t, check.OK)
		}
	}
	require.True(t, found)
}

func startEngine(t *testing.T, cfg *config.Config) *engine.Engine {
	t.Helper()
	e, err := engine.New(testkit.Context(t), cfg, engine.Deps{Logger: testkit.Logger(t), Version: "test"})
	require.NoError(t, err)
	require.NoError(t, e.Start(testkit.Context(t)))
	t.Cleanup(func() { require.NoError(t, e.Stop(context.Background())) })
	return e
}
