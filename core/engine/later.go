package engine

import (
	"slices"
	"sort"
	"sync/atomic"
	"time"
)

// later holds deliveries that could not be decided now: their row is not there
// yet, or somebody else holds it. They stay unacknowledged, so that they come
// again if the replica ends, and they are tried again after a growing pause; they
// are never put straight back to the queue, where they would spin.
//
// Messages without a row have a bounded share of the prefetch, over all lanes, because a database that
// was restored beside a live broker has thousands of them. What exceeds it becomes a dead
// letter at once. Nothing is lost by that: a row that comes later is found by the sweeps.
type later struct {
	timer  *time.Timer
	items  []waiting     // in order of due
	absent *atomic.Int64 // items without a row, of all that share the prefetch
}

// maxAbsent is how many deliveries without a row wait for it at a time.
const maxAbsent = 64

type waiting struct {
	item
	due time.Time
}

func newLater(absent *atomic.Int64) *later {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &later{timer: timer, absent: absent}
}

// add puts an item off. Its delivery is settled by itself from here on.
func (l *later) add(it item, now time.Time) {
	it.attempts++
	if !it.alone {
		it.delivery, it.alone = it.delivery.Detach(), true
	}
	due := now.Add(laterPause(it.attempts))
	at := sort.Search(len(l.items), func(i int) bool { return l.items[i].due.After(due) })
	l.items = append(l.items, waiting{})
	copy(l.items[at+1:], l.items[at:])
	l.items[at] = waiting{item: it, due: due}
	if it.absent {
		l.absent.Add(1)
	}
	l.arm(now)
}

// await puts off an item whose row is not there. When too many wait already, the one
// that was tried most often is taken out and returned, to be given up.
func (l *later) await(it item, now time.Time) (excess item, full bool) {
	it.absent = true
	l.add(it, now)
	if l.absent.Load() <= maxAbsent {
		return excess, false
	}
	at := -1
	for i, one := range l.items {
		if one.absent && (at < 0 || one.attempts > l.items[at].attempts) {
			at = i
		}
	}
	excess = l.items[at].item
	l.items = slices.Delete(l.items, at, at+1)
	l.absent.Add(-1)
	excess.attempts-- // it was not tried since
	l.arm(now)
	return excess, true
}

// take returns what is due, at most n. A delivery whose connection has gone is
// dropped: its message comes again.
func (l *later) take(n int, now time.Time) []item {
	var due []item
	taken := 0
	for len(due) < n && taken < len(l.items) && !l.items[taken].due.After(now) {
		it := l.items[taken].item
		if it.absent {
			l.absent.Add(-1)
			it.absent = false
		}
		if !it.delivery.Stale() {
			due = append(due, it)
		}
		taken++
	}
	l.items = append(l.items[:0], l.items[taken:]...)
	l.arm(now)
	return due
}

func (l *later) arm(now time.Time) {
	if len(l.items) == 0 {
		l.timer.Stop()
		return
	}
	l.timer.Reset(max(l.items[0].due.Sub(now), 0))
}
