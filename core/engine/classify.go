package engine

import (
	"errors"
	"time"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
)

const (
	// maxRefusals is how often the database may refuse a batch because its rows keep changing,
	// before its content is suspected.
	maxRefusals = 3
	// maxRaces is the same for lost races with other transactions.
	maxRaces = 10
	// maxChanges is the same for rules and rows that change while a batch decides; with the pauses
	// between, about a minute. A load of packs must not dead-letter messages.
	maxChanges = 20
)

// classify is the only place that decides what an error of a batch means for its messages. tries is
// how often the batch has failed. Deliveries of a blocked batch wait as long as necessary; a
// delivery that keeps failing alone is dead-lettered.
func classify(err error, tries int) batch.Verdict {
	switch {
	case errors.Is(err, scheduler.ErrNewRules):
		return batch.AtMost(tries, maxChanges)
	case errors.Is(err, scheduler.ErrConflict):
		return batch.AtMost(tries, maxRefusals)
	}
	switch store.ClassOf(err) {
	case store.ClassUnreachable, store.ClassUnable, store.ClassUnknown, store.ClassInstallation:
		return batch.Again
	case store.ClassRetryable:
		return batch.AtMost(tries, maxRaces)
	case store.ClassRefused, store.ClassConflict:
		return batch.AtMost(tries, maxRefusals)
	case store.ClassLocked, store.ClassCanceled: // canceled by the batch's own timeout: a part of it takes too long
		return batch.Blocked
	default:
		return batch.Suspect
	}
}

// maxAttempts is how often a delivery may fail alone before it is dead-lettered; with the pauses
// between, about half a minute.
const maxAttempts = 7

// laterPause is the wait before the next try of a delivery that failed alone.
func laterPause(attempts int) time.Duration {
	const first, longest = 250 * time.Millisecond, 15 * time.Second
	return min(first<<min(attempts-1, 10), longest)
}
