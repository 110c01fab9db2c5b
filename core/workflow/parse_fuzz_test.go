package workflow_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/workflow"
)

// FuzzDefinition checks that any file is read or refused with mistakes, and that a definition is equal after it was
// stored.
func FuzzDefinition(f *testing.F) {
	f.Add(everything)
	f.Add("version: 1\ntasks: [{name: a, action: core.echo, decision: [{when: 'x', next: a}, {default: true, next: a}]}]")
	f.Add("a: &a [*a]\nversion: 1\ntasks: *a")
	f.Add("version: 1\ntasks: [{<<: {name: b}, action: \"a.b\", input: {x: |\n {{ y }}\n}}]")
	f.Add("version: 1\nstrict: true\ntasks: [{name: a, action: core.echo, next: [{when: 'succeeded() and n', do: a}]}]")
	f.Add("version: 1\ntasks: [{name: a, next: [{when: '{{ n > > 1 }}', publish: [{n: '{{ | }}'}]}]}]")
	f.Add(`{"version": "1", "tasks": [{"name": "a", "action": "b.c", "when": "{{ '}}' }}"}]}`)
	f.Fuzz(func(t *testing.T, content string) {
		d, mistakes, _ := workflow.Parse("w", []byte(content))
		for _, m := range mistakes {
			require.NotEmpty(t, m.Text)
		}
		if d != nil { // also what is wrong can be drawn
			for text := range strings.Lines(d.Draw(workflow.Drawing{Width: 60})) {
				require.LessOrEqual(t, utf8.RuneCountInString(text), 61)
			}
			require.NotEmpty(t, d.DOT(map[string]*workflow.TaskState{}))
		}
		if d == nil || len(mistakes) > 0 {
			require.NotEmpty(t, mistakes)
			return
		}
		require.False(t, d.Strict && d.Cycle() != nil)
		stored, err := d.JSON()
		require.NoError(t, err)
		again, err := workflow.ParseJSON(stored)
		require.NoError(t, err)
		graph, err := d.TaskGraph()
		require.NoError(t, err)
		same, err := again.TaskGraph()
		require.NoError(t, err)
		require.JSONEq(t, string(graph), string(same))
		_, err = workflow.ParseTaskGraph(graph, nil)
		require.NoError(t, err)
	})
}
