package policy

import (
	"math"
	"time"
)

// Adaptive lowers a limit while executions fail or take too long and raises it again while they
// succeed: additive increase, multiplicative decrease. It stays between Min and the policy's
// threshold.
type Adaptive struct {
	Min     int           // never below; at least 1
	Latency time.Duration // a run longer than this counts as bad; 0: only failures do
}

// AdaptiveCooldown is the pause between two decreases: failures meanwhile started under the old
// limit.
const AdaptiveCooldown = 5 * time.Second

// Adapted is the state of an adaptive limit.
type Adapted struct {
	Limit   float64   // 0: not adapted yet; the threshold applies
	Lowered time.Time // when it was last lowered
}

// Bound keeps the state within Min and the threshold in force.
func (a Adaptive) Bound(s Adapted, threshold int) Adapted {
	if s.Limit == 0 {
		s.Limit = float64(threshold)
	}
	s.Limit = math.Min(math.Max(s.Limit, float64(max(a.Min, 1))), float64(threshold))
	return s
}

// Whole is the number of slots of a state.
func (s Adapted) Whole() int { return max(int(s.Limit+1e-9), 1) }

// After is the state after one execution has ended. bad says that it failed or took too long.
func (a Adaptive) After(s Adapted, threshold int, bad bool, now time.Time) Adapted {
	s = a.Bound(s, threshold)
	switch {
	case !bad:
		s.Limit += 1 / s.Limit
	case now.Sub(s.Lowered) >= AdaptiveCooldown:
		s.Limit, s.Lowered = s.Limit/2, now
	}
	return a.Bound(s, threshold)
}
