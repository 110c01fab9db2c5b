package supervise_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/lab/testkit/supervisetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a service whose two halves a test provides.
type fake struct {
	supervise.Base
	setup func(context.Context) error
	run   func(context.Context)
}

func (f *fake) Start(ctx context.Context) error { return f.Launch(ctx, f.setup, f.run) }

func TestBaseStress(t *testing.T) {
	t.Parallel()
	shapes := map[string]func() *fake{
		"Plain":     func() *fake { return &fake{} },
		"WithSetup": func() *fake { return &fake{setup: func(context.Context) error { return nil }} },
		"EndsEarly": func() *fake { return &fake{run: func(context.Context) {}} },
		"SlowSetup": func() *fake {
			return &fake{
				setup: func(ctx context.Context) error {
					for range 100 {
						if ctx.Err() != nil {
							return ctx.Err()
						}
					}
					return nil
				},
				run: func(ctx context.Context) { <-ctx.Done() },
			}
		},
	}
	for name, create := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			supervisetest.Stress(t, func(*testing.T) supervise.Service { return create() })
		})
	}
}

func TestBaseFailedStart(t *testing.T) {
	t.Parallel()

	t.Run("Error", func(t *testing.T) {
		t.Parallel()
		supervisetest.StressFailedStart(t, func(*testing.T) supervise.Service {
			return &fake{setup: func(context.Context) error { return errors.New("no server") }}
		})
	})

	t.Run("Panic", func(t *testing.T) {
		t.Parallel()
		supervisetest.StressFailedStart(t, func(*testing.T) supervise.Service {
			return &fake{setup: func(context.Context) error { panic("boom") }}
		})
	})

	t.Run("CanBeTriedAgain", func(t *testing.T) {
		t.Parallel()
		attempts := 0
		service := &fake{setup: func(context.Context) error {
			if attempts++; attempts == 1 {
				return errors.New("no server")
			}
			return nil
		}}
		require.ErrorContains(t, service.Start(t.Context()), "no server")
		require.NoError(t, service.Start(t.Context()))
		supervisetest.Closed(t, "Started", service.Started())
		service.Stop()
	})
}

func TestBaseStopDuringStart(t *testing.T) {
	t.Parallel()

	t.Run("InterruptsSetup", func(t *testing.T) {
		t.Parallel()
		entered := make(chan struct{})
		service := &fake{setup: func(ctx context.Context) error {
			close(entered)
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		result := make(chan error, 1)
		go func() { result <- service.Start(context.Background()) }()
		supervisetest.Closed(t, "setup", entered)
		service.Stop()
		err := <-result
		require.ErrorIs(t, err, supervise.ErrStopped)
		require.ErrorIs(t, err, supervise.ErrStopping)
	})

	t.Run("StillRunsSoThatItCanClean", func(t *testing.T) {
		t.Parallel()
		entered, cleaned := make(chan struct{}), make(chan struct{})
		service := &fake{
			setup: func(ctx context.Context) error { close(entered); <-ctx.Done(); return nil },
			run:   func(ctx context.Context) { <-ctx.Done(); close(cleaned) },
		}
		result := make(chan error, 1)
		go func() { result <- service.Start(context.Background()) }()
		supervisetest.Closed(t, "setup", entered)
		service.Stop()
		require.ErrorIs(t, <-result, supervise.ErrStopped)
		supervisetest.Closed(t, "cleaning", cleaned)
	})
}

func TestBaseContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "carried"))
	running := make(chan context.Context, 1)
	service := &fake{run: func(ctx context.Context) { running <- ctx; <-ctx.Done() }}
	require.NoError(t, service.Start(ctx))
	inside := <-running

	cancel()
	require.NoError(t, inside.Err(), "the context of Start must not end the service")
	require.Equal(t, "carried", inside.Value(key{}))

	service.Stop()
	require.ErrorIs(t, context.Cause(inside), supervise.ErrStopping)
	supervisetest.Closed(t, "Done", service.Done())
}

func TestBaseStopWaitsForRun(t *testing.T) {
	t.Parallel()
	release, ended := make(chan struct{}), false
	service := &fake{run: func(ctx context.Context) { <-ctx.Done(); <-release; ended = true }}
	require.NoError(t, service.Start(t.Context()))
	stopped := make(chan struct{})
	go func() { service.Stop(); close(stopped) }()
	select {
	case <-stopped:
		require.FailNow(t, "Stop returned while the service was running")
	case <-service.Done():
		require.FailNow(t, "the service counts as done while it is running")
	default:
	}
	close(release)
	supervisetest.Closed(t, "Stop", stopped)
	require.True(t, ended)
}
