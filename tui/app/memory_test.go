package app

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
)

// TestPollsKeepTheirMemory polls while queues, workers and executions come and go. The heap does not grow with the
// number of polls. It is not parallel because it measures the heap.
func TestPollsKeepTheirMemory(t *testing.T) {
	b := polled(t, sample(), 140, 40)
	views := keymap.Scopes
	poll := 0
	several := func() uint64 {
		for range 250 {
			poll++
			if poll%30 == 0 {
				b.open(views[poll/30%len(views)])
			}
			b.unshare()
			s := b.source
			fresh := int64(poll / 10)
			queue, worker := &s.queues.List[poll%len(s.queues.List)], &s.workers.List[poll%len(s.workers.List)]
			queue.ID, queue.Group = 1_000+fresh, fmt.Sprint("tenant=", fresh)
			worker.ID, worker.Name = 1_000+fresh, fmt.Sprint("worker-", fresh)
			s.list = slices.Clone(s.list)
			for i := range s.list {
				s.list[i].ID += int64(len(s.list))
			}
			b.later(2 * time.Second)
			_ = b.View()
		}
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	several()
	before := several()
	after := several()
	t.Logf("%d kB before, %d kB after", before>>10, after>>10)
	require.Less(t, after, before+1<<20)
}
