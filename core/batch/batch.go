// Package batch runs work in batches, each as one transaction, and isolates the item that makes a
// batch fail.
//
//	batch ── error ──▶ Classify ── Again ─▶ pause, the same batch
//	                      │ no
//	                      ▼
//	              Split into parts, each tried by itself
//	                      │ nothing to split
//	                      ▼
//	           Alone: postpone, or dead-letter
//
// The caller decides what an error means and what happens to an item that fails alone. The Runner
// has the loop and its pauses, and stops with the context.
package batch

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

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

// Failure describes the failure of a batch.
type Failure struct {
	Err     error
	Tries   int // number of failures, including this one
	Verdict Verdict
	// Pause is how long the Runner waits before the next try, if the verdict is Again.
	Pause time.Duration
}

// Runner runs batches of type B. Try, Classify, Split and Alone are required.
type Runner[B any] struct {
	// Try runs the batch once, as one transaction.
	Try func(ctx context.Context, b B) error
	// Hold blocks while no batch can succeed, and reports whether it did: then the try does not
	// count. It is called after every try. Gate.Retry is one.
	Hold func(ctx context.Context, err error) bool
	// Done processes a batch that succeeded.
	Done func(ctx context.Context, b B)
	// Classify returns the verdict on an error after so many tries.
	Classify func(b B, err error, tries int) Verdict
	// Failed is called after every failure: it counts and logs.
	Failed func(ctx context.Context, b B, f Failure)
	// Split returns the parts of a batch, in the order in which they are tried. A batch
	// without parts cannot be split.
	Split func(b B, f Failure) []B
	// Alone handles a batch that cannot be split. It returns true if it changed the batch, which is
	// then tried again after a pause.
	Alone func(ctx context.Context, b B, f Failure) bool

	// FirstPause and LongestPause bound the pauses between tries. Default 100 ms and 5 s.
	FirstPause, LongestPause time.Duration
}

// Run finishes a batch: it succeeds, or each of its parts succeeds or is handled alone. It returns
// an error only when ctx ends.
func (r Runner[B]) Run(ctx context.Context, b B) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 100*time.Millisecond, 5*time.Second
	if r.FirstPause > 0 {
		pauses.InitialInterval = r.FirstPause
	}
	if r.LongestPause > 0 {
		pauses.MaxInterval = r.LongestPause
	}
	for tries := 1; ; tries++ {
		err := r.Try(ctx, b)
		switch {
		case r.Hold != nil && r.Hold(ctx, err):
			tries--
			continue
		case err == nil:
			if r.Done != nil {
				r.Done(ctx, b)
			}
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		f := Failure{Err: err, Tries: tries, Verdict: r.Classify(b, err, tries)}
		pause := pauses.NextBackOff()
		if f.Verdict == Again {
			f.Pause = pause
		}
		if r.Failed != nil {
			r.Failed(ctx, b, f)
		}
		if f.Verdict != Again {
			if parts := r.Split(b, f); len(parts) > 0 {
				return r.runAll(ctx, parts)
			}
			if !r.Alone(ctx, b, f) {
				return nil
			}
		}
		if !supervise.Sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

func (r Runner[B]) runAll(ctx context.Context, parts []B) error {
	for _, part := range parts {
		if err := r.Run(ctx, part); err != nil {
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
