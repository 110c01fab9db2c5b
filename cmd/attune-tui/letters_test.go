package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/tui/keymap"
)

// stranger is an installation that has none of our tables, with nobody who takes dead
// letters.
type stranger struct {
	t                 *testing.T
	database, address string
	store             *store.Store
	channel           *amqp.Channel
	home              string
}

func estrange(t *testing.T) *stranger {
	t.Helper()
	s := &stranger{t: t, database: testkit.Database(t), address: testkit.VHost(t), home: t.TempDir()}
	s.store = testkit.OpenStore(t, s.database)
	testkit.Exec(t, s.store, `drop table dead_letter, operator_audit cascade`)
	testkit.Exec(t, s.store, `alter table execution disable trigger user`)
	conn, err := amqp.Dial(s.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // may be closed already
	s.channel, err = conn.Channel()
	require.NoError(t, err)
	require.NoError(t, s.channel.ExchangeDeclare(message.ExchangeExecutions, "topic", true, false, false, false, nil))
	for _, queue := range []string{message.QueueDeadLetter, message.QueueExecutionRequests, "parked"} {
		_, err = s.channel.QueueDeclare(queue, true, false, false, false, nil)
		require.NoError(t, err)
	}
	require.NoError(t, s.channel.QueueBind(message.QueueExecutionRequests, message.KeyExecutionRequested, message.ExchangeExecutions, false, nil))
	return s
}

// dies makes an execution whose hand-over expired.
func (s *stranger) dies(ref string) (execution int64) {
	s.t.Helper()
	e := testkit.Execution(s.t, s.store, testkit.Action(s.t, s.store, ref))
	testkit.Exec(s.t, s.store, `update execution set status = 'failed', result = '{"error": "Worker queue TTL expired"}' where id = $1`, e.ID)
	body, err := message.New(message.TypeExecutionRequested, message.Dispatch{
		ExecutionID: e.ID, WorkerID: 7, ActionRef: ref, ScheduledAttemptUpdatedAt: time.Now().Add(-time.Hour),
	}, time.Now(), "test").Encode()
	require.NoError(s.t, err)
	require.NoError(s.t, s.channel.PublishWithContext(s.t.Context(), "", message.QueueDeadLetter, true, false, amqp.Publishing{MessageId: ref, Body: body}))
	return e.ID
}

// holds waits until a queue has as many messages.
func (s *stranger) holds(queue string, n int) {
	s.t.Helper()
	testkit.Eventually(s.t, func() bool {
		q, err := s.channel.QueueDeclarePassive(queue, true, false, false, false, nil)
		require.NoError(s.t, err)
		return q.Messages == n
	}, wait, "%s holds %d messages", queue, n)
}

// open shows the dead letters to somebody who may act on them.
func (s *stranger) open() *terminal {
	s.t.Helper()
	return s.openOver(s.address)
}

// openOver is open with an address that leads to the broker.
func (s *stranger) openOver(address string) *terminal {
	s.t.Helper()
	return openTerminalIn(s.t, []string{
		"HOME=/nonexistent", "XDG_STATE_HOME=" + s.home, "ATTUNE__DATABASE__URL=" + s.database, "ATTUNE__MESSAGE_QUEUE__URL=" + address,
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + testkit.ManagementURL(s.t),
	}, "--view", "dlq", "--allow-direct-writes")
}

func (s *stranger) spools() []string {
	s.t.Helper()
	spools, err := filepath.Glob(filepath.Join(s.home, "attune", "spool", "*.jsonl"))
	require.NoError(s.t, err)
	return spools
}

func TestALetterOfTheBrokerIsRequeuedByKeys(t *testing.T) {
	t.Parallel()
	s := estrange(t)
	execution := s.dies("demo.sleep")
	x := s.open()
	x.shows("no ledger is kept here")
	x.shows(" RW ")
	x.press("S")
	x.shows("[broker 1]")
	x.shows("its hand-over expired")
	x.press("Enter")
	x.shows("MESSAGE SAYS")
	x.asks(keymap.Requeue, "requeue ")
	x.shows("of the blocked")
	x.press("Enter")
	x.shows("Requeue 1 letter")
	x.shows(runButton)
	x.press("y")
	x.shows("planned 1, done 1")
	require.Equal(t, 1, testkit.Count(t, s.store, `select count(*) from execution where status = 'requested' and retry_reason = 'manual_retry'`))
	require.Equal(t, 1, testkit.Count(t, s.store, `select count(*) from audit_event where event_type = 'dlq.requeue'`))
	request, ok, err := s.channel.Get(message.QueueExecutionRequests, true)
	require.NoError(t, err)
	require.True(t, ok)
	require.Contains(t, string(request.Body), fmt.Sprintf(`"execution_id":%d`, execution))
	require.Len(t, s.spools(), 1)
}

// TestLettersOfTheBrokerAreTakenAwayAndPutBackByKeys looks after every act at the
// queues themselves: one letter is discarded and put back, one is moved, and what is
// left is purged.
func TestLettersOfTheBrokerAreTakenAwayAndPutBackByKeys(t *testing.T) {
	t.Parallel()
	s := estrange(t)
	for _, ref := range []string{"demo.a", "demo.b", "demo.c"} {
		s.dies(ref)
	}
	s.holds(message.QueueDeadLetter, 3)
	x := s.open()
	x.shows("no ledger is kept here")
	x.shows(" RW ")
	x.press("S")
	x.shows("[broker 3]")
	x.shows("demo.c")
	s.holds(message.QueueDeadLetter, 3) // looking takes nothing
	x.command("spool")
	x.shows("Copies are kept of what is removed")
	x.shows(filepath.Join("attune", "spool"))
	x.press("Escape")
	x.hides("Copies are kept of what is removed")

	x.asks(keymap.Discard, "Discard 1 letter")
	x.runs("Discard 1 letter")
	s.holds(message.QueueDeadLetter, 2)
	require.Len(t, s.spools(), 1)
	x.asks(keymap.Undo, "Put back 1 letter")
	x.runs("Put back 1 letter")
	s.holds(message.QueueDeadLetter, 3)

	x.press("S")
	x.shows("3 letters read")
	x.press("Escape")
	x.hides("3 letters read")
	x.asks(keymap.MoveTo, "move ")
	x.shows("key or queue")
	x.press("Enter")
	x.call("send-keys", "-l", "parked")
	x.press("Enter")
	x.shows("─ Move 1 letter")
	x.runs("Move 1 letter")
	s.holds("parked", 1)
	s.holds(message.QueueDeadLetter, 2)

	x.press("S")
	x.shows("2 letters read")
	x.press("Escape")
	x.hides("2 letters read")
	x.asks(keymap.Purge, "purge ")
	x.shows("by the broker")
	x.press("Enter")
	x.shows("─ Purge 2 letters")
	x.runs("Purge 2 letters")
	s.holds(message.QueueDeadLetter, 0)
	s.holds("parked", 1)
	require.Zero(t, testkit.Count(t, s.store, `select count(*) from execution where status <> 'failed'`), "no row was touched")
	require.Len(t, s.spools(), 3, "of what was discarded, moved and purged there are copies")
}
