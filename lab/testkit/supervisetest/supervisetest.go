// Package supervisetest checks that a supervise.Service keeps its promises however Start and Stop
// are called. Every service runs its tests through Stress.
package supervisetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/supervise"
)

// stuckAfter is how long a call may take before it counts as stuck.
const stuckAfter = time.Minute

// Stress hammers services made by create with starts and stops: started twice,
// stopped twice, stopped unstarted, and both from many goroutines at once. Each
// call of create must return a fresh service that can start.
func Stress(t *testing.T, create func(t *testing.T) supervise.Service) {
	t.Helper()

	t.Run("StartTwiceIsAnError", func(t *testing.T) {
		t.Parallel()
		service := create(t)
		require.NoError(t, service.Start(t.Context()))
		Closed(t, "Started", service.Started())
		require.ErrorIs(t, service.Start(t.Context()), supervise.ErrAlreadyStarted)
		stop(t, service)
	})

	t.Run("StopTwice", func(t *testing.T) {
		t.Parallel()
		service := create(t)
		require.NoError(t, service.Start(t.Context()))
		stop(t, service)
		stop(t, service)
		require.ErrorIs(t, service.Start(t.Context()), supervise.ErrStopped)
	})

	t.Run("StopUnstarted", func(t *testing.T) {
		t.Parallel()
		service := create(t)
		stop(t, service)
		require.ErrorIs(t, service.Start(t.Context()), supervise.ErrStopped)
		require.False(t, isClosed(service.Started()), "a service that never started says it has")
	})

	t.Run("StartWithEndedContext", func(t *testing.T) {
		t.Parallel()
		service := create(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, service.Start(ctx))
		require.False(t, isClosed(service.Started()))
		stop(t, service)
	})

	t.Run("StartAndStopRace", func(t *testing.T) {
		t.Parallel()
		for range 5 {
			race(t, create(t))
		}
	})
}

// race calls Start and Stop from many goroutines; at most one Start succeeds
// and afterwards nothing runs.
func race(t *testing.T, service supervise.Service) {
	t.Helper()
	var (
		wg        sync.WaitGroup
		mu        sync.Mutex
		successes int
	)
	for i := range 8 {
		wg.Go(func() {
			if i%2 == 1 {
				service.Stop()
				return
			}
			if service.Start(context.Background()) == nil {
				mu.Lock()
				defer mu.Unlock()
				successes++
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	Closed(t, "racing Start and Stop", done)
	stop(t, service)
	require.LessOrEqual(t, successes, 1)
}

// StressFailedStart checks a service whose start fails: the error comes back,
// the service does not count as started, and Stop returns.
func StressFailedStart(t *testing.T, create func(t *testing.T) supervise.Service) {
	t.Helper()
	service := create(t)
	require.Error(t, service.Start(t.Context()))
	require.False(t, isClosed(service.Started()), "a failed start must not count as started")
	require.NotErrorIs(t, service.Start(t.Context()), supervise.ErrAlreadyStarted)
	stop(t, service)
	stop(t, service)
}

// Closed waits until the channel is closed and fails the test if it takes too
// long; what names the thing waited for.
func Closed(t *testing.T, what string, channel <-chan struct{}) {
	t.Helper()
	timer := time.NewTimer(stuckAfter)
	defer timer.Stop()
	select {
	case <-channel:
	case <-timer.C:
		require.FailNow(t, "stuck", "%s did not happen within %s", what, stuckAfter)
	}
}

func stop(t *testing.T, service supervise.Service) {
	t.Helper()
	done := make(chan struct{})
	go func() { service.Stop(); close(done) }()
	Closed(t, "Stop", done)
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}
