package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// TestAQueueAtWorkIsNotExpectedToLastForEver: while none of its executions has ended, how
// long it needs is not known; of a paused queue it is.
func TestAQueueAtWorkIsNotExpectedToLastForEver(t *testing.T) {
	b := started(t, sample(), 160, 40)
	b.press("2")
	require.Contains(t, b.View(), "ETA")
	for range 5 {
		b.now = b.now.Add(20 * time.Second)
		list := *b.source.queues
		list.At = list.At.Add(20 * time.Second)
		b.source.queues = &list
		b.send(dueMsg{feed: screen.FeedQueues, gen: b.chain(screen.FeedQueues).gen})
	}
	require.NotRegexp(t, `core\.http_request.*never`, b.View())
	require.Regexp(t, `core\.http_request.*4/4.* -- `, b.View())
	require.Regexp(t, `pack\.sync.*never`, b.View())
}

// The list shows the forecast of the page of the queue; a paused queue has none.
func TestAPausedQueueNeverDrains(t *testing.T) {
	source := sample()
	for i := range source.queues.List {
		source.queues.List[i].Empties = &monitor.Expected{At: new(frozen.Add(95 * time.Minute))}
	}
	source.queues.List[2].Empties = &monitor.Expected{Basis: "unknown: no worker is alive"}
	b := started(t, source, 160, 40)
	b.press("2")
	require.Regexp(t, `core\.http_request.*4/4.* 1h35m `, b.View())
	require.Regexp(t, `pack\.sync.* never `, b.View())
	require.NotContains(t, b.View(), "unknown: no worker")
}
