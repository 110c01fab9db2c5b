package app

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// A worker that sends heartbeats and consumes nothing is so in every view, and each
// says that the broker is why.
func TestEveryViewShowsTheSameHealthOfAWorker(t *testing.T) {
	source := sample()
	for i := range source.broker.Queues {
		if source.broker.Queues[i].Name == monitor.WorkerQueue(1) {
			source.broker.Queues[i].Consumers = 0
		}
	}
	b := started(t, source, 140, 40)
	require.Contains(t, b.View(), "1 deaf", "the overview counts it")
	b.press("4")
	require.Regexp(t, `worker-python-01 +deaf `, b.View(), "the list")
	b.press("j", "j")
	require.Contains(t, b.View(), "▲ status says active but its queue has no consumer: trust the broker.")
	b.press("enter")
	require.Contains(t, b.View(), "✗ deaf", "its page")
}

// While the database does not answer, workers keep the health of the last reading.
func TestWorkersDoNotFallSilentWithTheDatabase(t *testing.T) {
	source := sample()
	b := started(t, source, 140, 40)
	before, _ := b.env.Data.Overview.Assessed(b.env.Data.Broker)
	b.now = b.now.Add(10 * time.Minute)
	source.fail = map[screen.Feed]error{screen.FeedOverview: errors.New("connection refused")}
	b.press("r")
	require.Contains(t, b.View(), "PG ✗")
	require.Contains(t, b.View(), b.env.Num(before.Stale)+" stale", "no more than before")
	require.NotContains(t, b.View(), "✗ worker-python-03")
}
