package advancement_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

const large = `
version: "1"
tasks:
  - {name: each, action: pk.each, with_items: "{{ range(parameters.n) }}", concurrency: 50, next: [{publish: [{all: "{{ result() }}"}], do: [after]}]}
  - {name: after, action: pk.after}
output_map: {all: "{{ all }}"}
`

// gives has every item give a megabyte that cannot be compressed.
func (w *world) gives() {
	w.does = func(task string, _, _ int) end {
		if task != "each" {
			return end{status: lifecycle.StatusCompleted}
		}
		var text strings.Builder
		for text.Len() < 1<<20 {
			text.WriteString(rand.Text())
		}
		return end{lifecycle.StatusCompleted, map[string]any{"value": text.String()}}
	}
}

// A result that is too large for a message is only in the row, and its end is reported without it: a message that no
// consumer accepts would block all later ones.
func TestTheEndOfAWorkflowIsReportedWithoutALargeResult(t *testing.T) {
	w := setup(t)
	w.gives()
	id := w.request(w.define("pk.large", large), map[string]any{"n": 3})
	result := w.completes(id)
	require.Len(t, result["all"], 3)
	require.Equal(t, 1, w.reports(id))
	for _, m := range w.relay.messages {
		require.Less(t, len(m.Body), 1<<20)
	}
}

// Results that could use up the memory of every replica fail the workflow that reads them, and are not read.
func TestResultsThatAreTooLargeTogetherFailTheirWorkflow(t *testing.T) {
	t.Parallel()
	for _, name := range testkit.Some(t, []string{"hard to compress", "easy to compress"}, 1) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			if w.gives(); name == "easy to compress" {
				w.does = func(task string, _, _ int) end {
					if task != "each" {
						return end{status: lifecycle.StatusCompleted}
					}
					return end{lifecycle.StatusCompleted, map[string]any{"value": strings.Repeat("a", 1<<20)}}
				}
			}
			tooLarge(t, w)
		})
	}
}

func tooLarge(t *testing.T, w *world) {
	t.Helper()
	id := w.request(w.define("pk.large", large), map[string]any{"n": 34})
	w.run()
	status, result := w.outcome(id)
	require.Equal(t, lifecycle.StatusFailed, status)
	require.Contains(t, result["error"], "store large results elsewhere")
	require.Equal(t, 34, testkit.Count(t, w.store, `SELECT count(*) FROM execution WHERE status = 'completed'`))
}

const picky = `
version: "1"
tasks:
  - name: each
    action: pk.each
    with_items: "{{ range(5) }}"
    concurrency: 5
    retry: {count: 1, delay: 0, on_error: "{{ result().code == 3 }}"}
    next: [{when: "{{ failed() }}", do: [after]}]
  - {name: after, action: pk.after}
`

// The retry of an item depends on its own result only.
func TestARetryReadsItsOwnItem(t *testing.T) {
	w := setup(t)
	w.does = func(task string, index, _ int) end {
		if task != "each" {
			return end{status: lifecycle.StatusCompleted}
		}
		return end{lifecycle.StatusFailed, map[string]any{"code": index}}
	}
	w.completes(w.request(w.define("pk.picky", picky), nil))
	require.Equal(t, "3",
		w.text(`SELECT string_agg(workflow_task ->> 'task_index', ',') FROM execution WHERE retry_count = 1`))
}
