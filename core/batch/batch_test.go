package batch_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/batch"
)

var errBad = errors.New("bad")

// One item that fails costs its neighbours a logarithm of tries, and stands alone in the
// end; the others succeed in their order.
func TestABadItemIsIsolated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var done, alone []int
		tries := 0
		r := batch.Runner[[]int]{
			Try: func(_ context.Context, items []int) error {
				tries++
				if slices.Contains(items, 5) {
					return errBad
				}
				return nil
			},
			Done:     func(_ context.Context, items []int) { done = append(done, items...) },
			Classify: func([]int, error, int) batch.Verdict { return batch.Suspect },
			Split:    func(items []int, _ batch.Failure) [][]int { return batch.Halves(items) },
			Alone: func(_ context.Context, items []int, f batch.Failure) bool {
				require.ErrorIs(t, f.Err, errBad)
				alone = append(alone, items...)
				return false
			},
		}
		require.NoError(t, r.Run(t.Context(), []int{0, 1, 2, 3, 4, 5, 6, 7}))
		require.Equal(t, []int{5}, alone)
		require.Equal(t, []int{0, 1, 2, 3, 4, 6, 7}, done)
		require.Equal(t, 7, tries)
	})
}

// A temporary error is retried after growing, bounded pauses until the context ends.
func TestABatchIsTriedAgainUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var longest time.Duration
		r := batch.Runner[[]int]{
			Try:      func(context.Context, []int) error { return errBad },
			Classify: func([]int, error, int) batch.Verdict { return batch.Again },
			Failed:   func(_ context.Context, _ []int, f batch.Failure) { longest = max(longest, f.Pause) },
		}
		require.ErrorIs(t, r.Run(ctx, []int{1}), context.DeadlineExceeded)
		require.Less(t, longest, 10*time.Second)
		require.Greater(t, longest, time.Second)
	})
}

// A try during which nothing can succeed does not count.
func TestAHeldTryDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tried, counted := 0, 0
		r := batch.Runner[[]int]{
			Try: func(context.Context, []int) error {
				if tried++; tried < 5 {
					return errBad
				}
				return nil
			},
			Hold:     func(_ context.Context, err error) bool { return err != nil && tried < 4 },
			Classify: func(_ []int, _ error, tries int) batch.Verdict { counted = tries; return batch.Again },
		}
		require.NoError(t, r.Run(t.Context(), []int{1}))
		require.Equal(t, 5, tried)
		require.Equal(t, 1, counted, "the three held ones do not count")
	})
}

// A batch that was changed when it stood alone is tried again.
func TestAChangedItemIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		small := false
		r := batch.Runner[[]int]{
			Try: func(context.Context, []int) error {
				if !small {
					return errBad
				}
				return nil
			},
			Classify: func([]int, error, int) batch.Verdict { return batch.Suspect },
			Split:    func(items []int, _ batch.Failure) [][]int { return batch.Halves(items) },
			Alone:    func(context.Context, []int, batch.Failure) bool { small = true; return true },
		}
		require.NoError(t, r.Run(t.Context(), []int{1}))
	})
}
