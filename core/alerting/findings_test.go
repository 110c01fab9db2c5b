package alerting_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// findingCase makes the condition of a finding that no rule raises. Text is what NEEDS ATTENTION says, and from names
// the function in which the product makes it.
type findingCase struct {
	from, text string
	level      alerting.Level
	make       func(b *bundle)
}

// findingCases are the findings without a rule. Those of an unreachable server need no row: they are of the reading.
var findingCases = map[string]findingCase{
	"stale": {
		from: "unwellWorkers", text: "w1 is stale", level: alerting.LevelWarning,
		make: func(b *bundle) {
			testkit.Worker(b.t, b.store, "w1", func(r *testkit.WorkerRow) { r.HeartbeatAge = 20 * time.Minute })
		},
	},
	"suspect": {
		from: "unwellWorkers", text: "w1 is suspect", level: alerting.LevelWarning,
		make: func(b *bundle) {
			testkit.Worker(b.t, b.store, "w1")
			b.exec(`update worker set suspect_since = now(), suspect_reason = 'its queue is gone'`)
		},
	},
	"deaf": {
		from: "unwellWorkers", text: "w1 is deaf", level: alerting.LevelWarning,
		make: func(b *bundle) {
			b.probed(0, "healthy")
			b.exec(`update worker_probe set queue_exists = false`)
			b.exec(`update worker set created = now() - interval '1 hour'`)
		},
	},
	"unhealthy": {
		from: "unwellWorkers", text: "w1 is unhealthy", level: alerting.LevelWarning,
		make: func(b *bundle) { b.probed(0, "unhealthy") },
	},
	"failed workflows": {
		from: "flowFindings", text: "1 workflow has failed", level: alerting.LevelWarning,
		make: func(b *bundle) {
			b.workflow(false)
			b.exec(`insert into activity_minute values (date_trunc('minute', now()), 'pk.flow', 0, 1, 0, 0, 0)
				on conflict (minute, action_ref) do update set failed = 1`)
		},
	},
	"paused workflows": {
		from: "flowFindings", text: "1 workflow is paused", level: alerting.LevelInfo,
		make: func(b *bundle) { b.workflow(true) },
	},
	"questions": {
		from: "flowFindings", text: "1 question waits for a person", level: alerting.LevelInfo,
		make: func(b *bundle) { b.question("1 minute", "1 hour") },
	},
	"late questions": {
		from: "flowFindings", text: "1 question waits for a person", level: alerting.LevelWarning,
		make: func(b *bundle) { b.question("59 minutes", "1 minute") },
	},
	"failed checks": {
		from: "checkFindings", text: "1 check has failed", level: alerting.LevelWarning,
		make: func(b *bundle) { // a request that no queue has
			b.execution(lifecycle.StatusRequested, time.Hour)
		},
	},
	"unread checks": {
		from: "checkFindings", text: "the checks cannot be read", level: alerting.LevelWarning,
		make: func(b *bundle) { b.unread = true },
	},
}

// workflow starts a workflow pk.flow.
func (b *bundle) workflow(paused bool) {
	b.t.Helper()
	action := testkit.Action(b.t, b.store, "pk.flow")
	e := testkit.Execution(b.t, b.store, action, func(r *testkit.ExecutionRow) { r.Status = lifecycle.StatusRunning })
	b.exec(`with d as (insert into workflow_definition (ref, pack, pack_ref, label, version, definition)
			select 'pk.flow', a.pack, a.pack_ref, 'w', '1', '{}' from action a where a.id = $1 returning id),
		a as (update action set workflow_def = (select id from d) where id = $1)
		insert into workflow_execution (execution, workflow_def, task_graph, variables, status, paused)
		select $2, d.id, '{}', '{}', 'running', $3 from d`, action.ID, e.ID, paused)
}

// question asks a person, so long ago and for so much longer.
func (b *bundle) question(ago, left string) {
	b.t.Helper()
	e := testkit.Execution(b.t, b.store, testkit.Action(b.t, b.store, "pk.ask"),
		func(r *testkit.ExecutionRow) { r.Status = lifecycle.StatusRunning })
	b.exec(`insert into inquiry (execution, status, prompt, created, timeout_at)
		values ($1, 'pending', 'go on?', now() - $2::interval, now() + $3::interval)`, e.ID, ago, left)
}

// TestEveryFindingWithoutARuleIsShown: its condition is made on a database, and the first screen of the dashboard names
// it below NEEDS ATTENTION and counts it in the header.
func TestEveryFindingWithoutARuleIsShown(t *testing.T) {
	t.Parallel()
	for name, c := range findingCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, shortened())
			b.evaluates()
			screen, counts := b.overview()
			require.Contains(t, screen, "✓ Nothing needs attention")
			require.Equal(t, [2]int{}, counts)
			c.make(b)
			b.requireAttention(c.level, c.text)
		})
	}
}

// TestEveryFindingHasItsCase: each place of the product that makes a finding is known here, and each unwell state of a
// worker.
func TestEveryFindingHasItsCase(t *testing.T) {
	t.Parallel()
	made := map[string]int{}
	for _, folder := range []string{
		".", "../../tui/screen", "../../tui/screen/overview", "../../tui/screen/alerts", "../../tui/app",
	} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			require.NoError(t, err)
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(f, func(n ast.Node) bool {
					if literal, ok := n.(*ast.CompositeLit); ok && isFinding(literal.Type) {
						made[f.Name.Name]++
					}
					return true
				})
			}
		}
	}
	require.Equal(t, map[string]int{
		"findings":      1, // of the alerts: see cases
		"unwellWorkers": 1, "flowFindings": 3, "checkFindings": 1,
		"Findings": 1, // an unreachable server, which the tests of package app have
	}, made, "a finding without a case")
	for _, health := range alerting.Unwell() {
		require.Contains(t, slices.Collect(maps.Keys(findingCases)), string(health))
	}
}

func isFinding(t ast.Expr) bool {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name == "Finding"
	case *ast.SelectorExpr:
		return t.Sel.Name == "Finding"
	default:
		return false
	}
}
