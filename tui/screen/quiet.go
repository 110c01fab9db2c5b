package screen

import (
	"time"

	"github.com/attune-go/attune/core/alerting"
)

// MuteTime is how long an alert stays muted.
const MuteTime = 15 * time.Minute

// Quiet holds the acknowledged and muted alerts of this session; it is not stored. The zero value is
// ready.
type Quiet struct {
	acked map[string]bool
	muted map[string]time.Time // until when
}

// AlertKey identifies an alert by its rule and its target.
func AlertKey(rule, target string) string { return rule + "\x1f" + target }

// Acked reports whether an alert was acknowledged.
func (q *Quiet) Acked(key string) bool { return q.acked[key] }

// Acknowledge toggles the acknowledgement of an alert and returns the new state.
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

// MutedFor is how much longer an alert is muted; zero if it is not.
func (q *Quiet) MutedFor(key string, clock time.Time) time.Duration {
	return max(q.muted[key].Sub(clock), 0)
}

// Mute mutes an alert for MuteTime, or unmutes it, and returns the new state.
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

// Loud are the findings without a cause that are not muted. The second result counts the muted ones.
func (e *Env) Loud(found []alerting.Finding) (loud []alerting.Finding, muted int) {
	for i := range found {
		switch f := &found[i]; {
		case f.Cause != "":
		case f.Rule != "" && e.Quiet.MutedFor(AlertKey(f.Rule, f.About), e.Clock) > 0:
			muted++
		default:
			loud = append(loud, *f)
		}
	}
	return loud, muted
}
