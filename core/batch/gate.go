package batch

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// The pauses of a Gate between attempts, and the interval of logs about a lasting fault.
const (
	gateFirst, gateLongest = time.Second, 15 * time.Second
	remindEvery            = time.Minute
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

// GateConfig configures a Gate.
type GateConfig struct {
	// Logger receives faults. Nil discards.
	Logger *slog.Logger
	// Prolonged makes the consumers return their deliveries. The gate calls it once, after it has held them
	// for a minute. It must not block. May be nil.
	Prolonged func()
}

// Gate separates faults of the installation from the work that they stop.
//
// An error of class store.ClassInstallation (a missing relation, column, function or index, a refused
// privilege or login) says nothing about the message, the execution or the workflow of the failed statement.
// The Gate of a replica handles all such errors. It promises:
//
//   - Such an error decides nothing: no message is acknowledged, dead-lettered or counted as tried, and no
//     execution or workflow ends.
//   - The consumer with the error keeps its batch, unacknowledged and in order, and retries it after a pause
//     of 1 s to 15 s, until it succeeds or fails with another error. Meanwhile all
//     consumers of the replica start nothing new. After a minute they return their deliveries in order, so
//     that another replica can handle them.
//   - A loop with the error retries with the same pauses. It does not stop the consumers, which may work
//     without it.
//   - The replica reports the fault once, with the fix: Faults is what /readyz, the alert, doctor and the
//     dashboard show. The log has a line at its start, one a minute, and one at its end.
//   - After the repair all work continues without a restart.
//
// A Gate is safe for concurrent use. A nil Gate holds nothing.
type Gate struct {
	cfg GateConfig

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
	holds bool // a consumer has hit it
	tries int
}

// NewGate returns an open gate.
func NewGate(cfg GateConfig) *Gate {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Gate{cfg: cfg, faults: map[string]*fault{}}
}

// Retry receives the result of every attempt of a consumer. If err concerns the installation it waits, and
// returns true: the consumer must repeat the attempt without counting it. It returns false for every other
// error, for none, and when ctx ends.
func (g *Gate) Retry(ctx context.Context, source string, err error) bool {
	switch {
	case g == nil:
		return false
	case store.ClassOf(err) == store.ClassInstallation:
		return supervise.Sleep(ctx, g.record(ctx, source, err, true))
	}
	g.clear(ctx, source, err)
	return false
}

// undecided reports whether an error says nothing about the work: the server is away, or the attempt was
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
		return gateLongest // the tick waited for a held consumer
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
	pause := min(gateFirst<<min(f.tries, 10), gateLongest)
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
	if undecided(err) {
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
