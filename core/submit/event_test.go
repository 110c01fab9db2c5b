package submit_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/lab/testkit"
)

// events makes two triggers, one of them with a schema, and a rule.
func events(t *testing.T) *bundle {
	t.Helper()
	b := setup(t)
	testkit.Exec(t, b.store, `insert into trigger (ref, label, out_schema) values
		('probe.door', 'x', '{"state":{"type":"string","required":true}}'), ('probe.free', 'x', null)`)
	testkit.Exec(t, b.store, `insert into rule (ref, pack, pack_ref, label, action_ref, trigger, trigger_ref, enabled)
		select 'probe.rule', $1, 'probe', 'x', 'probe.ping', id, ref, true from trigger where ref = 'probe.door'`, b.action.PackID)
	return b
}

func TestEmitStoresRowAndMessageTogether(t *testing.T) {
	b := events(t)
	done, err := b.submit.EmitEvent(t.Context(), submit.Event{
		TriggerRef: "probe.door",
		Payload:    json.RawMessage(` { "state": "open" } `), RuleRef: "probe.rule",
	})
	require.NoError(t, err)
	require.True(t, done.Enabled)
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from event e join trigger t on t.id = e.trigger join rule r on r.id = e.rule
		where e.id = $1 and e.trigger_ref = 'probe.door' and e.payload = '{"state":"open"}' and e.rule_ref = 'probe.rule' and e.source_ref = 'attune.emit'`, done.ID))

	messages := b.relay.rows[done.OutboxID]
	require.Len(t, messages, 1)
	require.Equal(t, message.ExchangeEvents, messages[0].Exchange)
	require.Equal(t, message.KeyEventCreated, messages[0].RoutingKey)
	envelope, err := message.Decode[message.EventCreated](messages[0].Body)
	require.NoError(t, err)
	require.Equal(t, done.ID, envelope.Payload.EventID)
	require.Equal(t, "probe.door", envelope.Payload.TriggerRef)
	require.JSONEq(t, `{"state":"open"}`, string(envelope.Payload.Payload))
}

// An event has the execution that emitted it, if that exists.
func TestEmitRecordsTheEmittingExecution(t *testing.T) {
	b := events(t)
	from := testkit.Execution(t, b.store, testkit.Action(t, b.store, "probe.emits")).ID
	done, err := b.submit.EmitEvents(t.Context(), []submit.Event{
		{TriggerRef: "probe.free"},
		{TriggerRef: "probe.free", Execution: from},
		{TriggerRef: "probe.free", Execution: from + 1000},
	})
	require.NoError(t, err)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM event_origin`))
	require.Equal(t, 1, testkit.Count(t, b.store,
		`SELECT count(*) FROM event_origin WHERE event = $1 AND execution = $2 AND depth = 0`, done[1].ID, from))
}

func TestEmitWithoutAPayload(t *testing.T) {
	b := events(t)
	testkit.Exec(t, b.store, `update trigger set enabled = false`)
	testkit.Exec(t, b.store, `update attune_schema_origin set origin = 'own'`)
	for _, payload := range []string{"", "null", " null "} {
		done, err := b.submit.EmitEvent(t.Context(),
			submit.Event{TriggerRef: "probe.free", Payload: json.RawMessage(payload)})
		require.NoError(t, err)
		require.False(t, done.Enabled)
		require.Equal(t, 1,
			testkit.Count(t, b.store,
				`select count(*) from event where id = $1 and payload is null and rule is null and rule_ref is null`, done.ID))
		require.Contains(t, string(b.relay.rows[done.OutboxID][0].Body), `"payload":null`)
	}
	done, err := b.submit.EmitEvent(t.Context(),
		submit.Event{TriggerRef: "probe.free", Payload: json.RawMessage(`[1]`)})
	require.NoError(t, err)
	require.Equal(t, 1,
		testkit.Count(t, b.store, `select count(*) from event where id = $1 and payload = '[1]'`, done.ID))
}

func TestEmitRefusals(t *testing.T) {
	b := events(t)
	for want, event := range map[string]submit.Event{
		"there is no trigger probe.doors; the nearest is probe.door": {TriggerRef: "probe.doors"},
		"there is no trigger zzzzzzz.qqqqqqqqq":                      {TriggerRef: "zzzzzzz.qqqqqqqqq"},
		"there is no rule probe.none": {
			TriggerRef: "probe.free",
			RuleRef:    "probe.none",
		},
		"rule probe.rule belongs to trigger probe.door": {
			TriggerRef: "probe.free",
			RuleRef:    "probe.rule",
		},
		"emit probe.free: the payload is refused: it has 1048577 bytes, and": {
			TriggerRef: "probe.free",
			Payload:    json.RawMessage(`"` + strings.Repeat("x", submit.MaxPayload-1) + `"`),
		},
		"emit probe.free: the payload is refused: it is not JSON: ": {
			TriggerRef: "probe.free",
			Payload:    json.RawMessage(`{`),
		},
		"emit probe.free: the payload is refused: it is not JSON: it has text": {
			TriggerRef: "probe.free",
			Payload:    json.RawMessage(`{} {}`),
		},
		"the payload does not fit probe.door: state ": {TriggerRef: "probe.door"},
		"the payload does not fit probe.door: state": {
			TriggerRef: "probe.door",
			Payload:    json.RawMessage(`{"state":1}`),
		},
	} {
		_, err := b.submit.EmitEvents(t.Context(), []submit.Event{{TriggerRef: "probe.free"}, event})
		require.ErrorContains(t, err, want)
	}
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from event`))
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from outbox`))
	require.Empty(t, b.relay.rows)
}

func TestEmitManyKeepsTheOrder(t *testing.T) {
	b := events(t)
	const n = 1203
	list := make([]submit.Event, n)
	for i := range list {
		list[i] = submit.Event{TriggerRef: "probe.free", Payload: json.RawMessage(fmt.Sprintf(`{"i":%d}`, i))}
	}
	done, err := b.submit.EmitEvents(t.Context(), list)
	require.NoError(t, err)
	require.Len(t, done, n)
	for _, i := range []int{0, 500, n - 1} {
		require.Equal(t, 1, testkit.Count(t, b.store,
			`select count(*) from event where id = $1 and payload = jsonb_build_object('i', $2::int)`, done[i].ID, i))
	}
	require.Equal(t, 3, testkit.Count(t, b.store, `select count(*) from outbox`),
		"large batches are published in pieces")
	none, err := b.submit.EmitEvents(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, none)
}
