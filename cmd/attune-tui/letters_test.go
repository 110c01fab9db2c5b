package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/testkit"
)

// TestALetterOfTheBrokerIsRequeuedByKeys: on an installation that has none of our
// tables, with nobody who takes dead letters.
func TestALetterOfTheBrokerIsRequeuedByKeys(t *testing.T) {
	t.Parallel()
	url, broker := testkit.Database(t), testkit.VHost(t)
	st := testkit.OpenStore(t, url)
	testkit.Exec(t, st, `drop table dead_letter, operator_audit cascade`)
	testkit.Exec(t, st, `alter table execution disable trigger user`)
	execution := testkit.Execution(t, st, testkit.Action(t, st, "demo.sleep"))
	testkit.Exec(t, st, `update execution set status = 'failed', result = '{"error": "Worker queue TTL expired"}' where id = $1`, execution.ID)

	conn, err := amqp.Dial(broker)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // may be closed already
	channel, err := conn.Channel()
	require.NoError(t, err)
	require.NoError(t, channel.ExchangeDeclare(message.ExchangeExecutions, "topic", true, false, false, false, nil))
	for _, queue := range []string{message.QueueDeadLetter, message.QueueExecutionRequests} {
		_, err = channel.QueueDeclare(queue, true, false, false, false, nil)
		require.NoError(t, err)
	}
	require.NoError(t, channel.QueueBind(message.QueueExecutionRequests, message.KeyExecutionRequested, message.ExchangeExecutions, false, nil))
	body, err := message.New(message.TypeExecutionRequested, message.Dispatch{
		ExecutionID: execution.ID, WorkerID: 7, ActionRef: "demo.sleep", ScheduledAttemptUpdatedAt: time.Now().Add(-time.Hour),
	}, time.Now(), "test").Encode()
	require.NoError(t, err)
	require.NoError(t, channel.PublishWithContext(t.Context(), "", message.QueueDeadLetter, true, false, amqp.Publishing{MessageId: "m1", Body: body}))

	home := t.TempDir()
	x := openTerminalIn(t, []string{
		"HOME=/nonexistent", "XDG_STATE_HOME=" + home, "ATTUNE__DATABASE__URL=" + url, "ATTUNE__MESSAGE_QUEUE__URL=" + broker,
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + testkit.ManagementURL(t),
	}, "--view", "dlq", "--allow-direct-writes")
	x.shows("no ledger is kept here")
	x.shows(" RW ")
	x.press("S")
	x.shows("[broker 1]")
	x.shows("its hand-over expired")
	x.press("Enter")
	x.shows("MESSAGE SAYS")
	x.press("R")
	x.shows("of the blocked")
	x.press("Enter")
	x.shows("Requeue 1 letter")
	x.press("y")
	x.shows("planned 1, done 1")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from execution where status = 'requested' and retry_reason = 'manual_retry'`))
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from audit_event where action = 'dlq.requeue'`))
	request, ok, err := channel.Get(message.QueueExecutionRequests, true)
	require.NoError(t, err)
	require.True(t, ok)
	require.Contains(t, string(request.Body), fmt.Sprintf(`"execution_id":%d`, execution.ID))
	spools, err := filepath.Glob(filepath.Join(home, "attune", "spool", "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, spools, 1)
}
