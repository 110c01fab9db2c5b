package supervise

import (
	"context"
	"errors"
	"sync"
)

// Service runs in the background.
type Service interface {
	// Start returns when the service has started or failed to. The context bounds the start; it
	// does not end the service later.
	Start(ctx context.Context) error
	// Started is closed once the service has started.
	Started() <-chan struct{}
	// Stop stops the service and waits until no part of it runs. It may be called any number of
	// times, from any goroutine, also before Start.
	Stop()
}

// ErrAlreadyStarted is returned by a second Start.
var ErrAlreadyStarted = errors.New("the service was already started")

// ErrStopped is returned by a Start that comes after, or is interrupted by, Stop.
var ErrStopped = errors.New("the service was stopped")

// ErrStopping is the cause (context.Cause) of the cancellation of a service's context by Stop.
var ErrStopping = errors.New("the service is stopping")

type state int

const (
	stateNew state = iota
	stateStarting
	stateStarted
	stateStopped
)

// Base makes the type that embeds it a safe Service: the type writes a Start
// that calls Launch and inherits Started, Done and Stop. The zero value is
// ready. A Base must not be copied after first use.
type Base struct {
	mu      sync.Mutex
	state   state
	started chan struct{}
	done    chan struct{} // closed when nothing runs and nothing will
	settled chan struct{} // closed when the running start has returned
	cancel  context.CancelCauseFunc
}

// Launch starts the service: setup runs in the caller's goroutine and may fail the start; then run
// is given a goroutine of its own until Stop cancels its context. Either may be nil: without run
// the service only occupies its place until Stop. If setup fails the service is as if never started
// and setup must have undone what it did.
//
// If Stop comes during setup, the context of setup is cancelled; should setup succeed nevertheless,
// run is called with a cancelled context so that what setup opened is closed in one place.
func (b *Base) Launch(ctx context.Context, setup func(context.Context) error, run func(context.Context)) error {
	runCtx, settled, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer close(settled)

	if setup != nil {
		setupCtx, release := joinCancel(runCtx, ctx)
		err = recovered(setupCtx, setup) // after a panic, the state stays correct and Stop does not wait for ever
		release()
		if err != nil {
			return b.startFailed(err)
		}
	}
	return b.commit(runCtx, run)
}

func (b *Base) begin(ctx context.Context) (context.Context, chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.init()
	switch b.state {
	case stateStarting, stateStarted:
		return nil, nil, ErrAlreadyStarted
	case stateStopped:
		return nil, nil, ErrStopped
	case stateNew:
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	b.state = stateStarting
	b.settled = make(chan struct{})
	runCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	b.cancel = cancel
	return runCtx, b.settled, nil
}

// startFailed puts the service back to new, or leaves it stopped if Stop came meanwhile.
func (b *Base) startFailed(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancel(err)
	if b.state == stateStopped {
		close(b.done)
		return errors.Join(ErrStopped, err)
	}
	b.state = stateNew
	return err
}

// commit gives run its goroutine and announces the start.
func (b *Base) commit(runCtx context.Context, run func(context.Context)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if run == nil {
		run = func(ctx context.Context) { <-ctx.Done() }
	}
	go func() {
		defer close(b.done)
		run(runCtx)
	}()
	if b.state == stateStopped {
		return ErrStopped
	}
	b.state = stateStarted
	close(b.started)
	return nil
}

// Started is closed once the service has started. It stays open if the start failed.
func (b *Base) Started() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.init()
	return b.started
}

// Done is closed when the service has ended, whether Stop ended it or its run
// function returned by itself.
func (b *Base) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.init()
	return b.done
}

// Stop ends the service and waits until its run function has returned. A Start
// under way is interrupted and waited for.
func (b *Base) Stop() {
	b.mu.Lock()
	b.init()
	switch b.state {
	case stateNew:
		b.state = stateStopped
		close(b.done)
	case stateStarting, stateStarted:
		b.state = stateStopped
		b.cancel(ErrStopping)
	case stateStopped:
	}
	settled := b.settled
	b.mu.Unlock()
	if settled != nil {
		<-settled
	}
	<-b.done
}

// init makes the channels; the caller holds the lock.
func (b *Base) init() {
	if b.started == nil {
		b.started = make(chan struct{})
		b.done = make(chan struct{})
	}
}

// joinCancel returns a context with the values of parent that ends with either.
func joinCancel(parent, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() { stop(); cancel(nil) }
}
