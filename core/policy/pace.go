package policy

import (
	"math"
	"time"
)

// Rate spaces starts evenly: one every Window/Max, of which up to Burst may
// come at once after a pause (the generic cell rate algorithm). In every window
// at most Max + Burst − 1 executions start (invariant S22). The state of a rate
// is the moment at which the next evenly spaced start is due.
type Rate struct {
	Max    int
	Window time.Duration
	Burst  int
}

// interval is rounded up to what the database can store, so that rounding
// never lets one start more through.
func (r Rate) interval() time.Duration {
	n := time.Duration(max(r.Max, 1))
	every := (r.Window + n - 1) / n
	return (every + time.Microsecond - 1).Truncate(time.Microsecond)
}

// ahead is how far the next start can be due after a start: a burst that was
// used up at once. It is bounded so that no burst makes it overflow.
func (r Rate) ahead() time.Duration {
	interval := r.interval()
	return time.Duration(min(int64(max(r.Burst, 1)), math.MaxInt64/int64(interval)) * int64(interval))
}

// Due is when the next evenly spaced start is due at this moment. One that lies
// further ahead than this rate puts anything off was put off by another, slower
// one, or by a clock that has gone back since, and is not waited for.
func (r Rate) Due(now, due time.Time) time.Time {
	if latest := now.Add(r.ahead()); due.After(latest) {
		return latest
	}
	return due
}

// Ready says from when on a start is allowed, given when the next one is due.
func (r Rate) Ready(due time.Time) time.Time {
	return due.Add(r.interval() - r.ahead())
}

// Start returns when the one after a start at this moment is due.
func (r Rate) Start(now, due time.Time) time.Time {
	if due.Before(now) {
		due = now
	}
	return due.Add(r.interval())
}

// Quota allows Max starts a period; periods of length Window follow each other
// from the beginning of 1970, UTC. The state of a quota is the period that was
// counted last and how many started in it.
type Quota struct {
	Max    int
	Window time.Duration
}

// Period is the beginning of the period that a moment lies in.
func (q Quota) Period(now time.Time) time.Time {
	window := max(q.Window, time.Second)
	since := now.Unix()
	seconds := int64(window / time.Second)
	return time.Unix(since-((since%seconds)+seconds)%seconds, 0).UTC()
}

// Counted is the period that a start at this moment counts in and how many
// started in it, when used were counted in the period that began at counted. A
// clock that went back a little counts on in the later period; one that went
// back by more than a period, after it had been wrong, begins anew instead of
// waiting for the time at which it was.
func (q Quota) Counted(now, counted time.Time, used int) (time.Time, int) {
	period := q.Period(now)
	if period.After(counted) || counted.Sub(period) > max(q.Window, time.Second) {
		return period, 0
	}
	return counted, used
}

// Left is how many may still start in the period of now, when used were counted
// in the period that began at counted.
func (q Quota) Left(now, counted time.Time, used int) int {
	_, used = q.Counted(now, counted, used)
	return max(q.Max-used, 0)
}

// Reset is when the period after that of now begins.
func (q Quota) Reset(now time.Time) time.Time {
	return q.Period(now).Add(max(q.Window, time.Second))
}
