package submit_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/lab/testkit"
)

// The second request of an action is stored by one statement: the same row and message as the first, in order,
// with any parameters and options, and all or none.
func TestRequestsOfKnownActionsAreStoredAsTheFirst(t *testing.T) {
	b := setup(t)
	other := testkit.Action(t, b.store, "probe.other")
	tricky := `{"execution_id":0,"timestamp":"0001-01-01T00:00:00Z","text":"$1 \\u00e4 ' \" <&>"}`
	requests := []submit.Request{
		{ActionRef: "probe.ping", Params: json.RawMessage(tricky), Priority: submit.PriorityHigh},
		{ActionRef: "probe.other"},
		{
			ActionRef: "probe.ping",
			Options: &submit.Options{
				EnvVars: map[string]json.RawMessage{"A": json.RawMessage(`"b"`)}, PermissionSetRefs: []string{"x"},
			},
		},
	}
	first, err := b.submit.RequestMany(t.Context(), requests)
	require.NoError(t, err)
	second, err := b.submit.RequestMany(t.Context(), requests)
	require.NoError(t, err)

	const columns = `action, action_ref, status, config, priority, executor, parent, permission_set_refs, env_vars, artifact_retention_policy, artifact_retention_limit`
	messages := map[int]outbox.Message{}
	for i, done := range second {
		require.Equal(t, requests[i].ActionRef, done.ActionRef)
		require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM (
			SELECT DISTINCT `+columns+` FROM execution WHERE id = ANY ($1)) d`, []int64{first[i].ID, done.ID}))
		require.Equal(t, second[0].OutboxID, done.OutboxID)
		messages[i] = b.relay.rows[done.OutboxID][i]
		before, err := message.Decode[message.ExecutionRequested](b.relay.rows[first[i].OutboxID][i].Body)
		require.NoError(t, err)
		after, err := message.Decode[message.ExecutionRequested](messages[i].Body)
		require.NoError(t, err)
		require.Equal(t, done.ID, after.Payload.ExecutionID)
		require.True(t, done.Created.Equal(after.Timestamp))
		require.Equal(t, messages[i].ID, after.MessageID)
		before.MessageID, before.CorrelationID, before.Timestamp = after.MessageID, after.CorrelationID, after.Timestamp
		before.Payload.ExecutionID = done.ID
		require.Equal(t, before, after)
		require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM outbox
			WHERE id = $1 AND message_ids[$2] = $3 AND bodies[$2] = $4 AND exchanges[$2] = $5 AND routing_keys[$2] = $6 AND message_types[$2] = $7`,
			done.OutboxID, i+1, messages[i].ID, messages[i].Body, messages[i].Exchange, messages[i].RoutingKey,
			messages[i].Type))
	}
	require.Less(t, second[0].ID, second[1].ID)
	require.Less(t, second[1].ID, second[2].ID)

	testkit.Exec(t, b.store, `DELETE FROM action WHERE id = $1`, other.ID)
	_, err = b.submit.RequestMany(t.Context(), requests)
	require.ErrorContains(t, err, "there is no action probe.other")
	require.Equal(t, 6, testkit.Count(t, b.store, `SELECT count(*) FROM execution`), "all or none")
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM outbox`))
}

// The present schema of the action judges the parameters, not the one of an earlier read, in both directions.
func TestAKnownActionIsJudgedByItsSchemaOfNow(t *testing.T) {
	b := setup(t)
	request := submit.Request{ActionRef: "probe.ping", Params: json.RawMessage(`{"n":"text"}`)}
	_, err := b.submit.Request(t.Context(), request)
	require.NoError(t, err)
	testkit.Exec(t, b.store, `UPDATE action SET param_schema = '{"n":{"type":"integer"}}' WHERE id = $1`, b.action.ID)
	var invalid *submit.InvalidParamsError
	_, err = b.submit.Request(t.Context(), request)
	require.ErrorAs(t, err, &invalid)
	_, err = b.submit.Request(t.Context(), request)
	require.ErrorAs(t, err, &invalid)
	testkit.Exec(t, b.store, `UPDATE action SET param_schema = '{"n":{"type":"string"}}' WHERE id = $1`, b.action.ID)
	_, err = b.submit.Request(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM execution`))
}

// Without a relay of their own, engines read the row after its commit.
func TestARequestOfAKnownActionTellsTheEngines(t *testing.T) {
	b := setup(t)
	alone := submit.New(b.store, nil)
	_, err := alone.Request(t.Context(), submit.Request{ActionRef: "probe.ping"})
	require.NoError(t, err)
	conn, err := b.store.Pool().Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), "LISTEN "+outbox.Channel)
	require.NoError(t, err)
	done, err := alone.Request(t.Context(), submit.Request{ActionRef: "probe.ping"})
	require.NoError(t, err)
	for {
		heard, err := conn.Conn().WaitForNotification(t.Context())
		require.NoError(t, err)
		if heard.Payload == fmt.Sprintf("%s %d", testkit.Schema, done.OutboxID) {
			return
		}
	}
}
