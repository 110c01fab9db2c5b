package engine

import (
	"context"
	"errors"
	"time"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
)

// answer is what becomes of a batch that failed.
type answer int

const (
	// again: the same batch after a pause. The database is away, or has lost a
	// race for us; no message is to blame, however long it takes.
	again answer = iota
	// blocked: somebody else holds what part of the batch is about. It is bisected,
	// and the deliveries concerned wait by themselves, for as long as it takes.
	blocked
	// suspect: something in the batch makes it fail. It is bisected to find what, and
	// a delivery that keeps failing by itself is dead-lettered in the end.
	suspect
)

const (
	// maxRefusals is how often the database may refuse a batch because rows keep
	// changing under it before its content is suspected.
	maxRefusals = 3
	// maxRaces is the same for transactions that lose against others.
	maxRaces = 10
	// maxMoves is the same for rules and rows that change while a batch decides on
	// them; with the pauses between, about a minute. No message is to blame for a
	// load of packs.
	maxMoves = 20
)

// classify is the one place where it is decided what an error of a batch means
// for its messages. tries is how often the batch has failed.
func classify(err error, tries int) answer {
	switch {
	case errors.Is(err, scheduler.ErrNewRules):
		return atMost(tries, maxMoves)
	case errors.Is(err, scheduler.ErrConflict):
		return atMost(tries, maxRefusals)
	case store.IsLockTimeout(err):
		return blocked
	}
	switch store.ClassOf(err) {
	case store.ClassUnreachable, store.ClassUnable, store.ClassUnknown, store.ClassInstallation:
		return again
	case store.ClassRetryable:
		return atMost(tries, maxRaces)
	case store.ClassRefused, store.ClassConflict:
		return atMost(tries, maxRefusals)
	case store.ClassCanceled:
		return blocked // the batch's own deadline: something in it takes too long
	default:
		if errors.Is(err, context.DeadlineExceeded) {
			return blocked
		}
		return suspect
	}
}

func atMost(tries, most int) answer {
	if tries <= most {
		return again
	}
	return suspect
}

// maxAttempts is how often a delivery may fail by itself before it is
// dead-lettered; with the pauses between, about half a minute.
const maxAttempts = 7

// laterPause is the wait before a delivery that failed by itself is tried once
// more.
func laterPause(attempts int) time.Duration {
	const first, longest = 250 * time.Millisecond, 15 * time.Second
	return min(first<<min(attempts-1, 10), longest)
}
