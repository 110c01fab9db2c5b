package app

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/screen"
)

// TestAQueueAtWorkIsNotExpectedToLastForEver: while none of its executions has ended, how
// long it needs is not known; of a paused queue it is.
func TestAQueueAtWorkIsNotExpectedToLastForEver(t *testing.T) {
	t.Parallel()
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

// TestAPausedQueueNeverDrains: completions before the pause do not count.
func TestAPausedQueueNeverDrains(t *testing.T) {
	t.Parallel()
	b := started(t, sample(), 160, 40)
	b.press("2")
	for range 5 {
		b.now = b.now.Add(20 * time.Second)
		list := *b.source.queues
		list.At, list.List = list.At.Add(20*time.Second), slices.Clone(list.List)
		for i := range list.List {
			list.List[i].Completed += 10
		}
		b.source.queues = &list
		b.send(dueMsg{feed: screen.FeedQueues, gen: b.chain(screen.FeedQueues).gen})
	}
	require.Regexp(t, `core\.http_request.*4/4.*30/m .*[0-9]+m`, b.View())
	require.Regexp(t, `pack\.sync.*30/m .*never`, b.View())
}
