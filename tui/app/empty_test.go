package app

import (
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
)

// TestAnEmptyViewSaysHowItIsFilled: what would be there, and the command or the page that
// leads to it, also in 80 columns.
func TestAnEmptyViewSaysHowItIsFilled(t *testing.T) {
	source := sample()
	reading := source.overview.Reading
	source.overview = &alerting.Overview{
		Reading: reading, Live: monitor.Live{},
		Alerts: &alerting.Alerts{Reading: reading, Evaluated: true, EvaluatedAt: &reading.At},
	}
	source.broker = &monitor.Broker{Reading: source.broker.Reading, Node: source.broker.Node}
	source.queues = &monitor.Queues{Reading: reading}
	source.workers = &monitor.Workers{Reading: reading}
	source.list = nil
	source.dead.Ledger.Recent, source.dead.Queue.Ready, source.dead.Queue.Consumers = nil, 0, 1
	source.alerts = &alerting.Alerts{
		Reading: reading, Evaluated: true, EvaluatedAt: &reading.At,
		Rules: []alerting.AlertRule{{Name: "no_replica", State: alerting.RuleQuiet}},
	}
	source.checks = &monitor.Checks{Reading: reading}
	source.audit = &monitor.Audit{Reading: reading}
	source.flows = fakeFlows{
		board: &monitor.WorkflowBoard{Reading: reading},
		page:  &monitor.InquiryPage{Reading: reading},
	}
	require.Contains(t, started(t, source, 140, 40).View(), "attune-executor run core.echo -p message=hello")
	b := started(t, source, 80, 24)
	for key, want := range map[string]string{
		"2": "attune-executor run core.echo", "3": "attune-executor run core.echo", "4": "attune-executor worker",
		"5": "docs/dead-letters.md", "6": "docs/workflows.md", "7": "attune-executor alerts rules",
		"8": "docs/inquiries.md", "9": "attune-executor serve",
	} {
		b.press(key)
		require.Contains(t, ansi.Strip(b.View()), want, key)
	}
}

// TestAnEmptyViewNamesBothReasons: with a filter and z together, a list never says that there is no such row at all.
func TestAnEmptyViewNamesBothReasons(t *testing.T) {
	b := started(t, sample(), 80, 24)
	for key, what := range map[string]string{
		"2": "queue", "4": "worker", "5": "dead letter", "7": "alert", "9": "queue",
	} {
		b.press(key, "z")
		b.filter("nothing-of-it")
		frame := ansi.Strip(b.View())
		require.Contains(t, frame, "No "+what+" with a problem matches /nothing-of-it (z shows all).", key)
		require.Contains(t, frame, "esc clears the filter; terms: ", key)
		require.NotContains(t, frame, "waits for a person.", key)
	}
}
