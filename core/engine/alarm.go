package engine

import (
	"slices"
	"sync"
	"time"
)

// mostMoments bounds what an alarm remembers. The sweep finds what it forgets.
const mostMoments = 1000

// alarm rings at the moments for which somebody waits: the end of a pause, of a
// window, of a limit's second. Each batch knows of its own queues only, so that a
// later moment that one asks for does not put off an earlier one of another. Safe
// for several goroutines.
type alarm struct {
	C <-chan time.Time

	mu      sync.Mutex
	timer   *time.Timer
	moments []time.Time // in order
}

func newAlarm() *alarm {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &alarm{C: timer.C, timer: timer}
}

// in asks for a ring after so long. What is asked for within a millisecond of
// another moment rings with the later of both.
func (a *alarm) in(after time.Duration, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := now.Add(after).Truncate(time.Millisecond).Add(time.Millisecond)
	where, there := slices.BinarySearchFunc(a.moments, at, time.Time.Compare)
	if there || where == mostMoments {
		return
	}
	a.moments = slices.Insert(a.moments, where, at)
	a.moments = a.moments[:min(len(a.moments), mostMoments)]
	a.set(now)
}

// rang forgets the moments that have come, and waits for the next.
func (a *alarm) rang(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	come, _ := slices.BinarySearchFunc(a.moments, now.Add(time.Nanosecond), time.Time.Compare)
	a.moments = slices.Delete(a.moments, 0, come)
	a.set(now)
}

func (a *alarm) set(now time.Time) {
	if len(a.moments) == 0 {
		a.timer.Stop()
		return
	}
	a.timer.Reset(max(a.moments[0].Sub(now), 0))
}
