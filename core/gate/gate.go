// Package gate keeps faults of the installation apart from the work that
// meets them.
//
// An error of class store.ClassInstallation (a relation, a column, a function or an
// index that is missing, a privilege or a login that is refused) says nothing about
// the message, the execution or the workflow whose statement failed. The Gate of a
// replica is the one place that such errors go to. It promises:
//
//   - Nothing is decided because of such an error: no message is acknowledged,
//     dead-lettered or counted as tried, no execution or workflow ends.
//   - The consumer that met it keeps its batch, unacknowledged and in order, and
//     tries the same batch again after a pause of 1 s to 15 s, until it succeeds and
//     the database accepts the statement that it refused. Meanwhile all consumers of
//     the replica begin nothing new. After a minute they give back what they were
//     delivered, in its order, so that another replica can handle it.
//   - A loop that meets it goes on trying, with the same pauses. It does not stop the
//     consumers, for they may be well without it.
//   - The fault is told once for the whole replica, with what to do about it: Faults
//     is what /readyz, the alert, doctor and the dashboard show, and the log has one
//     line when it begins, one a minute while it lasts, and one when it is over.
//   - When the installation is mended, everything goes on by itself, without a restart.
package gate

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// The pauses between tries, and how often a lasting fault is logged.
const (
	pauseFirst, pauseLongest = time.Second, 15 * time.Second
	remindEvery              = time.Minute
	// returnAfter is how long consumers keep what they have been delivered. It is far
	// below the time after which a broker takes deliveries back again and again, each
	// of which counts towards the delivery limit of a quorum queue.
	returnAfter = time.Minute
)

// Fault is what one consumer or loop of the replica has met.
type Fault struct {
	// Source is the consumer or the loop.
	Source string `json:"source"`
	// Problem is what the database says, with the code of its error.
	Problem string `json:"problem"`
	// Fix is what an operator does about it.
	Fix string `json:"fix"`
	// Since is when the source met it first, by the clock of the replica.
	Since time.Time `json:"since"`
}

// String is the fault in one line, for people.
func (f Fault) String() string { return f.Problem + ": " + f.Fix + " (met by " + f.Source + ")" }

// Config is what a Gate depends on.
type Config struct {
	// Logger is told of faults. Nil discards.
	Logger *slog.Logger
	// Refuses asks whether the database still refuses the statement that met an error,
	// and returns what it says. A try that succeeds proves nothing: what it was about
	// may have been done by another replica meanwhile, so that nothing was left to
	// write. May be nil.
	Refuses func(ctx context.Context, err error) error
	// Prolonged is called once in a while that consumers have been held for a minute,
	// so that they give back what other replicas may be able to handle. It must not
	// block. It may be nil.
	Prolonged func()
}

// Gate is the gate of one replica. It may be used by many goroutines. A nil Gate
// holds the consumer that met a fault, without a report.
type Gate struct {
	cfg Config

	mu       sync.Mutex
	faults   map[string]*fault
	opened   chan struct{} // closed when no consumer is held any more; nil while none is
	began    time.Time     // when the first of the present faults was met
	told     time.Time     // when the log was told last
	held     time.Time     // when the consumers were stopped
	released time.Time     // when the consumers went on
	returned bool
}

type fault struct {
	Fault
	cause error
	holds bool // a consumer has met it
	tries int
}

// New makes an open gate.
func New(cfg Config) *Gate {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Gate{cfg: cfg, faults: map[string]*fault{}}
}

// Retry is told how every try of a consumer went. If err concerns the installation it
// waits, and returns true: the consumer is to run the same try again, and to count
// nothing. It returns false for every other error, for none, and when ctx ends.
func (g *Gate) Retry(ctx context.Context, source string, err error) bool {
	if store.ClassOf(err) == store.ClassInstallation {
		return supervise.Sleep(ctx, g.met(ctx, source, err, true))
	}
	for still := g.refused(ctx, source, err); still != nil; still = g.refused(ctx, source, err) {
		if !supervise.Sleep(ctx, g.met(ctx, source, still, true)) {
			return false
		}
	}
	g.passed(ctx, source, err)
	return false
}

// refusedTimeout bounds the question whether a statement is still refused.
const refusedTimeout = 5 * time.Second

// refused returns the error with which the database still refuses what source met,
// after a try of the source that ended with err; nil if it is accepted.
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

// refusedError says that the statement of a fault was asked about in vain.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// undecided reports whether an error says nothing about statements: a server that is
// away, and a try that was cut off.
func undecided(err error) bool {
	switch store.ClassOf(err) {
	case store.ClassUnreachable, store.ClassUnable, store.ClassCanceled, store.ClassUnknown:
		return true
	default:
		return false
	}
}

// Tick is told how every tick of a loop went, and returns the pause before the next
// one if the gate has seen to the error; zero leaves it to the loop.
func (g *Gate) Tick(source string, err error) time.Duration {
	ctx := context.Background() //nolint:forbidigo // a log line outlives the tick
	if store.ClassOf(err) != store.ClassInstallation {
		if err != nil && g.Holding() && store.ClassOf(err) == store.ClassCanceled {
			return pauseLongest // it has waited for a consumer that is held
		}
		if still := g.refused(ctx, source, err); still != nil {
			return g.met(ctx, source, still, false)
		}
		g.passed(ctx, source, err)
		return 0
	}
	return g.met(ctx, source, err, false)
}

// Enter waits while the consumers are held. A consumer calls it before it begins
// anything new. It returns false when ctx ends.
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

// Unsure reports that age and silence say nothing, because the consumers are held or
// were until settle ago: reports of workers could not be written, or were not read.
func (g *Gate) Unsure(settle time.Duration) bool {
	return g.Undisturbed() < settle || g.Holding()
}

// Undisturbed is how long ago the consumers were held last: 0 while they are held, and
// the longest duration if they never were.
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

// Faults lists what is wrong now, what came first in front; empty when all is well.
func (g *Gate) Faults() []Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listLocked()
}

func (g *Gate) listLocked() []Fault {
	list := make([]Fault, 0, len(g.faults))
	for _, f := range g.faults {
		list = append(list, f.Fault)
	}
	slices.SortFunc(list, func(a, b Fault) int {
		if order := a.Since.Compare(b.Since); order != 0 {
			return order
		}
		return strings.Compare(a.Source, b.Source)
	})
	return list
}

// met records an error and returns the pause before the next try.
func (g *Gate) met(ctx context.Context, source string, err error, holds bool) time.Duration {
	if g == nil {
		return pauseFirst
	}
	problem, fix := explain(err)
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.faults[source]
	if f == nil {
		f = &fault{Fault: Fault{Source: source, Since: now}}
		g.faults[source] = f
	}
	f.Problem, f.Fix, f.holds = problem, fix, holds
	if again := (*refusedError)(nil); !errors.As(err, &again) {
		f.cause = err
	}
	pause := min(pauseFirst<<min(f.tries, 10), pauseLongest)
	f.tries++
	switch {
	case len(g.faults) == 1 && f.tries == 1:
		g.began, g.told = now, now
		g.cfg.Logger.ErrorContext(ctx, "Installation is at fault, work is held",
			"source", source, "problem", problem, "fix", fix, "error", err)
	case now.Sub(g.told) >= remindEvery:
		g.told = now
		g.cfg.Logger.ErrorContext(ctx, "Installation is still at fault, work is held",
			"source", source, "sources", len(g.faults), "since", g.began.UTC(), "problem", problem, "fix", fix)
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

// passed forgets the fault of a source whose statements are accepted again, be it
// with another error.
func (g *Gate) passed(ctx context.Context, source string, err error) {
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
		g.cfg.Logger.InfoContext(ctx, "Installation is mended, work goes on", "after", time.Since(g.began).Round(time.Millisecond))
	}
}
