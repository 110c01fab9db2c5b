package app

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// The cause of an error stands before its text, where a narrow line is cut.
func TestTheCauseComesFirst(t *testing.T) {
	source := sample()
	source.fail = map[screen.Feed]error{screen.FeedBroker: fmt.Errorf("read the broker: %w",
		&broker.ManagementError{
			StatusCode: 401, User: "watcher",
			Reason: "credentials were refused by the node rabbit@a-very-long-name.of.a.host.example",
		})}
	b := started(t, source, 80, 24)
	require.Contains(t, b.View(), "▶▲ the management API refuses the login ")
	require.Contains(t, b.View(), " ✗ the management API refuses the login ")
	require.Contains(t, b.View(), "MQ ? unread", "the broker works")
	overview := *source.overview
	overview.Alerts = &alerting.Alerts{Reading: overview.Reading, Evaluated: true, Open: []alerting.Alert{{
		Rule: "no_replica", Severity: alerting.LevelCritical, State: alerting.AlertFiring, Summary: "no replica runs",
	}}}
	was := source.overview
	source.overview = &overview
	b.press("r")
	require.Regexp(t, `▶■ no replica runs(?s:.*) ▲ the management API refuses the login`, b.View(), "the worst comes first")
	source.overview = was
	source.fail[screen.FeedBroker] = &broker.ManagementError{StatusCode: 418}
	b.press("r")
	require.Contains(t, b.View(), "▶▲ the management API fails (418 I'm a teapot)")
	source.stuck = map[screen.Feed]bool{}
	source.fail[screen.FeedBroker] = context.DeadlineExceeded
	b.press("r")
	require.Contains(t, b.View(), "▶▲ the management API does not answer in time")
}

// A small window shows only the part NEEDS ATTENTION of the overview, with its cursor.
func TestASmallOverviewShowsTheFindings(t *testing.T) {
	b := started(t, sample(), 60, 15)
	require.Regexp(t, `queued 1.204  running 39`, b.frame()[3])
	require.Contains(t, b.frame()[4], "NEEDS ATTENTION")
	require.Contains(t, b.frame()[5], "▶▲ 37 dead letters wait")
	b.press("j", "enter")
	require.EqualValues(t, "queues", b.view)
	calm := sample()
	calm.overview = &alerting.Overview{Reading: calm.overview.Reading}
	calm.broker = &monitor.Broker{Reading: calm.broker.Reading}
	require.NotContains(t, started(t, calm, 60, 15).View(), "THROUGHPUT")
}
