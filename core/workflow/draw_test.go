package workflow_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/workflow"
)

var update = flag.Bool("update", false, "write the drawings to testdata")

// requireGolden compares with a file in testdata.
func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// halfway is where the tasks of everything might be.
func halfway() map[string]*workflow.TaskState {
	return map[string]*workflow.TaskState{
		"reserve": {Status: workflow.TaskCompleted, Total: 1, Next: 1, Succeeded: 1},
		"pay":     {Status: workflow.TaskFailed, Handled: true},
		"prepare": {Status: workflow.TaskRunning, Total: 2, Next: 2, Open: 1, Succeeded: 1},
		"box":     {Status: workflow.TaskCompleted},
		"label":   {Status: workflow.TaskRunning},
		"ship":    {Status: workflow.TaskWaiting, Arrived: []string{"pay"}},
		"tell":    {Status: workflow.TaskSkipped},
	}
}

func TestDraw(t *testing.T) {
	t.Parallel()
	d := parse(t, everything)
	running := halfway()
	running["ship"] = &workflow.TaskState{
		Status: workflow.TaskRunning, Total: 1000, Next: 41, Open: 4, Succeeded: 34,
		Failed: 2, TimedOut: 1,
	}
	delete(running, "tell")
	branches := parse(t, `
version: 1
tasks:
  - {name: left, action: a.b, next: [{when: succeeded(), do: [merge]}, {when: failed(), do: [mend]}]}
  - {name: right, action: a.b, next: [{do: [merge, alone]}]}
  - {name: mend, action: a.mend, next: [{when: "{{ result().ok }}", do: merge}, {when: "{{ not result().ok }}", do: merge}]}
  - {name: merge, action: a.merge, join: 2, next: [{do: last}]}
  - {name: alone, action: a.b}
  - {name: last, action: a.b}
`)
	for name, got := range map[string]string{
		"definition.txt": d.Draw(workflow.Drawing{}),
		"halfway.txt":    d.Draw(workflow.Drawing{Tasks: halfway()}),
		"running.txt":    d.Draw(workflow.Drawing{Tasks: running, Width: 120}),
		"ascii.txt":      d.Draw(workflow.Drawing{Tasks: running, Width: 50, ASCII: true}),
		"branches.txt":   branches.Draw(workflow.Drawing{}),
		"definition.dot": d.DOT(nil),
		"running.dot":    d.DOT(running),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireGolden(t, name, got)
		})
	}
}

// The columns of a drawing are measured in cells, and every line is within the width.
func TestDrawNamesOfAnyScript(t *testing.T) {
	t.Parallel()
	d := parse(t, "version: 1\ntasks:\n  - {name: 部署服务, action: a.b, next: [{do: [cafe\u0301]}]}\n"+
		"  - {name: cafe\u0301, action: a.c, next: [{do: ["+strings.Repeat("服", 25)+"]}]}\n"+
		"  - {name: "+strings.Repeat("服", 25)+", action: a.d}\n")
	columns := map[int]bool{}
	for line := range strings.Lines(d.Draw(workflow.Drawing{Width: 60})) {
		line = strings.TrimSuffix(line, "\n")
		require.LessOrEqual(t, phrase.Width(line), 60, line)
		if before, _, ok := strings.Cut(line, "a."); ok {
			columns[phrase.Width(before)] = true
		}
	}
	require.Len(t, columns, 1, "all actions begin in one column: %v", columns)
}

// A drawing of many tasks names each once in front of its line, within the width.
func TestDrawManyTasks(t *testing.T) {
	t.Parallel()
	shapes := map[string]func(i int) string{
		"chain": func(i int) string { return fmt.Sprintf("t%d", i+1) },
		"fan":   func(int) string { return "t100" },
		"comb":  func(i int) string { return fmt.Sprintf("t%d, t%d", 2*i+1, 2*i+2) },
		"deep":  func(i int) string { return fmt.Sprintf("t%d, s%d", i+1, i) },
	}
	for shape, next := range shapes {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			var content strings.Builder
			content.WriteString("version: 1\ntasks:\n")
			last := map[string]int{"chain": 100, "fan": 100, "comb": 48, "deep": 60}[shape]
			for i := range last {
				fmt.Fprintf(&content,
					"  - {name: t%d, action: some_pack.some_action, next: [{when: succeeded(), do: [%s]}]}\n", i,
					next(i))
				if shape == "deep" {
					fmt.Fprintf(&content, "  - {name: s%d, action: a.b}\n", i)
				}
			}
			for i := last; i <= map[string]int{"chain": 100, "fan": 100, "comb": 96, "deep": 60}[shape]; i++ {
				fmt.Fprintf(&content, "  - {name: t%d, action: a.b}\n", i)
			}
			d := parse(t, content.String())
			for _, ascii := range []bool{false, true} {
				drawn := d.Draw(workflow.Drawing{ASCII: ascii})
				for text := range strings.Lines(drawn) {
					require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(text, "\n")), 80, text)
				}
				sign := "○ "
				if ascii {
					sign = "o "
				}
				require.Equal(t, len(d.Tasks), strings.Count(drawn, sign), drawn)
				for _, task := range d.Tasks {
					require.Contains(t, drawn, sign+task.Name+" ")
				}
			}
		})
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	d := parse(t, everything)
	for want, state := range map[string]*workflow.TaskState{
		"not reached": nil,
		"waiting 1/2": {Status: workflow.TaskWaiting, Arrived: []string{"pay"}},
		"running 37/1000 (3 failed)": {
			Status: workflow.TaskRunning, Total: 1000, Succeeded: 34, Failed: 2,
			TimedOut: 1,
		},
		"completed 5/5":                  {Status: workflow.TaskCompleted, Total: 5, Succeeded: 5},
		"failed, handled 5/5 (5 failed)": {Status: workflow.TaskFailed, Handled: true, Total: 5, Failed: 5},
		"skipped":                        {Status: workflow.TaskSkipped},
	} {
		require.Equal(t, want, workflow.StatusText(d.Task("ship"), state))
	}
	require.Equal(t, "running",
		workflow.StatusText(d.Task("pay"), &workflow.TaskState{Status: workflow.TaskRunning, Total: 1}))
}
