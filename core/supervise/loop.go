package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"
)

// Defaults of a LoopConfig.
const (
	LoopTimeoutDefault    = 30 * time.Second
	LoopMaxBackoffDefault = 30 * time.Second
)

// wakeFloor is the minimum pause between a failed tick and a Wake, so that frequent wakes do not
// turn a failing loop into a busy one.
const wakeFloor = time.Second

// LoopConfig configures a Loop.
type LoopConfig struct {
	// Failure is the prefix of the error line about a failed tick, which ends with the cause: a
	// published line that operators search for. Without it the line is the warning "Loop tick
	// failed".
	Failure string
	// Interval is the pause between the end of a tick and the next. Required.
	Interval time.Duration
	// Jitter spreads each pause by up to this share of it in both directions
	// (0.2 is ±20 %), so that replicas started together drift apart.
	Jitter float64
	// Logger receives one warning per failed tick. Nil discards.
	Logger *slog.Logger
	// MaxBackoff caps the pause after repeated failures; a longer Interval is
	// kept. LoopMaxBackoffDefault if zero.
	MaxBackoff time.Duration
	// Metrics are not exported if nil.
	Metrics *Metrics
	// Name is the loop's name in logs and metrics. Required.
	Name string
	// Now is the clock of LastTick and LastSuccess. time.Now if nil.
	Now func() time.Time
	// Tick is the repeated function. Its context ends at the timeout or at Stop. An error or a
	// panic is logged and counted, and the loop continues. Required.
	Tick func(ctx context.Context) error
	// Timeout is the deadline of one tick. LoopTimeoutDefault if zero.
	Timeout time.Duration
}

// Loop repeats one function until it is stopped. The first tick comes at once.
// No outcome of a tick ends the loop: errors lengthen the pause (doubling up to
// MaxBackoff), panics are treated as errors.
type Loop struct {
	Base
	cfg   LoopConfig
	wake  chan struct{}
	watch func(err error) time.Duration // may be nil

	mu          sync.Mutex
	lastTick    time.Time
	lastSuccess time.Time
	lastErr     error
}

var _ Service = (*Loop)(nil)

// OrDefault returns a setting if it is positive, and otherwise its default.
func OrDefault[T cmp.Ordered](setting, otherwise T) T {
	var zero T
	if setting > zero {
		return setting
	}
	return otherwise
}

// NewLoop makes a loop; it panics without Name, Interval or Tick, because that is a mistake in the
// program and not in its configuration.
func NewLoop(cfg LoopConfig) *Loop {
	if cfg.Name == "" || cfg.Interval <= 0 || cfg.Tick == nil {
		panic(fmt.Sprintf("supervise: loop %q needs a name, a positive interval and a tick", cfg.Name))
	}
	cfg.Timeout = OrDefault(cfg.Timeout, LoopTimeoutDefault)
	cfg.MaxBackoff = OrDefault(cfg.MaxBackoff, LoopMaxBackoffDefault)
	cfg.Metrics = cmp.Or(cfg.Metrics, NewMetrics(nil))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Loop{cfg: cfg, wake: make(chan struct{}, 1)}
}

// Watch registers a function that receives every tick's error, nil after success. If it returns a
// pause, the loop does not log the error, and ticks again after that pause. Watch is called before
// Start.
func (l *Loop) Watch(watch func(err error) time.Duration) { l.watch = watch }

// Name returns the loop's name.
func (l *Loop) Name() string { return l.cfg.Name }

// Start starts the ticks.
func (l *Loop) Start(ctx context.Context) error {
	if err := l.Launch(ctx, nil, l.run); err != nil {
		return fmt.Errorf("start loop %s: %w", l.cfg.Name, err)
	}
	return nil
}

// Wake requests a tick now. Wakes during a tick cause one tick after it. After a failure a wake
// takes effect once a second has passed. Wake never blocks and may be called at any time.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// TickTimeout is the longest gap between ticks of a working loop: the longest pause, a tick that
// uses its whole timeout, and some slack.
func (l *Loop) TickTimeout() time.Duration {
	pause := max(l.cfg.Interval, l.cfg.MaxBackoff)
	return pause + time.Duration(float64(pause)*l.cfg.Jitter) + l.cfg.Timeout + loopSlack
}

// LoopFailing is how long a loop may fail: longer than one lost race lasts.
const LoopFailing = time.Minute

// SuccessTimeout is the longest time without a success of a working loop: TickTimeout, and LoopFailing while its ticks
// fail. A loop that pauses for longer may fail once.
func (l *Loop) SuccessTimeout() time.Duration {
	limit := l.TickTimeout()
	switch {
	case l.LastError() == nil:
		return limit
	case l.cfg.Interval > LoopFailing/2:
		return limit + l.cfg.Interval + time.Duration(float64(l.cfg.Interval)*l.cfg.Jitter)
	}
	return min(limit, LoopFailing)
}

// loopSlack is the delay that a busy machine may add.
const loopSlack = 15 * time.Second

// LastTick returns when the last tick ended, whatever its outcome; zero before the first.
func (l *Loop) LastTick() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastTick
}

// LastSuccess returns when the last tick without an error ended; zero before the first. Health is measured by it: a
// tick that fails has done nothing.
func (l *Loop) LastSuccess() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastSuccess
}

// LastError returns the error of the last tick, nil if it succeeded.
func (l *Loop) LastError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastErr
}

func (l *Loop) run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		pause, err := l.tick(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			failures = 0
		} else if failures++; pause == 0 {
			pause = l.pause(failures)
		}
		floor := min(pause, wakeFloor) // wakes after a failure are ignored this long
		if floor > 0 && !l.wait(ctx, floor, nil) {
			return
		}
		if pause == 0 {
			pause = l.pause(0)
		}
		if !l.wait(ctx, pause-floor, l.wake) {
			return
		}
	}
}

// tick runs one tick and records its result. pause comes from the loop's watcher.
func (l *Loop) tick(ctx context.Context) (pause time.Duration, err error) {
	tickCtx, cancel := context.WithTimeoutCause(ctx, l.cfg.Timeout,
		fmt.Errorf("tick of %s took longer than %s: %w", l.cfg.Name, l.cfg.Timeout, context.DeadlineExceeded))
	defer cancel()
	begin := time.Now()
	err = recovered(tickCtx, l.cfg.Tick)
	if errors.Is(err, context.DeadlineExceeded) && tickCtx.Err() != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(tickCtx), err)
	}
	if err != nil && ctx.Err() != nil {
		err = nil // Stop interrupted it; the tick did not fail
	}
	if l.watch != nil {
		pause = l.watch(err)
	}
	if err != nil {
		level, text := slog.LevelWarn, "Loop tick failed"
		if l.cfg.Failure != "" {
			level, text = slog.LevelError, l.cfg.Failure+": "+err.Error()
		}
		if pause > 0 {
			level = slog.LevelDebug
		}
		//nolint:sloglint // published lines carry their cause
		l.cfg.Logger.Log(ctx, level, text, "loop", l.cfg.Name, "error", err)
	}
	now := l.cfg.Now()
	l.mu.Lock()
	l.lastTick, l.lastErr = now, err
	if err == nil {
		l.lastSuccess = now
	}
	l.mu.Unlock()
	l.cfg.Metrics.observe(l.cfg.Name, now, time.Since(begin), err)
	return pause, err
}

// pause returns how long to wait after so many failures in a row.
func (l *Loop) pause(failures int) time.Duration {
	pause := l.cfg.Interval
	for range failures {
		if pause >= l.cfg.MaxBackoff {
			break
		}
		pause = min(2*pause, l.cfg.MaxBackoff)
	}
	if l.cfg.Jitter > 0 {
		pause += time.Duration(
			float64(pause) * l.cfg.Jitter * (2*rand.Float64() - 1)) //nolint:gosec // jitter needs no secrecy
	}
	return max(pause, 0)
}

// wait pauses until the time is over or a wake comes; false means stop.
func (l *Loop) wait(ctx context.Context, pause time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-wake:
		return true
	}
}

// recovered runs a function and turns its panic into an error with the stack.
func recovered(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("panic: %w\n%s", value, debug.Stack())
		default:
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return run(ctx)
}

// Sleep waits and reports whether the whole pause has passed; it is false when
// the context ended first.
func Sleep(ctx context.Context, pause time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
