package advancement_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// An expired inquiry is opened again if its task says so, without a worker and without a slot.
func TestAnExpiredInquiryIsRetried(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.again", `
version: "1"
tasks:
  - {name: ask, action: core.ask, timeout: 60, retry: {count: 1, delay: 0}, input: {prompt: "Well?"}, next: [{when: "{{ succeeded() }}", do: [go]}]}
  - {name: go, action: pk.go, input: {said: "{{ task.ask.response }}"}}
`), nil)
	w.run()
	first := w.ids(`SELECT id FROM execution WHERE action_ref = 'core.ask'`)[0]
	testkit.Exec(t, w.store, `UPDATE inquiry SET status = 'timeout', settled = true`)
	testkit.Exec(t, w.store, `UPDATE execution SET status = 'timeout', result = '{"error": "no answer"}' WHERE id = $1`,
		first)
	w.run()
	again := w.ids(`SELECT execution FROM inquiry WHERE status = 'pending' AND prompt = 'Well?'`)
	require.Len(t, again, 1)
	require.NotEqual(t, first, again[0])
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, w.store, again[0]))
	require.Zero(t, testkit.Count(t, w.store, `SELECT count(*) FROM execution WHERE EXISTS (SELECT FROM execution_holder h WHERE h.execution = execution.id) OR worker IS NOT NULL`))
	testkit.Exec(t, w.store,
		`UPDATE inquiry SET status = 'responded', response = '"yes"', settled = true WHERE status = 'pending'`)
	testkit.Exec(t, w.store, `UPDATE execution SET status = 'completed', result = '{"response": "yes"}' WHERE id = $1`,
		again[0])
	w.completes(id)
	require.JSONEq(t, `{"said": "yes"}`, w.text(`SELECT config FROM execution WHERE action_ref = 'pk.go'`))
}

// An inquiry of a result without an answer in time is a timeout of its task. A malformed inquiry is a failure with
// the reason.
func TestAnUnansweredInquiryOfAResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asks any
		next string
	}{
		"timeout":   {map[string]any{"prompt": "Really?"}, "late"},
		"malformed": {map[string]any{"prompt": 7}, "wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.does = func(task string, _, _ int) end {
				if task == "a" {
					return end{lifecycle.StatusCompleted, map[string]any{"__inquiry": c.asks}}
				}
				return end{status: lifecycle.StatusCompleted}
			}
			id := w.request(w.define("pk.asks", `
version: "1"
tasks:
  - name: a
    action: pk.a
    next: [{when: "{{ timed_out() }}", do: [late]}, {when: "{{ failed() }}", do: [wrong]}, {when: "{{ succeeded() }}", do: [fine]}]
  - {name: late, action: pk.late, input: {}}
  - {name: wrong, action: pk.wrong, input: {why: "{{ task.a.error }}"}}
  - {name: fine, action: pk.fine, input: {}}
`), nil)
			w.run()
			testkit.Exec(t, w.store, `UPDATE inquiry SET status = 'timeout', settled = true WHERE status = 'pending'`)
			w.check(id)
			testkit.Exec(t, w.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
			testkit.Exec(t, w.store, `UPDATE execution SET updated = now() - interval '1 min'`)
			testkit.Exec(t, w.store, `ALTER TABLE execution ENABLE TRIGGER USER`)
			w.check(id)
			w.completes(id)
			require.Equal(t, []string{"a/0/0", c.next + "/0/0"}, w.ran)
		})
	}
}

// A secret parameter of a child is encrypted too, wherever its value comes from. Without a key the child is refused.
func TestAPlainValueForASecretParameter(t *testing.T) {
	const definition = `
version: "1"
tasks: [{name: a, action: pk.a, input: {token: "{{ 'tok' + 'en-1' }}", other: 1}}]
`
	w := setup(t)
	testkit.Exec(t, w.store,
		`UPDATE action SET param_schema = '{"token": {"type": "string", "secret": true}}' WHERE ref = 'pk.a'`)
	action := w.define("pk.one", definition)
	refused := w.request(action, nil)
	w.run()
	status, _ := w.outcome(refused)
	require.Equal(t, lifecycle.StatusFailed, status)

	keys := w.keys(strings.Repeat("k", 32))
	id := w.request(action, nil)
	w.completes(id)
	child := w.ids(`SELECT id FROM execution WHERE parent = $1`, id)[0]
	require.JSONEq(t, `{"token": {"$attune_secret": true, "redacted": true}, "other": 1}`,
		w.text(`SELECT config FROM execution WHERE id = $1`, child))
	rows, err := store.SecretsOf(testkit.Context(t), w.store.Queries, "execution_config", child)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	value, err := keys.Open(rows[0])
	require.NoError(t, err)
	require.Equal(t, "token-1", value)
	testkit.NowhereInDatabase(t, w.store, "token-1")
}

// A marker in the text of a definition opens no secret of another execution.
func TestAMarkerWrittenByHandOpensNothing(t *testing.T) {
	w := setup(t)
	keys := w.keys(strings.Repeat("k", 32))
	other := testkit.Execution(t, w.store, testkit.Action(t, w.store, "pk.other"),
		func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusCompleted }).ID
	sealed, err := keys.Seal("of somebody else")
	require.NoError(t, err)
	testkit.Exec(t, w.store, `INSERT INTO execution_secret_value (entity_type, entity_id, json_path, source_kind, encrypted_value)
		VALUES ('execution_config', $1, '/p', 'parameter_schema', $2)`, other, sealed)
	raw, err := json.Marshal(map[string]any{"version": "1", "tasks": []any{map[string]any{
		"name": "a", "action": "pk.a",
		"input": map[string]any{"x": map[string]any{
			"$attune_secret": true, "redacted": true,
			"from": "execution_config:1:/p",
		}},
	}}})
	require.NoError(t, err)
	require.EqualValues(t, 1, other)
	id := w.request(w.keep("pk.forged", raw), nil)
	w.run()
	status, _ := w.outcome(id)
	require.Equal(t, lifecycle.StatusFailed, status)
	require.Equal(t, 1, testkit.Count(t, w.store, `SELECT count(*) FROM execution_secret_value`))
}
