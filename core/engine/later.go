package engine

import (
	"slices"
	"sort"
	"sync/atomic"
	"time"
)

// later holds deliveries that cannot be decided now: their row does not exist yet, or another
// transaction holds it. They stay unacknowledged, so that the broker delivers them again if the
// replica ends. They are tried again after a growing pause, and never requeued at once, because
// they would spin.
//
// Messages without a row have a bounded share of the prefetch, over all lanes, because a database
// that was restored beside a live broker has thousands of them. Beyond the bound they become dead
// letters at once. Nothing is lost: the sweeps find rows that appear later.
type later struct {
	timer  *time.Timer
	items  []waiting     // in order of due
	absent *atomic.Int64 // items without a row, of all users of the prefetch
}

// maxAbsent is how many deliveries without a row may wait at a time.
const maxAbsent = 64

// Large messages without a row wait for a second only, because the bytes of unsettled messages are
// bounded too.
const (
	largeAbsent    = 16 << 10
	largeAbsentFor = 3 // tries
)

// lastAwait reports that an item without a row has waited long enough for it.
func (it *item) lastAwait() bool {
	return it.attempts+1 >= maxAttempts || it.attempts+1 >= largeAbsentFor && len(it.delivery.Body) > largeAbsent
}

type waiting struct {
	item
	due time.Time
}

func newLater(absent *atomic.Int64) *later {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &later{timer: timer, absent: absent}
}

// add postpones an item. From here on its delivery is settled alone.
func (l *later) add(it item, now time.Time) {
	it.attempts++
	if !it.alone {
		it.delivery, it.alone = it.delivery.Detach(), true
	}
	due := now.Add(laterPause(it.attempts))
	at := sort.Search(len(l.items), func(i int) bool { return l.items[i].due.After(due) })
	l.items = slices.Insert(l.items, at, waiting{item: it, due: due})
	if it.absent {
		l.absent.Add(1)
	}
	l.arm(now)
}

// await postpones an item without a row. When too many wait, it removes and returns the one with
// the most tries, to be given up.
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

// take returns at most n due items. It drops a delivery whose connection is lost: the broker
// delivers its message again.
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
