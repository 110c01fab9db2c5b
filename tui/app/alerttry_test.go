package app

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
)

// The remedy for a gone worker is not a drain, and that for a draining one is to uncordon it.
func TestAnAlertAboutAWorkerNamesTheRemedy(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(w *monitor.Worker){
		"if its process is gone, A forgets it": func(w *monitor.Worker) {
			w.Heartbeat = ago(
				monitor.DefaultStaleAfter * 10)
		},
		"A gives it work again": func(w *monitor.Worker) { w.Cordoned, w.Draining = true, true },
		"A drains it or gives":  func(*monitor.Worker) {},
	} {
		source := sample()
		w := source.overview.WorkerList[0]
		w.Heartbeat, w.Status, w.Cordoned, w.Draining = &frozen, "active", false, false
		change(&w)
		source.overview.WorkerList = []monitor.Worker{w}
		source.workers.List = []monitor.Worker{w}
		alert := &source.alerts.Open[0]
		alert.Of, alert.Target, alert.View = "worker", w.Name, "workers"
		b := started(t, source, 140, 40)
		b.press("7")
		require.Contains(t, b.View(), want)
	}
}

// A gone worker is the cause of executions that wait for it, not of failures elsewhere.
func TestAGoneWorkerIsNamedOnlyWhereItIsTheCause(t *testing.T) {
	t.Parallel()
	for measure, named := range map[string]bool{
		"stuck_seconds": true, "execution_timeouts": true,
		"action_failures": false, "retry_rate": false,
	} {
		source := sample()
		w := source.overview.WorkerList[0]
		w.Heartbeat, w.Status, w.Assigned, w.Cordoned, w.Draining = &frozen, "inactive", ptr(2), false, false
		source.overview.WorkerList = []monitor.Worker{w}
		source.workers.List = []monitor.Worker{w}
		alert := &source.alerts.Open[0]
		alert.Of, alert.Target, alert.View, alert.Measure = "action", "core.fail", "executions", measure
		b := started(t, source, 140, 40)
		b.press("7")
		require.Equal(t, named, strings.Contains(b.View(), w.Name+" is inactive, and owns 2 executions"), measure)
	}
}
