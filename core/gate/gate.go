// Package gate separates faults of the installation from the work that hits them.
//
// An error of class store.ClassInstallation (a missing relation, column, function or index, a
// refused privilege or login) says nothing about the message, the execution or the workflow whose
// statement failed. The Gate of a replica handles all such errors. It promises:
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
	// returnAfter is how long consumers keep their deliveries. It is far below the broker's
	// delivery timeout, after which every redelivery counts towards the delivery limit of a quorum
	// queue.
	returnAfter = time.Minute
)

// Fault is a fault that one consumer or loop of the replica has hit.
type Fault struct {
	// Source is the consumer or the loop.
	Source string `json:"source"`
	// Problem is the database's error, with its code.
	Problem string `json:"problem"`
	// Fix is what an operator must do.
	Fix string `json:"fix"`
	// Since is when the source hit it first, by the replica's clock.
	Since time.Time `json:"since"`
}

// String is the fault in one line, for users.
func (f Fault) String() string { return f.Problem + ": " + f.Fix + " (met by " + f.Source + ")" }

// Config configures a Gate.
type Config struct {
	// Logger receives faults. Nil discards.
	Logger *slog.Logger
	// Refuses checks whether the database still refuses the statement that failed, and returns its
	// error. A successful try proves nothing: another replica may have done the work meanwhile, so
	// that nothing was left to write. May be nil.
	Refuses func(ctx context.Context, err error) error
	// Prolonged is called once when consumers have been held for a minute, so that they return
	// deliveries to other replicas. It must not block. It may be nil.
	Prolonged func()
}

// Gate is the gate of one replica. It is safe for concurrent use. A nil Gate holds the consumer
// that hit a fault, without a report.
type Gate struct {
	cfg Config

	mu       sync.Mutex
	faults   map[string]*fault
	opened   chan struct{} // closed when the consumers are released; nil while none is held
	began    time.Time     // start of the first present fault
	told     time.Time     // time of the last log line
	held     time.Time     // when the consumers were held
	released time.Time     // when the consumers were released
	returned bool
}

type fault struct {
	Fault
	cause error
	holds bool // a consumer has hit it
	tries int
}

// New makes an open gate.
func New(cfg Config) *Gate {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Gate{cfg: cfg, faults: map[string]*fault{}}
}

// Retry receives the result of every try of a consumer. If err concerns the installation it waits,
// and returns true: the consumer must run the same try again without counting it. It returns false
// for every other error, for none, and when ctx ends.
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

// refusedTimeout is the timeout of the check whether a statement is still refused.
const refusedTimeout = 5 * time.Second

// refused returns the error with which the database still refuses the statement that failed in
// source, after another try that ended with err; nil if it is accepted.
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

// refusedError says that the statement of a fault is still refused.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// undecided reports whether an error says nothing about statements: the server is away, or the try
// was aborted.
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
	if store.ClassOf(err) != store.ClassInstallation {
		if err != nil && g.Holding() && store.ClassOf(err) == store.ClassCanceled {
			return pauseLongest // the tick waited for a held consumer
		}
		if still := g.refused(ctx, source, err); still != nil {
			return g.met(ctx, source, still, false)
		}
		g.passed(ctx, source, err)
		return 0
	}
	return g.met(ctx, source, err, false)
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

// Unsure reports that ages and heartbeats prove nothing, because the consumers are held or were
// released less than settle ago: reports of workers could not be written or read.
func (g *Gate) Unsure(settle time.Duration) bool {
	return g.Undisturbed() < settle || g.Holding()
}

// Undisturbed is how long ago the consumers were last held: 0 while they are held, and the longest
// duration if they never were.
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

// Faults lists the present faults, the oldest first.
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

// passed removes the fault of a source whose statements are accepted again, even if they fail with
// another error.
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
		g.cfg.Logger.InfoContext(ctx, "Installation is mended, work goes on", "after",
			time.Since(g.began).Round(time.Millisecond))
	}
}
