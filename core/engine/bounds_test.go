package engine_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// An execution whose dispatch its worker cannot read releases its slot at once. So does one whose parameters are
// nested too deeply.
func TestUnreadableDispatchesHoldNoSlot(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "deep.one", func(a *testkit.ActionRow) { a.Entrypoint = "core.echo" })
	testkit.Policy(t, b.store, action, 1)
	worker := b.withoutConsumer(t, "w1", 5*time.Minute)
	b.engine(t)

	unread := b.request(t, "deep.one", 1, `{"message":"a"}`)[0]
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, unread) == lifecycle.StatusScheduled },
		10*time.Second)
	wire := b.connect(t, "forger")
	testkit.Eventually(t, func() bool {
		purged, err := wire.PurgeQueue(testkit.Context(t), message.WorkerExecutionsQueue(worker))
		return err == nil && purged == 1
	}, 10*time.Second)
	id := func(n int64) string { return strconv.FormatInt(n, 10) }
	body := `{"message_type":"ExecutionRequested","payload":{"execution_id":` + id(unread) + `,"worker_id":` +
		id(worker) +
		`,"action_ref":"deep.one","config":` + strings.Repeat("[", 6000) + strings.Repeat("]", 6000) +
		`,"attempt":1},"timestamp":"2026-01-01T00:00:00Z"}`
	outcome := wire.Publisher().Publish(testkit.Context(t), []broker.Message{{
		ID: uuid.NewString(), Exchange: message.ExchangeExecutions, RoutingKey: message.DispatchKey(worker),
		Type: message.TypeExecutionRequested, Body: []byte(body),
	}})
	require.Equal(t, broker.Confirmed, outcome[0].Status, "%v", outcome[0].Err)
	deep := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) {
		e.Config = map[string]any{}
	})
	testkit.Exec(t, b.store,
		`UPDATE execution SET config = (repeat('{"a":', 201) || '1' || repeat('}', 201))::jsonb WHERE id = $1`, deep.ID)
	wire.Publisher().Publish(testkit.Context(t), []broker.Message{requestMessage(t, deep.ID, "deep")})
	after := b.request(t, "deep.one", 1, `{"message":"b"}`)[0]

	b.worker(t, "w1", 4)
	b.settled(t, 20*time.Second)
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, after))
	const failed = `SELECT count(*) FROM execution WHERE id = $1 AND status = 'failed' AND result->>'error' = $2 AND result->>'message' LIKE $3`
	require.Equal(t, 1, testkit.Count(t, b.store, failed, unread, "Dispatch cannot be read", "%nested too deeply%"))
	require.Equal(t, 1, testkit.Count(t, b.store, failed, deep.ID, "parameters cannot be read",
		"parameters.a.a.a%: nested 201 levels deep; at most 200"))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter WHERE decision IS NULL`),
		"no dead letter waits for an operator")
}
