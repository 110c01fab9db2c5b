// Package batch owns what happens with an error of a batch: how often the batch is tried again and after which pause,
// when it is held, and how the item is isolated that makes it fail. All consumers run their batches by Run, and nothing
// below repeats them: their transactions are store.Store.Once.
//
//	batch ── error ──▶ of the installation ─▶ the Gate holds it
//	                      │ no
//	                      ▼
//	                   Failed ── Again ─▶ pause, the same batch
//	                      │ no
//	                      ▼
//	              Split into parts, each tried by itself
//	                      │ nothing to split
//	                      ▼
//	           Alone: postpone, or dead-letter
package batch

import (
	"context"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// Verdict is the meaning of an error for the batch.
type Verdict int

const (
	// Again means that the server is away, or that the batch lost a race. No item is the cause: the same
	// batch is tried again after a pause.
	Again Verdict = iota
	// Blocked means that another transaction holds what an item needs.
	Blocked
	// Slow means that an item takes longer than a batch may.
	Slow
	// Suspect means that an item makes the batch fail.
	Suspect
)

// AtMost returns Again for so many tries, and then Suspect.
func AtMost(tries, most int) Verdict {
	if tries <= most {
		return Again
	}
	return Suspect
}

// Failure describes the failure of a batch.
type Failure struct {
	Err error
	// Tries is the number of failures, including this one. Failures while the server is away do not count.
	Tries int
	// Pause is how long Run waits before the next try, if the verdict is Again.
	Pause   time.Duration
	Verdict Verdict // for Split and Alone
}

// Work is what a consumer does with batches of type B.
type Work[B any] interface {
	// Try runs the batch once, as one transaction, and processes its result.
	Try(ctx context.Context, b B) error
	// Failed counts and logs a failure, and returns its verdict.
	Failed(ctx context.Context, b B, f Failure) Verdict
	// Split returns the parts of a batch, in the order in which they are tried. A batch
	// without parts cannot be split.
	Split(b B, f Failure) []B
	// Alone handles a batch that cannot be split. It returns true if it changed the batch, which is
	// then tried again after a pause.
	Alone(ctx context.Context, b B, f Failure) bool
}

// The pauses between tries grow from the first to the longest.
const firstPause, longestPause = 100 * time.Millisecond, 5 * time.Second

// Run finishes a batch: it succeeds, or each of its parts succeeds or is handled alone. The gate holds it under
// the name source. Run returns an error only when ctx ends.
func Run[B any](ctx context.Context, gate *Gate, source string, work Work[B], b B) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = firstPause, longestPause
	held, tries := false, 0
	for {
		err := work.Try(ctx, b)
		// Only a batch that was held releases others: its success proves nothing about the batches of another lane.
		if held || store.ClassOf(err) == store.ClassInstallation {
			if held = true; gate.Retry(ctx, source, err) {
				continue
			}
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !undecided(err):
			tries++
		}
		f := Failure{Err: err, Tries: tries, Pause: pauses.NextBackOff()}
		if f.Verdict = work.Failed(ctx, b, f); f.Verdict != Again {
			if parts := work.Split(b, f); len(parts) > 0 {
				return runAll(ctx, gate, source, work, parts)
			}
			if !work.Alone(ctx, b, f) {
				return nil
			}
		}
		if !supervise.Sleep(ctx, f.Pause) {
			return context.Cause(ctx)
		}
	}
}

func runAll[B any](ctx context.Context, gate *Gate, source string, work Work[B], parts []B) error {
	for _, part := range parts {
		if err := Run(ctx, gate, source, work, part); err != nil {
			return err
		}
	}
	return nil
}

// Halves splits a list in its middle. A list of one has no halves.
func Halves[T any](list []T) [][]T {
	if len(list) < 2 {
		return nil
	}
	middle := len(list) / 2
	return [][]T{list[:middle], list[middle:]}
}

// Singles splits a list into its items. A list of one has no parts.
func Singles[T any](list []T) [][]T {
	if len(list) < 2 {
		return nil
	}
	return slices.Collect(slices.Chunk(list, 1))
}
