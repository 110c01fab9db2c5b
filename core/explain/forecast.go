package explain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// forecast is what there is to say of when a queue is served: the limits in
// force, how long its executions run, and whether anybody is there to run them.
type forecast struct {
	at    time.Time
	q     *monitor.Queue
	lines []monitor.PolicyLine
	// runs are the run times of what ended lately, and whose says whose.
	runs  *monitor.Percentiles
	whose string
	// measured is how fast slots came free while somebody waited.
	measured Drain
	// crew is what the workers that are alive say of this action.
	crew placement.Verdict
	// engines is how many replicas of the engine are alive.
	engines int64
}

// forecast reads what a forecast of a queue needs, and returns with it what the
// queue admitted lately.
func (m *Reader) forecast(
	ctx context.Context, tx *store.Tx, q *monitor.Queue, p *monitor.Policies, lines []monitor.PolicyLine, at time.Time,
) (*forecast, []monitor.Admitted, error) {
	own, all, err := monitor.ReadSample(ctx, tx, q, p)
	if err != nil {
		return nil, nil, err
	}
	f := &forecast{at: at, q: q, lines: lines, runs: monitor.TimingOf(own).Run,
		measured: busyPace(own, q, p.Changed, at)}
	if f.runs == nil {
		f.runs, f.whose = monitor.TimingOf(all).Run, " of the action"
	}
	replicas, err := tx.ViewReplicas(ctx, monitor.ReplicaAlive.Seconds())
	if err != nil {
		return nil, nil, fmt.Errorf("count the replicas that are alive: %w", err)
	}
	f.engines = replicas.Alive
	f.crew, err = m.crew(ctx, tx, q.ActionID)
	return f, own, err
}

// crew asks the workers that are alive who would take an execution of an action.
// Where it is not recorded what is to be known of them, somebody would.
func (m *Reader) crew(ctx context.Context, tx *store.Tx, actionID int64) (placement.Verdict, error) {
	if recorded, err := tx.ViewAttemptTables(ctx); err != nil || !recorded {
		return placement.Verdict{Outcome: placement.Placed}, err
	}
	workers, err := m.readFleet(ctx, tx)
	if err != nil {
		return placement.Verdict{}, err
	}
	need, _, err := actionNeed(ctx, tx, actionID)
	if err != nil {
		return placement.Verdict{}, err
	}
	return placement.NewFleet(workers, 0).Choose(need), nil
}

// Drain is the rate at which a queue can start executions.
type Drain struct {
	// PerMinute is nil when it is not known; Basis says what it follows from, or
	// why nothing is known.
	PerMinute *float64 `json:"per_minute"`
	Basis     string   `json:"basis"`
	// Ended is how many executions that ended were looked at. Period is the time
	// in which they did; zero where the rate follows from a limit instead.
	Ended  int64         `json:"ended"`
	Period time.Duration `json:"period_ns"`
}

// Expected is when a waiting execution will probably take its slot.
type Expected struct {
	// At is nil when it cannot be told; Basis says from what it was computed, or
	// why not.
	At    *time.Time `json:"at"`
	Basis string     `json:"basis"`
}

// bound is what one limit says of a place in line.
type bound struct {
	// at is the earliest start by this limit; zero when it cannot be told.
	at    time.Time
	basis string
	drain Drain
}

// stands says why the queue does not move at all; empty when it may.
func (f *forecast) stands() string {
	switch {
	case f.q.Paused:
		return "the queue is paused"
	case f.engines == 0:
		return "no replica of the engine is alive"
	case f.crew.Outcome == placement.NoWorkers:
		return "no worker is alive"
	case f.crew.Outcome == placement.Incompatible:
		return f.crew.Reason
	default:
		return ""
	}
}

// bounds lists what every limit in force says of a place in line.
func (f *forecast) bounds(place int64) []bound {
	var list []bound
	if f.q.Limit != nil {
		list = append(list, f.slots(place, f.q.Active, *f.q.Limit, "this queue"))
	}
	for _, line := range f.lines {
		if line.Counter == nil {
			continue // counted for groups that the queue does not name, or the queue's own
		}
		var b bound
		switch policy.SharedKind(line.Counter.Kind) {
		case policy.SharedPack, policy.SharedGlobal:
			b = f.slots(place, line.Counter.Active, line.Counter.Limit, line.Counter.Name)
		case policy.SharedRate:
			b = rateBound(line.Counter, place, f.at)
		case policy.SharedQuota:
			b = quotaBound(line.Counter, place, f.at)
		}
		if line.Shared(f.q) {
			b.basis += "; at best, since other queues share it"
			b.drain.Basis += ", at best, since other queues share it"
		}
		list = append(list, b)
	}
	if f.byWorkers() {
		list = append(list, f.workers(place))
	}
	return list
}

// byWorkers reports whether it is the workers that keep the head.
func (f *forecast) byWorkers() bool {
	return f.q.Blocked != "" && f.q.BlockedScope == nil
}

// slots is when a place is served by a number of slots that come free as their
// holders end.
func (f *forecast) slots(place, active, limit int64, name string) bound {
	before := place + active - limit // who has to end first
	if f.runs == nil {
		unknown := "no execution of the action has ended lately, so nobody knows how long one takes"
		b := bound{basis: unknown, drain: Drain{Basis: unknown}}
		if before <= 0 {
			b.at = f.at
		}
		return b
	}
	run := max(f.runs.P50, time.Millisecond)
	perMinute := float64(limit) / run.Minutes()
	what := fmt.Sprintf("%s in %s, each taken for %s (median of the last %s%s)",
		phrase.Plural(limit, "slot", "slots"), name, phrase.Span(run), phrase.Plural(f.runs.Count, "run", "runs"),
		f.whose)
	b := bound{at: f.at, drain: Drain{PerMinute: &perMinute, Basis: what, Ended: f.runs.Count}}
	if before > 0 {
		b.at = later(f.at, float64(before)/perMinute)
	}
	b.basis = fmt.Sprintf("place %d at %s; %s", place, pace(perMinute), what)
	return b
}

// rateBound is when a rate allows the start of a place in line.
func rateBound(s *monitor.Scope, place int64, at time.Time) bound {
	rate := policy.Rate{Max: int(s.Limit), Window: s.Window, Burst: int(max(s.Burst, 1))}
	every := rate.Start(at, at).Sub(at)
	due := at
	if s.Due.After(at) {
		due = s.Due
	}
	first := at
	if ready := rate.Ready(due); ready.After(at) {
		first = ready
	}
	start := later(rate.Ready(due), float64(place-1)*every.Minutes())
	if start.Before(first) {
		start = first
	}
	perMinute := 1 / every.Minutes()
	what := fmt.Sprintf("%s, a start every %s", s.Name, phrase.Span(every))
	return bound{
		at: start, basis: fmt.Sprintf("place %d at %s; %s", place, pace(perMinute), what),
		drain: Drain{PerMinute: &perMinute, Basis: what},
	}
}

// quotaBound is in which period a quota allows the start of a place in line.
func quotaBound(s *monitor.Scope, place int64, at time.Time) bound {
	perMinute := float64(s.Limit) / s.Window.Minutes()
	what := fmt.Sprintf("%s, %s per period of %s", s.Name, phrase.Plural(s.Limit, "start", "starts"),
		phrase.Span(s.Window))
	b := bound{at: at, drain: Drain{PerMinute: &perMinute, Basis: what}}
	left := s.Limit
	if s.Used != nil {
		left = max(s.Limit-*s.Used, 0)
	}
	b.basis = fmt.Sprintf("place %d, %d left in this period; %s", place, left, what)
	if place > left && s.Resets != nil {
		periods := (place - left - 1) / max(s.Limit, 1)
		b.at = later(*s.Resets, float64(periods)*s.Window.Minutes())
	}
	return b
}

// workers is when busy workers will have taken a place, by how fast they did.
func (f *forecast) workers(place int64) bound {
	d := f.measured
	if d.PerMinute == nil {
		return bound{basis: "the workers are busy, and " + d.Basis, drain: d}
	}
	return bound{
		at: later(f.at, float64(place) / *d.PerMinute), drain: d,
		basis: fmt.Sprintf("place %d at %s, as fast as the workers were; %s", place, pace(*d.PerMinute), d.Basis),
	}
}

// start is when a place in line will probably take its slot: the latest that
// any limit in force says.
func (f *forecast) start(place int64, about bool) Expected {
	if why := f.stands(); why != "" {
		return Expected{Basis: "unknown: " + why}
	}
	last := bound{at: f.at, basis: "there is room, and the next batch of the engine fills it"}
	unknown := ""
	for _, b := range f.bounds(place) {
		if b.at.IsZero() {
			unknown = b.basis
		} else if b.at.After(last.at) {
			last = b
		}
	}
	if until := f.q.BlockedUntil; until != nil && until.After(last.at) {
		last = bound{at: *until, basis: "not before the limit that keeps the queue opens"}
	}
	if about {
		last.basis = "about " + last.basis
	}
	switch {
	case unknown != "" && last.at.After(f.at):
		return Expected{Basis: fmt.Sprintf("unknown: %s; not before %s (%s)", unknown,
			last.at.UTC().Format("15:04:05Z"), last.basis)}
	case unknown != "":
		return Expected{Basis: "unknown: " + unknown}
	case last.at.Sub(f.at) > forever:
		return Expected{Basis: "unknown: it would take for ever; " + last.basis}
	default:
		return Expected{At: &last.at, Basis: last.basis}
	}
}

// drain is the smallest rate of all limits in force.
func (f *forecast) drain() Drain {
	if why := f.stands(); why != "" {
		return Drain{Basis: why}
	}
	slowest := Drain{Basis: "no limit is in force"}
	for _, b := range f.bounds(1) {
		switch {
		case b.drain.PerMinute == nil:
			return b.drain
		case slowest.PerMinute == nil || *b.drain.PerMinute < *slowest.PerMinute:
			slowest = b.drain
		}
	}
	return slowest
}

// forever is how far ahead nobody believes a forecast.
const forever = 100 * 365 * 24 * time.Hour

// later adds minutes, up to what nobody believes.
func later(at time.Time, minutes float64) time.Time {
	if minutes > forever.Minutes() {
		return at.Add(2 * forever)
	}
	return at.Add(time.Duration(minutes * float64(time.Minute)))
}

// pace writes a rate in the unit that people would choose.
func pace(perMinute float64) string {
	unit := "a minute"
	switch {
	case perMinute < 1.0/60:
		perMinute, unit = perMinute*24*60, "a day"
	case perMinute < 1:
		perMinute, unit = perMinute*60, "an hour"
	case perMinute >= 600:
		perMinute, unit = perMinute/60, "a second"
	}
	digits := 1
	if perMinute >= 100 {
		digits = 0
	}
	text := strconv.FormatFloat(perMinute, 'f', digits, 64)
	if len(text) > 2 && text[len(text)-2:] == ".0" {
		text = text[:len(text)-2]
	}
	return text + " " + unit
}

const (
	// drainWindow is how far back completions count for the pace of workers.
	drainWindow = 15 * time.Minute
	// drainEnough is how many completions make a pace.
	drainEnough = 3
)

// busyPace counts the completions of a sample while somebody waited without a
// break: since the oldest who waits joined, the last pause ended and the rules
// last changed.
func busyPace(list []monitor.Admitted, q *monitor.Queue, changed, at time.Time) Drain {
	from := at.Add(-drainWindow)
	for _, t := range []*time.Time{q.Oldest, q.ResumedAt, &changed} {
		if t != nil && t.After(from) {
			from = *t
		}
	}
	d := Drain{}
	first := at
	for _, e := range list {
		if e.FinishedAt == nil || !e.FinishedAt.After(from) || e.FinishedAt.After(at) {
			continue
		}
		d.Ended++
		if begun := slices.MaxFunc([]time.Time{e.At, from}, time.Time.Compare); begun.Before(first) {
			first = begun
		}
	}
	d.Period = at.Sub(first)
	if d.Ended < drainEnough || d.Period <= 0 {
		return Drain{Basis: "too few executions have ended since somebody waits to tell how fast they are",
			Ended: d.Ended}
	}
	rate := float64(d.Ended) / d.Period.Minutes()
	d.PerMinute = &rate
	d.Basis = fmt.Sprintf("%s ended in the last %s", phrase.Plural(d.Ended, "execution", "executions"),
		phrase.Span(d.Period))
	return d
}
