package app

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// The cause stands at the end of an error, which must not be cut.
func TestWithoutDataTheCauseIsShownInFull(t *testing.T) {
	source := sample()
	source.fail = map[screen.Feed]error{
		screen.FeedBroker: errors.New(
			"read the broker: list queues: the management API answered 401 Unauthorized: not_authorized Login failed"),
	}
	b := started(t, source, 80, 24)
	b.press("9")
	require.Contains(t, strings.Join(strings.Fields(b.View()), " "), "cannot be read: read the broker: list queues: the management API answered 401 Unauthorized: not_authorized Login failed The dashboard tries again")
}

// Unread data has no number, and the cause of an outage of the broker is named.
func TestDeadLettersWithoutAnAnswer(t *testing.T) {
	source := sample()
	source.fail = map[screen.Feed]error{screen.FeedDeadLetters: errors.New("away")}
	b := started(t, source, 100, 30)
	b.press("5")
	require.Contains(t, b.View(), "cannot be read: away")
	require.NotContains(t, b.View(), "0 dead letters")

	source = sample()
	source.dead.Queue, source.dead.Sources = nil, []monitor.Source{
		{Name: monitor.SourceDatabase},
		{Name: monitor.SourceBroker, Error: "list queues: context deadline exceeded\nread the overview: refused"},
	}
	b = started(t, source, 100, 30)
	b.press("5")
	require.Contains(t, b.View(), "broker   ? list queues: context deadline exceeded; read the overview: refused")
	source.fail = map[screen.Feed]error{screen.FeedBroker: context.DeadlineExceeded}
	b.run(b.refresh())
	require.Contains(t, b.View(), "broker   ? the management API does not answer in time")
}
