// Package gate separates faults of the installation from the work that they stop.
//
// An error of class store.ClassInstallation (a missing relation, column, function or index, a refused
// privilege or login) says nothing about the message, the execution or the workflow of the failed statement.
// The Gate of a replica handles all such errors. It promises:
//
//   - Such an error decides nothing: no message is acknowledged, dead-lettered or counted as tried, and no
//     execution or workflow ends.
//   - The consumer with the error keeps its batch, unacknowledged and in order, and retries it after a pause
//     of 1 s to 15 s, until it succeeds and the database accepts the refused statement. Meanwhile all
//     consumers of the replica start nothing new. After a minute they return their deliveries in order, so
//     that another replica can handle them.
//   - A loop with the error retries with the same pauses. It does not stop the consumers, which may work
//     without it.
//   - The replica reports the fault once, with the fix: Faults is what /readyz, the alert, doctor and the
//     dashboard show. The log has a line at its start, one a minute, and one at its end.
//   - After the repair all work continues without a restart.
package gate

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// The pauses between attempts, and the interval of logs about a lasting fault.
const (
	pauseFirst, pauseLongest = time.Second, 15 * time.Second
	remindEvery              = time.Minute
	// returnAfter is how long consumers keep their deliveries. It is far below the broker's
	// delivery timeout, after which every redelivery counts towards the delivery limit of a quorum
	// queue.
	returnAfter = time.Minute
)

// Fault is a fault of one consumer or loop of the replica.
type Fault struct {
	// Source is the consumer or the loop.
	Source string `json:"source"`
	// Problem is what is wrong, with the database's message.
	Problem string `json:"problem"`
	// Fix is what an operator must do.
	Fix string `json:"fix"`
	// Since is the start of the fault, by the replica's clock.
	Since time.Time `json:"since"`
}

// String describes the fault in one line.
func (f Fault) String() string { return f.Problem + ": " + f.Fix + " (met by " + f.Source + ")" }

// Config configures a Gate.
type Config struct {
	// Logger receives faults. Nil discards.
	Logger *slog.Logger
	// Refuses checks whether the database still refuses the failed statement, and returns its error. A
	// successful attempt proves nothing: another replica may have done the work, so that nothing was left to
	// write. May be nil.
	Refuses func(ctx context.Context, err error) error
	// Prolonged makes the consumers return their deliveries. The gate calls it once, after it has held them
	// for a minute. It must not block. May be nil.
	Prolonged func()
}

// Gate is the gate of one replica. It is safe for concurrent use. A nil Gate holds the consumer
// that hit a fault, without a report.
type Gate struct {
	cfg Config

	mu       sync.Mutex
	faults   map[string]*fault
	opened   chan struct{} // closed when the gate releases the consumers; nil while it holds none
	began    time.Time     // start of the first present fault
	logged   time.Time     // time of the last log line
	held     time.Time     // when the gate last held the consumers
	released time.Time     // when the gate last released the consumers
	returned bool          // Prolonged was called
}

type fault struct {
	Fault
	cause error
	holds bool // a consumer has hit it
	tries int
}

// New returns an open gate.
func New(cfg Config) *Gate {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Gate{cfg: cfg, faults: map[string]*fault{}}
}

// Retry receives the result of every attempt of a consumer. If err concerns the installation it waits, and
// returns true: the consumer must repeat the attempt without counting it. It returns false for every other
// error, for none, and when ctx ends.
func (g *Gate) Retry(ctx context.Context, source string, err error) bool {
	if store.ClassOf(err) == store.ClassInstallation {
		return supervise.Sleep(ctx, g.record(ctx, source, err, true))
	}
	for still := g.refused(ctx, source, err); still != nil; still = g.refused(ctx, source, err) {
		if !supervise.Sleep(ctx, g.record(ctx, source, still, true)) {
			return false
		}
	}
	g.clear(ctx, source, err)
	return false
}

// refusedTimeout is the timeout of the check whether a statement is still refused.
const refusedTimeout = 5 * time.Second

// refused returns the error with which the database still refuses the failed statement of source, after
// another attempt with the result err; nil if the database accepts it.
func (g *Gate) refused(ctx context.Context, source string, err error) error {
	if g == nil || g.cfg.Refuses == nil || undecided(err) {
		return nil
	}
	g.mu.Lock()
	f := g.faults[source]
	var cause error
	if f != nil {
		cause = f.cause
	}
	g.mu.Unlock()
	if cause == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, refusedTimeout)
	defer cancel()
	if still := g.cfg.Refuses(bounded, cause); store.ClassOf(still) == store.ClassInstallation {
		return &refusedError{still}
	}
	return nil
}

// refusedError reports that the database still refuses the statement of a fault.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// undecided reports whether an error says nothing about statements: the server is away, or the attempt was
// aborted.
func undecided(err error) bool {
	switch store.ClassOf(err) {
	case store.ClassUnreachable, store.ClassUnable, store.ClassCanceled, store.ClassUnknown:
		return true
	default:
		return false
	}
}

// Tick receives the result of every tick of a loop. It returns the pause before the next one if it
// handled the error; zero leaves the error to the loop.
func (g *Gate) Tick(source string, err error) time.Duration {
	ctx := context.Background() //nolint:forbidigo // a log line outlives the tick
	if store.ClassOf(err) == store.ClassInstallation {
		return g.record(ctx, source, err, false)
	}
	if err != nil && g.Holding() && store.ClassOf(err) == store.ClassCanceled {
		return pauseLongest // the tick waited for a held consumer
	}
	if still := g.refused(ctx, source, err); still != nil {
		return g.record(ctx, source, still, false)
	}
	g.clear(ctx, source, err)
	return 0
}

// Enter waits while the consumers are held. A consumer calls it before new work. It returns false
// when ctx ends.
func (g *Gate) Enter(ctx context.Context) bool {
	for ctx.Err() == nil {
		var opened chan struct{}
		if g != nil {
			g.mu.Lock()
			opened = g.opened
			g.mu.Unlock()
		}
		if opened == nil {
			return true
		}
		select {
		case <-ctx.Done():
		case <-opened:
		}
	}
	return false
}

// Holding reports whether the consumers are held.
func (g *Gate) Holding() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened != nil
}

// Unsure reports that ages and heartbeats prove nothing, because the gate holds the consumers or released them
// less than settle ago: they could not write or read reports of workers.
func (g *Gate) Unsure(settle time.Duration) bool {
	return g.Undisturbed() < settle || g.Holding()
}

// Undisturbed is the time since the gate last held the consumers: 0 while it holds them, and the longest
// duration if it never did.
func (g *Gate) Undisturbed() time.Duration {
	if g == nil {
		return math.MaxInt64
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.opened != nil:
		return 0
	case g.released.IsZero():
		return math.MaxInt64
	default:
		return time.Since(g.released)
	}
}

// Faults returns the present faults, the oldest first.
func (g *Gate) Faults() []Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]Fault, 0, len(g.faults))
	for _, f := range g.faults {
		list = append(list, f.Fault)
	}
	slices.SortFunc(list, func(a, b Fault) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Source, b.Source))
	})
	return list
}

// record records an error and returns the pause before the next attempt.
func (g *Gate) record(ctx context.Context, source string, err error, holds bool) time.Duration {
	if g == nil {
		return pauseFirst
	}
	trouble := store.Trouble(err)
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.faults[source]
	if f == nil {
		f = &fault{Fault: Fault{Source: source, Since: now}}
		g.faults[source] = f
	}
	f.Problem, f.Fix, f.holds = trouble.Fact, trouble.Fix, holds
	if again := (*refusedError)(nil); !errors.As(err, &again) {
		f.cause = err
	}
	pause := min(pauseFirst<<min(f.tries, 10), pauseLongest)
	f.tries++
	switch {
	case len(g.faults) == 1 && f.tries == 1:
		g.began, g.logged = now, now
		g.cfg.Logger.ErrorContext(ctx, "Installation is at fault, work is held",
			"source", source, "problem", trouble.Fact, "fix", trouble.Fix, "error", err)
	case now.Sub(g.logged) >= remindEvery:
		g.logged = now
		g.cfg.Logger.ErrorContext(ctx, "Installation is still at fault, work is held",
			"source", source, "sources", len(g.faults), "since", g.began.UTC(),
			"problem", trouble.Fact, "fix", trouble.Fix)
	}
	if !holds {
		return pause
	}
	switch {
	case g.opened == nil:
		g.opened, g.held, g.returned = make(chan struct{}), now, false
	case !g.returned && now.Sub(g.held) >= returnAfter && g.cfg.Prolonged != nil:
		g.returned = true
		g.cfg.Prolonged()
	}
	return pause
}

// clear removes the fault of a source when the database accepts its statements again, even if they fail
// with another error.
func (g *Gate) clear(ctx context.Context, source string, err error) {
	if g == nil || undecided(err) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.faults[source] == nil {
		return
	}
	delete(g.faults, source)
	held := false
	for _, f := range g.faults {
		held = held || f.holds
	}
	if g.opened != nil && !held {
		close(g.opened)
		g.opened, g.released = nil, time.Now()
	}
	if len(g.faults) == 0 {
		g.cfg.Logger.InfoContext(ctx, "Installation is repaired, work continues", "after",
			time.Since(g.began).Round(time.Millisecond))
	}
}
