package policy

import (
	"math"
	"time"
)

// Rate spaces starts evenly: one every Window/Max, of which up to Burst may come at once after a
// pause (the generic cell rate algorithm). In every window at most Max + Burst − 1 executions start
// (invariant S22). The state of a rate is the time at which the next evenly spaced start is due.
type Rate struct {
	Max    int
	Window time.Duration
	Burst  int
}

// interval is rounded up to the resolution of the database, so that rounding never allows an extra
// start.
func (r Rate) interval() time.Duration {
	n := time.Duration(max(r.Max, 1))
	every := (r.Window + n - 1) / n
	return (every + time.Microsecond - 1).Truncate(time.Microsecond)
}

// ahead is how far in the future the next start can be due: after a burst that was used at once. It
// is bounded against overflow.
func (r Rate) ahead() time.Duration {
	interval := r.interval()
	return time.Duration(min(int64(max(r.Burst, 1)), math.MaxInt64/int64(interval)) * int64(interval))
}

// Due is when the next evenly spaced start is due. A time further ahead than this rate allows comes
// from a slower rate, or from a clock that was set back; it is bounded.
func (r Rate) Due(now, due time.Time) time.Time {
	if latest := now.Add(r.ahead()); due.After(latest) {
		return latest
	}
	return due
}

// Ready is when a start is allowed, given when the next one is due.
func (r Rate) Ready(due time.Time) time.Time {
	return due.Add(r.interval() - r.ahead())
}

// Start returns when the next start is due after a start at this time.
func (r Rate) Start(now, due time.Time) time.Time {
	if due.Before(now) {
		due = now
	}
	return due.Add(r.interval())
}

// Quota allows Max starts a period; periods of length Window follow each other from the beginning
// of 1970, UTC. The state of a quota is the last counted period and its number of starts.
type Quota struct {
	Max    int
	Window time.Duration
}

// Period is the start of the period that contains a time.
func (q Quota) Period(now time.Time) time.Time {
	window := max(q.Window, time.Second)
	since := now.Unix()
	seconds := int64(window / time.Second)
	return time.Unix(since-((since%seconds)+seconds)%seconds, 0).UTC()
}

// Counted returns the period of a start at this time and its number of starts, given used starts in
// the period that began at counted. If the clock was set back a little, the later period continues.
// If it was set back by more than a period, the count starts anew instead of waiting for that time.
func (q Quota) Counted(now, counted time.Time, used int) (time.Time, int) {
	period := q.Period(now)
	if period.After(counted) || counted.Sub(period) > max(q.Window, time.Second) {
		return period, 0
	}
	return counted, used
}

// Left is how many executions may still start in the period of now, given used starts in the period
// that began at counted.
func (q Quota) Left(now, counted time.Time, used int) int {
	_, used = q.Counted(now, counted, used)
	return max(q.Max-used, 0)
}

// Reset is when the next period begins.
func (q Quota) Reset(now time.Time) time.Time {
	return q.Period(now).Add(max(q.Window, time.Second))
}
