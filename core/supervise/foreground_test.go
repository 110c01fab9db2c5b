package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

func TestRunUntilSignal(t *testing.T) {
	t.Parallel()
	logger := telemetry.Discard()
	ok := func(context.Context) error { return nil }

	t.Run("StopsWhenTheContextEnds", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		stopped := false
		err := supervise.RunUntilSignal(ctx, logger, time.Minute, supervise.Foreground{
			Start: func(context.Context) error { cancel(); return nil },
			Stop: func(ctx context.Context) error {
				stopped = true
				return ctx.Err() // the end of the outer context must not cut the stop short
			},
		})
		require.NoError(t, err)
		require.True(t, stopped)
	})

	t.Run("FailedStart", func(t *testing.T) {
		t.Parallel()
		failure := errors.New("no schema")
		err := supervise.RunUntilSignal(t.Context(), logger, 1e9, supervise.Foreground{
			Start: func(context.Context) error { return failure }, Stop: ok,
		})
		require.ErrorIs(t, err, failure)
	})

	t.Run("EndedByItself", func(t *testing.T) {
		t.Parallel()
		done := make(chan struct{})
		close(done)
		err := supervise.RunUntilSignal(t.Context(), logger, 1e9, supervise.Foreground{
			Start: ok, Stop: ok, Done: done, Why: "its name was taken",
		})
		require.ErrorIs(t, err, supervise.ErrEnded)
		require.ErrorContains(t, err, "its name was taken")
	})

	t.Run("StopIsBounded", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		err := supervise.RunUntilSignal(ctx, logger, 1e6, supervise.Foreground{
			Start: func(context.Context) error { cancel(); return nil },
			Stop: func(ctx context.Context) error {
				<-ctx.Done()
				return fmt.Errorf("stop batches: %w", context.Cause(ctx))
			},
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
