package screen

import (
	"time"

	"github.com/attune-go/attune/core/alerting"
)

// MuteTime is how long a muted alert stays out of the way.
const MuteTime = 15 * time.Minute

// Quiet is which alerts were acknowledged in this session, and which are muted until
// when. Nobody but this dashboard knows of it. The zero value is ready.
type Quiet struct {
	acked map[string]bool
	muted map[string]time.Time
}

// AlertKey names an alert: its rule, and what that is about.
func AlertKey(rule, target string) string { return rule + "\x1f" + target }

// Acked reports whether an alert was acknowledged.
func (q *Quiet) Acked(key string) bool { return q.acked[key] }

// Acknowledge acknowledges an alert, or takes that back; it reports which it did.
func (q *Quiet) Acknowledge(key string) bool {
	if q.acked[key] {
		delete(q.acked, key)
		return false
	}
	if q.acked == nil {
		q.acked = map[string]bool{}
	}
	q.acked[key] = true
	return true
}

// MutedFor is how much longer an alert is muted; zero when it is not.
func (q *Quiet) MutedFor(key string, clock time.Time) time.Duration {
	return max(q.muted[key].Sub(clock), 0)
}

// Mute mutes an alert for MuteTime, or has it heard again; it reports which it did.
func (q *Quiet) Mute(key string, clock time.Time) bool {
	if q.MutedFor(key, clock) > 0 {
		delete(q.muted, key)
		return false
	}
	if q.muted == nil {
		q.muted = map[string]time.Time{}
	}
	q.muted[key] = clock.Add(MuteTime)
	return true
}

// Loud are the findings that count: neither muted nor explained by another. It tells
// how many are muted too.
func (e *Env) Loud(found []alerting.Finding) (loud []alerting.Finding, muted int) {
	for i := range found {
		if f := &found[i]; f.Cause != "" {
			continue
		} else if f.Rule != "" && e.Quiet.MutedFor(AlertKey(f.Rule, f.About), e.Clock) > 0 {
			muted++
			continue
		}
		loud = append(loud, found[i])
	}
	return loud, muted
}
