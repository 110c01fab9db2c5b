package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// door makes a trigger with n rules that echo a text of the event.
func (b *bundle) door(t *testing.T, rules int) {
	t.Helper()
	pack := testkit.Pack(t, b.store, "demo")
	testkit.Exec(t, b.store, `insert into trigger (ref, label) values ('demo.door', 'x')`)
	for i := range rules {
		testkit.Exec(t, b.store, `insert into rule (ref, pack, pack_ref, label, action, action_ref, trigger, trigger_ref, action_params, enabled)
			select $1, $2, 'demo', 'x', a.id, a.ref, t.id, t.ref, '{"message":"{{ event.payload.who }}"}', true
			from action a, trigger t where a.ref = 'core.echo' and t.ref = 'demo.door'`, fmt.Sprintf("demo.rule%d", i), pack.ID)
	}
}

func (b *bundle) emit(t *testing.T, n int) []int64 {
	t.Helper()
	events := make([]submit.Event, n)
	for i := range events {
		events[i] = submit.Event{TriggerRef: "demo.door", Payload: json.RawMessage(fmt.Sprintf(`{"who":"%d"}`, i))}
	}
	list, err := submit.New(b.store, b.relay).EmitEvents(testkit.Context(t), events)
	require.NoError(t, err)
	ids := make([]int64, n)
	for i, e := range list {
		ids[i] = e.ID
	}
	return ids
}

// enforced waits until n enforcements are processed and everything has settled.
func (b *bundle) enforced(t *testing.T, n int, timeout time.Duration) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM enforcement WHERE status = 'processed'`) == n
	}, timeout, "%d enforcements are processed", n)
	b.settled(t, timeout)
	require.Equal(t, n,
		testkit.Count(t, b.store, `SELECT count(DISTINCT enforcement) FROM execution WHERE status = 'completed'`))
	require.Equal(t, n, testkit.Count(t, b.store, `SELECT count(*) FROM execution`))
}

func TestAnEventRunsTheActionsOfItsRules(t *testing.T) {
	b := setup(t)
	b.door(t, 2)
	b.engine(t)
	b.worker(t, "w1", 5)
	b.emit(t, 3)
	b.enforced(t, 6, 20*time.Second)
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE config = '{"message":"1"}'`))
}

// created asks for something to be matched or enforced by message alone.
func created(t *testing.T, exchange, key, kind string, payload any) broker.Message {
	t.Helper()
	body, err := message.New(kind, payload, time.Now(), "test").Encode()
	require.NoError(t, err)
	return broker.Message{
		ID: fmt.Sprintf("%s-%d", kind, time.Now().UnixNano()), Exchange: exchange, RoutingKey: key,
		Type: kind, Body: body,
	}
}

// S10, S13: two replicas get every message of events and enforcements twice more and
// in the wrong order, also after all is done: nothing happens twice.
func TestEventsThatAreDeliveredAgainRunNothingTwice(t *testing.T) {
	b := setup(t)
	b.door(t, 2)
	wire := b.connect(t, "again")
	b.engine(t)
	b.engine(t)
	b.worker(t, "w1", 20)
	const events = 20
	ids := b.emit(t, events)
	again := func() {
		var messages []broker.Message
		for i := range ids {
			id := ids[len(ids)-1-i]
			one := created(t, message.ExchangeEvents, message.KeyEventCreated, message.TypeEventCreated,
				message.EventCreated{EventID: id, TriggerRef: "demo.door"})
			messages = append(messages, one, one)
		}
		rows, err := b.store.CreatedEnforcements(testkit.Context(t), ids)
		require.NoError(t, err)
		for _, row := range rows {
			one := created(t, message.ExchangeExecutions, message.KeyEnforcementCreated, message.TypeEnforcementCreated,
				message.EnforcementCreated{EnforcementID: row.ID, RuleRef: row.RuleRef, TriggerRef: row.TriggerRef})
			messages = append(messages, one, one)
		}
		for _, outcome := range wire.Publisher().Publish(testkit.Context(t), messages) {
			require.NoError(t, outcome.Err)
		}
	}
	again()
	testkit.Eventually(t, func() bool { return testkit.Count(t, b.store, `SELECT count(*) FROM enforcement`) > 0 },
		10*time.Second)
	again()
	b.enforced(t, 2*events, 30*time.Second)
	// as if one had died before it said so
	testkit.Exec(t, b.store, `UPDATE enforcement SET status = 'created' WHERE id % 3 = 0`)
	again()
	b.enforced(t, 2*events, 30*time.Second)
}

// Poison and messages without a row become dead letters with the reason, and delay no other
// message.
func TestMessagesOfEventsThatCannotBeServedBecomeDeadLetters(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "dead-letter messages of events; other tests have those of executions")
	b := setup(t)
	b.door(t, 1)
	wire := b.connect(t, "poison")
	b.engine(t)
	b.worker(t, "w1", 5)
	deleted := testkit.Count(t, b.store, `INSERT INTO event (trigger_ref) VALUES ('demo.door') RETURNING id`)
	testkit.Exec(t, b.store, `DELETE FROM event WHERE id = $1`, deleted)
	poison := []broker.Message{
		{
			ID: "p1", Exchange: message.ExchangeEvents, RoutingKey: message.KeyEventCreated, Type: "x",
			Body: []byte(`not JSON`),
		},
		{
			ID: "p2", Exchange: message.ExchangeExecutions, RoutingKey: message.KeyEnforcementCreated, Type: "x",
			Body: []byte(`{"message_type":"EnforcementCreated","timestamp":"2026-01-01T00:00:00Z","payload":{}}`),
		},
		created(t, message.ExchangeEvents, message.KeyEventCreated, message.TypeEventCreated,
			message.EventCreated{EventID: 1 << 40, TriggerRef: "demo.door"}),
		created(t, message.ExchangeExecutions, message.KeyEnforcementCreated, message.TypeEnforcementCreated,
			message.EnforcementCreated{EnforcementID: 1 << 40, RuleRef: "demo.rule0", TriggerRef: "demo.door"}),
	}
	poison[2].ID, poison[3].ID = "ghost event", "ghost enforcement"
	late := created(t, message.ExchangeEvents, message.KeyEventCreated, message.TypeEventCreated,
		message.EventCreated{EventID: int64(deleted), TriggerRef: "demo.door"})
	late.ID = "deleted event"
	poison = append([]broker.Message{late}, poison...)
	for _, outcome := range wire.Publisher().Publish(testkit.Context(t), poison) {
		require.NoError(t, outcome.Err)
	}
	b.emit(t, 5)
	b.enforced(t, 5, 20*time.Second)
	for id, reason := range map[string]string{
		"p1": "message body is not a JSON object", "p2": "enforcement_id",
		"ghost event":       "event 1099511627776 does not exist",
		"ghost enforcement": "enforcement 1099511627776 does not exist",
	} {
		deadLetter := b.deadLetter(t, id)
		require.Equal(t, "poison", deadLetter.Reason)
		require.Contains(t, deadLetter.Detail, reason)
	}
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter WHERE message_id = 'deleted event'`),
		"nothing is left to do for an event that was deleted, whose message came before that of the ghost")
}

// L1: events and enforcements whose message was lost are found by the sweep.
func TestEventsWhoseMessageWasLostAreFound(t *testing.T) {
	b := setup(t)
	b.door(t, 1)
	testkit.Exec(t, b.store, `UPDATE event_matching SET since = now() - interval '2 days'`)
	testkit.Exec(t, b.store, `INSERT INTO event (trigger, trigger_ref, payload, created)
		SELECT id, ref, '{"who":"lost"}', now() - i * interval '10 minutes' FROM trigger, generate_series(1, 10) i WHERE ref = 'demo.door'`)
	testkit.Exec(t, b.store, `INSERT INTO enforcement (rule, rule_ref, trigger_ref, payload, event, created, config)
		SELECT id, ref, trigger_ref, '{}', 1 << 30, now() - interval '1 minute', '{"message":"lost"}' FROM rule WHERE ref = 'demo.rule0'`)
	b.worker(t, "w1", 5) // before the sweep finds the lost event, which it does at once
	b.engine(t)
	b.enforced(t, 11, 30*time.Second)
}

// Upstream 59: a rule that is deleted before its enforcement is taken up leads to no
// execution and to no error that comes back.
func TestTheEnforcementOfADeletedRuleIsDisabled(t *testing.T) {
	b := setup(t)
	b.door(t, 2)
	testkit.Exec(t, b.store, `INSERT INTO enforcement (rule, rule_ref, trigger_ref, payload, event)
		SELECT id, ref, trigger_ref, '{}', 1 << 30 FROM rule WHERE ref = 'demo.rule1'`)
	testkit.Exec(t, b.store, `DELETE FROM rule WHERE ref = 'demo.rule1'`)
	id := int64(testkit.Count(t, b.store, `SELECT id FROM enforcement`))
	wire := b.connect(t, "deleted")
	b.engine(t)
	b.worker(t, "w1", 5)
	wire.Publisher().Publish(testkit.Context(t),
		[]broker.Message{created(t, message.ExchangeExecutions, message.KeyEnforcementCreated,
			message.TypeEnforcementCreated,
			message.EnforcementCreated{EnforcementID: id, RuleRef: "demo.rule1", TriggerRef: "demo.door"})})
	b.emit(t, 1)
	b.enforced(t, 1, 20*time.Second)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM enforcement WHERE id = $1 AND status = 'disabled' AND error LIKE '%does not exist any more'`, id))
}

// F23: 10,000 simultaneous events are matched in batches, and other work continues.
func TestTenThousandEventsAtOnceAreMatchedInBatches(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "match 10,000 events")
	b := setup(t)
	b.door(t, 1)
	testkit.Exec(t, b.store, `UPDATE rule SET conditions = '[{"field":"who","operator":"equals","value":"77"}]'`)
	b.engine(t)
	b.worker(t, "w1", 5)
	const events = 10_000
	b.emit(t, events)
	other := b.request(t, "core.echo", 1, `{"message":"meanwhile"}`)[0]
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM event_matched`) == events &&
			testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'completed'`) == 2
	}, 60*time.Second, "all are matched, the one that fires runs, and so does what was requested beside them")
	require.Equal(t, 1,
		testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE id = $1 AND status = 'completed'`, other))
	require.GreaterOrEqual(t, testkit.Count(t, b.store, `SELECT count(DISTINCT at) FROM event_matched`), events/200,
		"in bounded batches")
}

// A secret parameter reaches the action, both from the event and from the configuration of the pack. It is stored
// nowhere unencrypted on its way.
func TestSecretsOfARuleReachTheActionAlone(t *testing.T) {
	b := setup(t)
	const key = "a key of at least thirty-two characters"
	action := testkit.Action(t, b.store, "demo.knock", func(a *testkit.ActionRow) {
		a.ParamSchema = map[string]any{"token": map[string]any{"type": "string", "secret": true}}
	})
	testkit.Exec(t, b.store, `update pack set config = '{"token":"hush-hush"}', conf_schema = '{"token":{"type":"string","secret":true}}' where ref = 'demo'`)
	testkit.Exec(t, b.store, `insert into trigger (ref, label) values ('demo.door', 'x')`)
	testkit.Exec(t, b.store, `insert into rule (ref, pack, pack_ref, label, action, action_ref, trigger, trigger_ref, action_params, enabled)
		select 'demo.rule', $1, 'demo', 'x', $2, 'demo.knock', id, ref, '{"token":"Bearer {{ pack.config.token }}"}', true from trigger where ref = 'demo.door'`,
		action.PackID, action.ID)
	b.engine(t, func(c *config.Config) { c.Security.EncryptionKey = key })
	keys, err := secret.NewKeyring(key)
	require.NoError(t, err)
	given := make(chan string, 1)
	w, err := worker.New(worker.Config{
		Name: "w1", MaxConcurrent: 1, HeartbeatInterval: 500 * time.Millisecond,
		Keyring: keys, Actions: worker.Actions{
			"demo.knock": func(_ context.Context, task worker.Task) (any, error) {
				var params struct {
					Token string `json:"token"`
				}
				err := task.Decode(&params)
				given <- params.Token
				return nil, err
			},
		},
	}, worker.Deps{Store: b.store, Broker: b.connect(t, "w1"), Logger: testkit.Logger(t)})
	require.NoError(t, err)
	require.NoError(t, w.Start(testkit.Context(t)))
	t.Cleanup(w.Stop)
	b.emit(t, 1)
	b.enforced(t, 1, 20*time.Second)
	require.Equal(t, "Bearer hush-hush", <-given)
	require.Zero(t, testkit.Count(t, b.store, `SELECT (SELECT count(*) FROM enforcement f WHERE f::text LIKE '%hush-hush%')
		+ (SELECT count(*) FROM execution e WHERE e::text LIKE '%hush-hush%') + (SELECT count(*) FROM execution_history h WHERE h::text LIKE '%hush-hush%')`))
}
