package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Foreground is what a program runs until a signal.
type Foreground struct {
	Start func(ctx context.Context) error
	Stop  func(ctx context.Context) error
	Done  <-chan struct{} // closed when it ends by itself; may be nil
	Why   string          // says why it would
}

// ErrEnded is returned by RunUntilSignal where the foreground ended by itself.
var ErrEnded = errors.New("it ended by itself")

// errSignal is the cause of a context that a signal ended. Only a second signal is ever shown.
var errSignal = errors.New("asked a second time to stop at once")

// RunUntilSignal starts f, waits for a request to stop, which is SIGTERM or another signal of the table in signals.go,
// and stops f within the timeout. A signal during the start interrupts it, a second one the stop.
func RunUntilSignal(ctx context.Context, logger *slog.Logger, timeout time.Duration, f Foreground) error {
	signals, unwatch := requests(ctx, logger)
	defer unwatch()

	startCtx, stopStart := signalled(ctx, signals, 0)
	defer stopStart()
	if err := f.Start(startCtx); err != nil {
		if errors.Is(context.Cause(startCtx), errSignal) {
			logger.InfoContext(ctx, "Stopped before the start was complete")
			return nil
		}
		return err
	}
	alone := false
	select {
	case <-startCtx.Done(): // a signal, or the end of ctx
	case <-f.Done:
		alone = true
		stopStart()
	}
	logger.InfoContext(ctx, "Stopping", "within", timeout.String())

	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	stopCtx, release := signalled(bounded, signals, sameRequest)
	defer release()
	if err := f.Stop(stopCtx); err != nil {
		return fmt.Errorf("stop in order: %w: nothing is lost, another replica or the next start goes on", err)
	}
	if alone {
		return fmt.Errorf("%w: %s", ErrEnded, f.Why)
	}
	logger.InfoContext(ctx, "Stopped")
	return nil
}

// signalled returns a context that the next signal ends, not counting those of the first moment.
func signalled(parent context.Context, signals <-chan struct{}, deaf time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		for begin := time.Now(); ; {
			select {
			case <-signals:
				if time.Since(begin) >= deaf {
					cancel(errSignal)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
