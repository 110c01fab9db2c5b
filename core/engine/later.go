package engine

import (
	"sort"
	"time"
)

// later holds deliveries that could not be decided now: their row is not there
// yet, or somebody else holds it. They stay unacknowledged, so that they come
// again if the replica ends, and they are tried again after a growing pause; they
// are never put straight back to the queue, where they would spin.
type later struct {
	timer *time.Timer
	items []waiting // in order of due
}

type waiting struct {
	item
	due time.Time
}

func newLater() *later {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &later{timer: timer}
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
	l.arm(now)
}

// take returns what is due, at most n. A delivery whose connection has gone is
// dropped: its message comes again.
func (l *later) take(n int, now time.Time) []item {
	var due []item
	taken := 0
	for len(due) < n && taken < len(l.items) && !l.items[taken].due.After(now) {
		if it := l.items[taken].item; !it.delivery.Stale() {
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
