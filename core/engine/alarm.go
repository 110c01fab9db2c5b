package engine

import (
	"slices"
	"sync"
	"time"
)

// mostMoments bounds the alarm's list. The sweep finds executions of dropped times.
const mostMoments = 1000

// alarm fires at the times for which queues wait, for example the end of a rate window. Each batch
// knows its own queues only, so a later request must not postpone an earlier one of another batch.
// It is safe for concurrent use.
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

// after requests a firing after a delay. Requests within one millisecond fire together, at the
// later time.
func (a *alarm) after(after time.Duration, now time.Time) {
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

// fired removes the past times, and waits for the next.
func (a *alarm) fired(now time.Time) {
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
