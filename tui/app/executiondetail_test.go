package app

import (
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
)

// detailed is the page of an execution, after a test has changed its data.
func detailed(t *testing.T, w, h int, change func(d *monitor.ExecutionDetail, f *monitor.Family),
	options ...func(*Options),
) *bundle {
	t.Helper()
	source := sample()
	if change != nil {
		change(source.detail, source.family)
	}
	b := started(t, source, w, h, options...)
	b.open(keymap.InExecution)
	return b
}

// alone leaves of the attempts of an execution only itself.
func alone(_ *monitor.ExecutionDetail, f *monitor.Family) { f.Attempts = f.Attempts[:1] }

func TestThePageOfAnExecutionShowsTheStateOfARetry(t *testing.T) {
	b := detailed(t, 140, 40, nil)
	for _, text := range []string{
		"REQUEUE CHECK", "✓ it ended as failed", "✗ it has been repeated already",
		"✓ its parent, execution 884050, is running", "▲ its worker is stale",
	} {
		require.Contains(t, b.View(), text)
	}
	narrow := detailed(t, 80, 24, nil)
	require.Contains(t, narrow.View(), "R not now: it has been repeated already")
	require.Contains(t, detailed(t, 80, 24, alone).View(), "R is possible: ▲ its worker is stale")
	require.Contains(t, detailed(t, 80, 24, func(d *monitor.ExecutionDetail, f *monitor.Family) {
		alone(d, f)
		d.WorkerID = nil
	}).View(), "R is possible: it ended as failed, it was not repeated")

	adopted := sample()
	adopted.audit = &monitor.Audit{Reading: adopted.audit.Reading}
	elsewhere := started(t, adopted, 140, 40, func(o *Options) { o.Acts = &fakeActs{} })
	elsewhere.open(keymap.InExecution)
	require.Contains(t, elsewhere.View(), "Without the engine's tables R works")
	require.NotContains(t, elsewhere.View(), "its worker is stale")
}

func TestRRetriesTheShownExecution(t *testing.T) {
	acts := &fakeActs{}
	b := detailed(t, 140, 40, alone, func(o *Options) { o.Acts = acts })
	b.press("R")
	require.Equal(t, keymap.InConfirm, b.stage())
	require.Equal(t, act.RetryExecution, acts.requests[0].Kind)
	require.Equal(t, int64(884301), acts.requests[0].Target.ID)
}

func TestThePageOfAnExecutionShowsItsOperations(t *testing.T) {
	b := detailed(t, 140, 40, nil)
	require.Contains(t, b.View(), "02:18:04 bob@desk cancel execution 884309: failed")
	require.Contains(t, b.View(), "02:17:04 ada@here requeue dead letter 71")
	require.NotContains(t,
		detailed(t, 140, 40, func(_ *monitor.ExecutionDetail, f *monitor.Family) { f.Acts = nil }).View(), "ACTIVITY")
}

func TestTheTreeNamesTasksAndWhereTheyBelong(t *testing.T) {
	b := detailed(t, 140, 40, nil)
	for _, text := range []string{
		"├ 884101 split", "  └ 884102 etl.part", "▶├ 884301 fetch[3]",
		"└ 884309 core.http_request",
	} {
		require.Contains(t, b.View(), text)
	}
	for _, text := range []string{
		"884050  etl-nightly          ● running", "612 queued  4/4",
		"worker-node-02                 ✗ stale",
	} {
		require.Contains(t, b.View(), text, "the sections name the relation")
	}
	b.press("x")
	require.Contains(t, b.View(), "fetch[3]", "also where the tree has the whole view")
}

func TestTheTimelineNamesTheRequesterAndTheCause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(d *monitor.ExecutionDetail, f *monitor.Family)
		want   string
	}{
		"a task":     {nil, "task fetch[3] of 884050"},
		"its worker": {nil, "on worker-node-02 (id 7)"},
		"it expired": {nil, "▲ waited the full TTL, never started"},
		"a child": {
			func(_ *monitor.ExecutionDetail, f *monitor.Family) { f.Of(884301).Task = "" },
			"started by 884050",
		},
		"a rule": {
			func(d *monitor.ExecutionDetail, f *monitor.Family) { d.Parent, f.Of(884301).Task = nil, "" },
			"rule nightly.start",
		},
		"unread": {func(d *monitor.ExecutionDetail, f *monitor.Family) {
			d.Parent, f.Of(884301).Task, f.Enforcement = nil, "", nil
		}, "enforcement 55120"},
		"a retry": {func(d *monitor.ExecutionDetail, _ *monitor.Family) {
			d.Original, d.RetryReason = ptr(884200), "manual_retry"
		}, "retry of 884200: manual_retry"},
		"another one": {
			func(d *monitor.ExecutionDetail, _ *monitor.Family) { d.Timeline[1].Worker = ptr(9) },
			"on worker 9",
		},
		"never begun": {func(d *monitor.ExecutionDetail, f *monitor.Family) {
			d.Reason, f.DeadLetters = "worker lost",
				nil
		}, "never started"},
		"its dead letter": {
			func(d *monitor.ExecutionDetail, _ *monitor.Family) { d.Reason = "" },
			"waited the full TTL",
		},
	} {
		b := detailed(t, 140, 40, c.change)
		require.Contains(t, b.View(), c.want, name)
	}
	far := detailed(t, 140, 40, func(d *monitor.ExecutionDetail, f *monitor.Family) {
		d.Reason, f.DeadLetters[0].At = "", f.DeadLetters[0].At.Add(time.Hour)
	})
	require.NotContains(t, far.View(), "full TTL", "a dead letter of another time explains nothing")
}

// TestALowTerminalHasTheTimelineOrASection, and tab brings every section.
func TestALowTerminalHasTheTimelineOrASection(t *testing.T) {
	b := started(t, sample(), 60, 15)
	b.press("3", "enter")
	require.Contains(t, b.View(), "TIMELINE")
	require.NotContains(t, b.View(), "[config]")
	for _, section := range []string{"config", "result", "env", "history", "dead letter", "raw", "output", "config"} {
		b.press("tab")
		require.Contains(t, b.View(), "["+section+"]")
		require.NotContains(t, b.View(), "TIMELINE")
		require.Contains(t, b.View(), "R not now")
	}
	require.Contains(t, b.View(), "partner.example")
	b.press("esc", "enter")
	b.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	require.Contains(t, b.View(), "TIMELINE")
	require.Contains(t, b.View(), "[config]")
}
