package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

// details are the views of one thing, and the lists that have more than a table.
var details = []screen.View{
	keymap.InOverview, keymap.InQueue, keymap.InExecution, keymap.InWorker, keymap.InDeadLetters, keymap.InDeadLetter,
	keymap.InWorkflows, keymap.InAlerts, keymap.InXray, keymap.InInquiries, keymap.InLog,
}

// TestDrawingChangesNothing presses the same keys on two dashboards. One is drawn after each key, the other at the end.
func TestDrawingChangesNothing(t *testing.T) {
	t.Parallel()
	for _, view := range details {
		for _, size := range [][2]int{{140, 40}, {80, 24}, {66, 12}} {
			t.Run(fmt.Sprintf("%s_%dx%d", view, size[0], size[1]), func(t *testing.T) {
				t.Parallel()
				drawn, undrawn := started(t, sample(), size[0], size[1]), started(t, sample(), size[0], size[1])
				for _, b := range []*bundle{drawn, undrawn} {
					b.open(view)
					_ = b.View()
				}
				keys := []string{
					"j", "tab", "j", "j", "tab", "end", "k", "W", "j", "shift+tab", "k", "v", "v", "tab",
					"left",
				}
				for _, key := range keys {
					drawn.press(key)
					undrawn.press(key)
					_, _ = drawn.View(), drawn.View()
				}
				require.Equal(t, drawn.View(), undrawn.View())
			})
		}
	}
}

// fieldsOf is a JSON object with n fields.
func fieldsOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"field_%d": {"n": %d, "text": "value %d"}`, i, i, i)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// grown has a view show a small thing or a large one, in colour.
func grown(t *testing.T, view screen.View, n int, keys ...string) *bundle {
	t.Helper()
	b := polled(t, sample(), 140, 40, func(o *Options) { o.Theme = theme.Options{Name: "dark"} })
	b.open(view)
	data := b.env.Data
	switch view {
	case keymap.InExecution:
		d := *data.Execution
		d.Result, d.Config = fieldsOf(n), fieldsOf(n)
		b.apply(screen.FeedExecution, &d)
	case keymap.InWorker:
		d := *data.Worker
		for i := range n {
			d.Running = append(d.Running, monitor.WorkerRun{
				ID: int64(i), ActionRef: "pack.action", Status: "running", Since: frozen,
			})
		}
		b.apply(screen.FeedWorker, &d)
	case keymap.InQueue:
		d := *data.Line
		for i := range n {
			d.List = append(d.List, monitor.QueuedExecution{
				ID: int64(i), Place: int64(i), Since: frozen,
				Source: "by alice",
			})
		}
		b.apply(screen.FeedLine, &d)
		x := *b.source.detail
		x.ID, x.Config = b.queue.SelectedID(), fieldsOf(n)
		b.apply(screen.FeedGlance, &screen.Glance{ExecutionDetail: &x})
	case keymap.InDeadLetter:
		d := *data.LedgerDetail
		body := `{"version": "1", "payload": ` + fieldsOf(n) + "}"
		d.Body = monitor.DeadLetterBody{Format: "json", JSON: []byte(body)}
		d.Headers = []byte(fieldsOf(n))
		b.apply(screen.FeedLedgerDetail, &d)
	case keymap.InWorkflows:
		d := *data.Workflow
		d.Variables = []byte(fieldsOf(n))
		b.apply(screen.FeedWorkflow, &d)
	case keymap.InAlerts:
		d := *data.DeadLetters
		ledger := *d.Ledger
		for i := range n {
			ledger.Recent = append(ledger.Recent, monitor.LedgerEntry{
				ID: int64(10_000 + i), WorkerName: "worker-node-02", Reason: "expired",
			})
		}
		d.Ledger = &ledger
		b.apply(screen.FeedDeadLetters, &d)
	}
	b.press(keys...)
	b.now = b.now.Add(time.Minute)
	_ = b.View()
	return b
}

// Derived data is computed when it is read. A frame with a hundred times as much data allocates hardly more.
// It is not parallel because it counts allocations.
func TestAFrameDerivesNothing(t *testing.T) {
	for _, of := range []struct {
		view screen.View
		keys []string
	}{
		{view: keymap.InExecution},
		{view: keymap.InExecution, keys: []string{"shift+tab"}},
		{view: keymap.InWorker},
		{view: keymap.InQueue},
		{view: keymap.InDeadLetter},
		{view: keymap.InDeadLetter, keys: []string{"tab", "tab"}},
		{view: keymap.InWorkflows},
		{view: keymap.InAlerts},
	} {
		small, large := grown(t, of.view, 40, of.keys...), grown(t, of.view, 4_000, of.keys...)
		few := testing.AllocsPerRun(10, func() { _ = small.View() })
		many := testing.AllocsPerRun(10, func() { _ = large.View() })
		t.Logf("%s %v: %v allocations, of much %v", of.view, of.keys, few, many)
		require.LessOrEqual(t, many, few*1.1+20, "%s %v", of.view, of.keys)
	}
}

// TestAFrameEvaluatesNoWorker changes workers without a reading. A frame shows the health of the last reading.
func TestAFrameEvaluatesNoWorker(t *testing.T) {
	t.Parallel()
	for _, view := range []screen.View{keymap.InOverview, keymap.InWorkers, keymap.InWorker, keymap.InAlerts} {
		t.Run(string(view), func(t *testing.T) {
			t.Parallel()
			source := sample()
			alert := &source.alerts.Open[0]
			alert.Of, alert.Target, alert.View = "worker", "worker-node-02", "workers"
			b := started(t, source, 140, 40)
			b.open(view)
			before := b.View()
			for _, workers := range [][]monitor.Worker{source.workers.List, source.overview.WorkerList} {
				for i := range workers { // which the views have as well
					workers[i].SuspectSince, workers[i].Status = &frozen, "inactive"
				}
			}
			require.Equal(t, before, b.View())
		})
	}
}

// A poll without changes prepares the visible section only, and does not search documents of hidden ones.
func TestAnIdlePollAllocatesLittle(t *testing.T) {
	poll := func(b *bundle) float64 {
		return testing.AllocsPerRun(10, func() {
			again := *b.env.Data.Execution
			b.apply(screen.FeedExecution, &again)
		})
	}
	few, many := poll(grown(t, keymap.InExecution, 40)), poll(grown(t, keymap.InExecution, 4_000))
	require.LessOrEqual(t, many, few*1.1+20) // the race detector empties pools at random
	lists := func(b *bundle) float64 {
		return testing.AllocsPerRun(10, func() { b.apply(screen.FeedWorker, b.env.Data.Worker) })
	}
	few, many = lists(grown(t, keymap.InWorker, 40)), lists(grown(t, keymap.InWorker, 4_000))
	require.LessOrEqual(t, many, few*1.1+20) // the race detector empties pools at random
}
