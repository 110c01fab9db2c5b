package policy

import "time"

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

// Ready says from when on a start is allowed, given when the next one is due.
func (r Rate) Ready(due time.Time) time.Time {
	return due.Add(-time.Duration(max(r.Burst, 1)-1) * r.interval())
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

// Left is how many may still start in the period of now, when used were counted
// in the period that began at counted. A clock that went back counts on in the
// later period.
func (q Quota) Left(now, counted time.Time, used int) int {
	if q.Period(now).After(counted) {
		used = 0
	}
	return max(q.Max-used, 0)
}

// Reset is when the period after that of now begins.
func (q Quota) Reset(now time.Time) time.Time {
	return q.Period(now).Add(max(q.Window, time.Second))
}
