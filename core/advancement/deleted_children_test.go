package advancement_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

const bereft = `
version: "1"
tasks:
  - {name: one, action: pk.one, retry: {count: 3, delay: 0}, next: [{when: "{{ failed() }}", do: [mend]}]}
  - name: list
    action: pk.each
    with_items: "{{ range(5) }}"
    concurrency: 3
    next: [{when: "{{ failed() }}", do: [after]}]
  - {name: mend, action: pk.mend}
  - {name: after, action: pk.after, input: {failed: "{{ task.list.failed_count }}"}}
  - name: ask
    action: core.ask
    next: [{when: "{{ failed() }}", do: [unasked]}]
  - {name: unasked, action: pk.unasked}
output_map: {failed: "{{ task.list.failed_count }}"}
`

// Open children that an operator deletes never end. They count as abandoned, so that the workflow goes on (S12).
func TestAWorkflowGoesOnWithoutChildrenThatWereDeleted(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.bereft", bereft), nil)
	w.take(nil, []int64{id})
	w.check(id)
	require.Empty(t, w.log(id)[3:], "nothing is missing yet")
	testkit.Exec(t, w.store,
		`DELETE FROM execution WHERE action_ref IN ('pk.one', 'core.ask') OR workflow_task ->> 'task_index' = '1'`)
	w.check(id)
	w.run()
	status, result := w.outcome(id)
	require.Equal(t, lifecycle.StatusCompleted, status, "%v", result)
	require.EqualValues(t, 1, result["failed"])
	require.Equal(t, 4, testkit.Count(t, w.store,
		`SELECT count(*) FROM execution WHERE action_ref = 'pk.each' AND status = 'completed'`))
	require.Equal(t, 3, testkit.Count(t, w.store, `SELECT count(*) FROM execution WHERE action_ref IN ('pk.mend', 'pk.after', 'pk.unasked') AND status = 'completed'`))
	require.Equal(t, 5+3, len(w.ran)+1, "the deleted ones never ran, and none of them is repeated")
}
