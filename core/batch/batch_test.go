package batch_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/batch"
)

var errBad = errors.New("bad")

// numbers is work with batches of numbers.
type numbers struct {
	try     func() error // nil refuses batches with a 5
	verdict batch.Verdict
	change  bool // Alone changes the batch

	done, alone []int
	failures    []batch.Failure
	tries       int
}

func (n *numbers) Try(_ context.Context, items []int) (err error) {
	n.tries++
	switch {
	case n.try != nil:
		err = n.try()
	case slices.Contains(items, 5):
		err = errBad
	}
	if err == nil {
		n.done = append(n.done, items...)
	}
	return err
}

func (n *numbers) Failed(_ context.Context, _ []int, f batch.Failure) batch.Verdict {
	n.failures = append(n.failures, f)
	return n.verdict
}

func (*numbers) Split(items []int, _ batch.Failure) [][]int { return batch.Halves(items) }

func (n *numbers) Alone(_ context.Context, items []int, _ batch.Failure) bool {
	n.alone = append(n.alone, items...)
	return n.change
}

// One item that fails costs its neighbours a logarithm of tries, and stands alone in the
// end; the others succeed in their order.
func TestABadItemIsIsolated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &numbers{verdict: batch.Suspect}
		require.NoError(t, batch.Run(t.Context(), nil, "", n, []int{0, 1, 2, 3, 4, 5, 6, 7}))
		require.ErrorIs(t, n.failures[0].Err, errBad)
		require.Equal(t, []int{5}, n.alone)
		require.Equal(t, []int{0, 1, 2, 3, 4, 6, 7}, n.done)
		require.Equal(t, 7, n.tries)
	})
}

// A temporary error is retried after growing, bounded pauses until the context ends.
func TestABatchIsTriedAgainUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n := &numbers{try: func() error { return errBad }}
		require.ErrorIs(t, batch.Run(ctx, nil, "", n, []int{1}), context.DeadlineExceeded)
		var longest time.Duration
		for _, f := range n.failures {
			longest = max(longest, f.Pause)
		}
		require.Less(t, longest, 10*time.Second)
		require.Greater(t, longest, time.Second)
	})
}

// Tries during which nothing can succeed do not count: a fault of the installation, which holds the batch, and an
// outage.
func TestATryCountsOnlyIfItSaysSomethingAboutTheBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, log := newGate()
		errs := []error{errColumn, errAway, errColumn, errColumn, errBad, errAway, nil}
		n := &numbers{}
		n.try = func() error { return errs[n.tries-1] }
		require.NoError(t, batch.Run(t.Context(), gate, "rounds", n, []int{1}))
		require.Equal(t, 7, n.tries)
		var counted []int
		for _, f := range n.failures {
			counted = append(counted, f.Tries)
		}
		require.Equal(t, []int{0, 1, 1}, counted)
		require.False(t, gate.Holding())
		require.Equal(t, 1, log.count("Installation is at fault"), "the server that is away has repaired nothing")
		require.Equal(t, 1, log.count("Installation is repaired"))
	})
}

// The success of a batch that was not held releases no other one of its source: it may have begun before the fault.
func TestAnotherBatchReleasesNoHeldOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, _ := newGate()
		var repaired atomic.Bool
		held := &numbers{try: func() error {
			if repaired.Load() {
				return nil
			}
			return errColumn
		}}
		ended := make(chan error, 1)
		go func() { ended <- batch.Run(t.Context(), gate, "rounds", held, []int{1}) }()
		synctest.Wait()
		require.NoError(t, batch.Run(t.Context(), gate, "rounds", &numbers{}, []int{2}))
		require.True(t, gate.Holding())
		repaired.Store(true)
		require.NoError(t, <-ended)
		require.False(t, gate.Holding())
		require.Empty(t, held.failures)
	})
}

// A batch that was changed when it stood alone is tried again.
func TestAChangedItemIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &numbers{verdict: batch.Suspect, change: true}
		n.try = func() error {
			if len(n.alone) == 0 {
				return errBad
			}
			return nil
		}
		require.NoError(t, batch.Run(t.Context(), nil, "", n, []int{1}))
	})
}
