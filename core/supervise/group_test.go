package supervise_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/lab/testkit/supervisetest"
)

// diary records the starts and stops of services in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.lines...)
}

func (d *diary) service(name string, failure error) *fake {
	return &fake{
		setup: func(context.Context) error { d.note("start " + name); return failure },
		run:   func(ctx context.Context) { <-ctx.Done(); d.note("stop " + name) },
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()

	t.Run("StopsInOppositeOrder", func(t *testing.T) {
		t.Parallel()
		var (
			book  diary
			group supervise.Group
		)
		group.Add("store", book.service("store", nil))
		group.Add("broker", book.service("broker", nil))
		group.Add("loops", book.service("loops", nil))
		require.Equal(t, []string{"store", "broker", "loops"}, group.Names())
		require.NoError(t, group.Start(t.Context()))
		require.ErrorIs(t, group.Start(t.Context()), supervise.ErrAlreadyStarted)
		require.NoError(t, group.Stop(t.Context()))
		require.NoError(t, group.Stop(t.Context()))
		require.Equal(t, []string{
			"start store", "start broker", "start loops", "stop loops", "stop broker", "stop store",
		}, book.read())
	})

	t.Run("RollsBackAHalfStart", func(t *testing.T) {
		t.Parallel()
		var (
			book  diary
			group supervise.Group
		)
		failure := errors.New("refused")
		group.Add("store", book.service("store", nil))
		group.Add("broker", book.service("broker", nil))
		group.Add("loops", book.service("loops", failure))
		group.Add("http", book.service("http", nil))
		err := group.Start(t.Context())
		require.ErrorIs(t, err, failure)
		require.EqualError(t, err, "start loops: refused")
		require.NoError(t, group.Stop(t.Context()))
		require.Equal(t, []string{"start store", "start broker", "start loops", "stop broker", "stop store"}, book.read())
	})

	t.Run("StopUnstarted", func(t *testing.T) {
		t.Parallel()
		var (
			book  diary
			group supervise.Group
		)
		group.Add("store", book.service("store", nil))
		require.NoError(t, group.Stop(t.Context()))
		require.ErrorIs(t, group.Start(t.Context()), supervise.ErrStopped)
		require.Empty(t, book.read())
	})

	t.Run("StopIsBounded", func(t *testing.T) {
		t.Parallel()
		var (
			book  diary
			group supervise.Group
		)
		release := make(chan struct{})
		group.Add("store", book.service("store", nil))
		group.Add("stuck", &fake{run: func(context.Context) { <-release }})
		require.NoError(t, group.Start(t.Context()))

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := group.Stop(ctx)
		require.ErrorIs(t, err, context.Canceled)

		close(release)
		require.NoError(t, group.Stop(t.Context()), "a later Stop waits for the rest")
		require.Equal(t, []string{"start store", "stop store"}, book.read())
	})
}

func TestGroupStopNamesTheServiceThatHangs(t *testing.T) {
	t.Parallel()
	var group supervise.Group
	release, asked := make(chan struct{}), make(chan struct{})
	group.Add("stuck", &fake{run: func(ctx context.Context) { <-ctx.Done(); close(asked); <-release }})
	require.NoError(t, group.Start(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- group.Stop(ctx) }()
	supervisetest.Closed(t, "the request to stop", asked)
	cancel()
	require.EqualError(t, <-result, "stop stuck: context canceled")
	close(release)
	require.NoError(t, group.Stop(t.Context()))
}
