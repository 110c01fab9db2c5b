package explain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// forecast is what the start of a queue's executions depends on.
type forecast struct {
	at    time.Time
	q     *monitor.Queue
	lines []monitor.PolicyLine
	// runs are the run times of the latest ended executions of the queue, or else of its action.
	runs *monitor.Percentiles
	// running is how long the running executions have taken so far: the run time is no shorter.
	running time.Duration
	// measured is how fast slots became free while executions waited.
	measured Drain
	// placed is whether a live worker could run the action.
	placed placement.Verdict
	// engines is how many replicas of the engine are alive.
	engines int64
}

// forecaster reads what forecasts need, and once what several of them share.
type forecaster struct {
	*Reader
	engines *int64
	fleet   []placement.Worker
	placed  map[int64]placement.Verdict // by action
}

// forecast reads what a forecast of a queue needs, and returns with it the latest admissions of the
// queue.
func (m *Reader) forecast(
	ctx context.Context, tx *store.Tx, q *monitor.Queue, p *monitor.Policies, lines []monitor.PolicyLine, at time.Time,
) (*forecast, []monitor.Admitted, error) {
	return (&forecaster{Reader: m, placed: map[int64]placement.Verdict{}}).forecast(ctx, tx, q, p, lines, at)
}

func (m *forecaster) forecast(
	ctx context.Context, tx *store.Tx, q *monitor.Queue, p *monitor.Policies, lines []monitor.PolicyLine, at time.Time,
) (*forecast, []monitor.Admitted, error) {
	own, all, err := monitor.ReadSample(ctx, tx, q, p)
	if err != nil {
		return nil, nil, err
	}
	f := &forecast{at: at, q: q, lines: lines, measured: busyPace(own, q, p.Changed, at)}
	if f.runs = monitor.TimingOf(own).Run; f.runs == nil {
		f.runs = monitor.TimingOf(all).Run
	}
	f.running = monitor.RunningFor(all, at)
	if m.engines == nil {
		replicas, err := tx.ViewReplicas(ctx, monitor.ReplicaAlive.Seconds())
		if err != nil {
			return nil, nil, fmt.Errorf("count the replicas that are alive: %w", err)
		}
		m.engines = &replicas.Alive
	}
	f.engines = *m.engines
	f.placed, err = m.places(ctx, tx, q.ActionID)
	return f, own, err
}

// places asks whether a live worker would take an execution of an action.
func (m *forecaster) places(ctx context.Context, tx *store.Tx, actionID int64) (placement.Verdict, error) {
	if verdict, known := m.placed[actionID]; known {
		return verdict, nil
	}
	var err error
	if m.fleet == nil {
		if m.fleet, err = m.readFleet(ctx, tx); err != nil {
			return placement.Verdict{}, err
		}
	}
	need, _, err := actionNeed(ctx, tx, actionID)
	if err != nil {
		return placement.Verdict{}, err
	}
	m.placed[actionID] = placement.NewFleet(m.fleet, 0).Choose(need)
	return m.placed[actionID], nil
}

const (
	// forecastQueues bounds the forecasts of a list of queues, the longest queues first.
	forecastQueues = 30
	// forecastAge is how long lists keep a forecast, maxKept bounds the kept ones.
	forecastAge = 10 * time.Second
	maxKept     = 1_000
	// forecastTimeout bounds the forecasts of a list.
	forecastTimeout = 3 * time.Second
)

// kept is a queue with a forecast, and when it was read.
type kept struct {
	monitor.Queue

	at time.Time
}

// Queues reads what Monitor.Queues does, and when the longest queues will be empty. Without forecasts the list is of
// use, so an error of theirs is none of the list.
func (m *Reader) Queues(ctx context.Context, filter monitor.QueueFilter) (*monitor.Queues, error) {
	list, err := m.Monitor.Queues(ctx, filter)
	if err != nil {
		return list, err
	}
	ctx, cancel := context.WithTimeout(ctx, forecastTimeout)
	defer cancel()
	shared := &forecaster{Reader: m, placed: map[int64]placement.Verdict{}}
	_ = m.Read(ctx, "forecasts of queues", &monitor.Reading{},
		func(ctx context.Context, tx *store.Tx, s monitor.Shape) error {
			for i := range min(len(list.List), forecastQueues) {
				if q := &list.List[i]; s.Ours && q.Queued > 0 {
					if err := shared.empties(ctx, tx, q, list.At); err != nil {
						return err
					}
				}
			}
			return nil
		})
	return list, nil
}

// empties sets when a queue will be empty.
func (m *forecaster) empties(ctx context.Context, tx *store.Tx, q *monitor.Queue, at time.Time) error {
	m.mu.Lock()
	old, known := m.kept[q.ID]
	m.mu.Unlock()
	if known && at.Sub(old.at) < forecastAge && old.State() == q.State() &&
		limitOf(&old.Queue) == limitOf(q) {
		q.Empties = old.Empties
		return nil
	}
	action, err := monitor.FindAction(ctx, tx, "", q.ActionID)
	if err != nil {
		return err
	}
	p, err := monitor.ReadPolicies(ctx, tx, action.ID, action.PackID, action.ParamSchema)
	if err != nil {
		return err
	}
	lines, err := p.Lines(ctx, tx, q, paramsOf(p, q.Group), at)
	if err != nil {
		return err
	}
	f, _, err := m.forecast(ctx, tx, q, p, lines, at)
	if err != nil {
		return err
	}
	q.Empties = new(f.start(q.Queued))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil || len(m.kept) > maxKept {
		m.kept = map[int64]kept{}
	}
	m.kept[q.ID] = kept{Queue: *q, at: at}
	return nil
}

func limitOf(q *monitor.Queue) int64 {
	if q.Limit == nil {
		return -1
	}
	return *q.Limit
}

// Drain is the rate at which a queue can start executions.
type Drain struct {
	// PerMinute is nil when it is unknown.
	PerMinute *float64 `json:"per_minute"`
	// Basis says why the rate is unknown, or that it holds at best.
	Basis string `json:"basis"`
	// Ended is how many ended executions the rate follows from, Period the time in which they ended;
	// 0 for a rate by a limit.
	Ended  int64         `json:"ended"`
	Period time.Duration `json:"period_ns"`
}

// Expected is when a waiting execution will probably take its slot.
type Expected = monitor.Expected

// atBest marks a forecast by a limit that other queues share.
const atBest = "at best"

// bound is what one limit says of a place in a queue.
type bound struct {
	// at is the earliest start by this limit; zero when drain.Basis says why it is unknown.
	at    time.Time
	drain Drain
	// grouped is true for a limit that counts groups which the queue does not name.
	grouped bool
}

// blocked says why the queue does not move at all; empty when it may.
func (f *forecast) blocked() string {
	switch {
	case f.q.Paused:
		return "the queue is paused"
	case f.engines == 0:
		return "no replica of the engine is alive"
	case f.placed.Outcome == placement.NoWorkers:
		return "no worker is alive"
	case f.placed.Outcome == placement.Incompatible:
		return f.placed.Reason
	default:
		return ""
	}
}

// bounds lists what every limit in force says of a place in the queue.
func (f *forecast) bounds(place int64) []bound {
	var list []bound
	if f.q.Limit != nil {
		list = append(list, f.slots(place, f.q.Active, *f.q.Limit))
	}
	for _, line := range f.lines {
		if line.Counter == nil {
			if line.Used == nil { // the queue's own limit has a use
				why := "policy " + line.Ref + " counts each " + strings.Join(line.Parameters, ", ") + " by itself"
				list = append(list, bound{drain: Drain{Basis: why}, grouped: true})
			}
			continue
		}
		var b bound
		switch policy.SharedKind(line.Counter.Kind) {
		case policy.SharedPack, policy.SharedGlobal:
			b = f.slots(place, line.Counter.Active, line.Counter.Limit)
		case policy.SharedRate:
			b = rateBound(line.Counter, place, f.at)
		case policy.SharedQuota:
			b = quotaBound(line.Counter, place, f.at)
		}
		if line.Shared(f.q) && b.drain.PerMinute != nil {
			b.drain.Basis = atBest
		}
		list = append(list, b)
	}
	if f.q.Blocked != "" && f.q.BlockedScope == nil { // by busy workers
		b := bound{drain: f.measured}
		if rate := f.measured.PerMinute; rate != nil {
			b.at = later(f.at, float64(place) / *rate)
		}
		list = append(list, b)
	}
	return list
}

// slots is when a place is served by a number of slots that become free as their holders end.
func (f *forecast) slots(place, active, limit int64) bound {
	before := place + active - limit // ends before
	if f.runs == nil {
		b := bound{drain: Drain{Basis: "no execution of the action has ended lately, so its run time is not known"}}
		if before <= 0 {
			b.at = f.at
		}
		return b
	}
	perMinute := float64(limit) / max(f.runs.P50, time.Millisecond).Minutes()
	b := bound{at: f.at, drain: Drain{PerMinute: &perMinute, Ended: f.runs.Count}}
	if before > 0 {
		b.at = later(f.at, float64(before)/perMinute)
	}
	return b
}

// rateBound is when a rate allows the start of a place in the queue.
func rateBound(s *monitor.Scope, place int64, at time.Time) bound {
	rate := policy.Rate{Max: int(s.Limit), Window: s.Window, Burst: int(max(s.Burst, 1))}
	every := rate.Start(at, at).Sub(at)
	due := at
	if s.Due.After(at) {
		due = s.Due
	}
	start := later(rate.Ready(due), float64(place-1)*every.Minutes())
	if start.Before(at) {
		start = at
	}
	perMinute := 1 / every.Minutes()
	return bound{at: start, drain: Drain{PerMinute: &perMinute}}
}

// quotaBound is in which period a quota allows the start of a place in the queue.
func quotaBound(s *monitor.Scope, place int64, at time.Time) bound {
	perMinute := float64(s.Limit) / s.Window.Minutes()
	b := bound{at: at, drain: Drain{PerMinute: &perMinute}}
	left := s.Limit
	if s.Used != nil {
		left = max(s.Limit-*s.Used, 0)
	}
	if place > left && s.Resets != nil {
		periods := (place - left - 1) / max(s.Limit, 1)
		b.at = later(*s.Resets, float64(periods)*s.Window.Minutes())
	}
	return b
}

// start is when a place in the queue will probably take its slot: the latest time of all limits in
// force.
func (f *forecast) start(place int64) Expected {
	if why := f.blocked(); why != "" {
		return Expected{Basis: "unknown: " + why}
	}
	at, basis, unknown := f.at, "", ""
	for _, b := range f.bounds(place) {
		if b.at.IsZero() {
			unknown = b.drain.Basis
		} else if b.at.After(at) {
			at, basis = b.at, ""
			if b.drain.Basis == atBest {
				basis = atBest
			}
		}
	}
	if until := f.q.BlockedUntil; until != nil && until.After(at) {
		at, basis = *until, ""
	}
	switch {
	case unknown != "" && at.After(f.at):
		return Expected{Basis: fmt.Sprintf("unknown: %s; not before %s", unknown, at.UTC().Format("15:04:05Z"))}
	case unknown != "":
		return Expected{Basis: "unknown: " + unknown}
	case at.Sub(f.at) > forever:
		return Expected{Basis: "unknown: it would take for ever"}
	default:
		return Expected{At: &at, Basis: basis}
	}
}

// drain is the smallest rate of all limits in force.
func (f *forecast) drain() Drain {
	if why := f.blocked(); why != "" {
		return Drain{Basis: why}
	}
	slowest := Drain{Basis: "no limit is in force"}
	grouped := ""
	for _, b := range f.bounds(1) {
		switch {
		case b.grouped:
			grouped = b.drain.Basis
		case b.drain.PerMinute == nil:
			return b.drain
		case slowest.PerMinute == nil || *b.drain.PerMinute < *slowest.PerMinute:
			slowest = b.drain
		}
	}
	switch {
	case grouped != "" && slowest.PerMinute == nil:
		slowest.Basis = grouped
	case grouped != "":
		slowest.Basis = atBest
	}
	return slowest
}

// forever is the longest wait that a forecast names.
const forever = 100 * 365 * 24 * time.Hour

// later adds minutes, at most so many that the sum is beyond forever.
func later(at time.Time, minutes float64) time.Time {
	if minutes > forever.Minutes() {
		return at.Add(2 * forever)
	}
	return at.Add(time.Duration(minutes * float64(time.Minute)))
}

// pace writes a rate in the unit that gives it few digits.
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
	return strings.TrimSuffix(strconv.FormatFloat(perMinute, 'f', digits, 64), ".0") + " " + unit
}

const (
	// drainWindow is how far back completions count for the pace of workers.
	drainWindow = 15 * time.Minute
	// drainEnough is how many completions make a pace.
	drainEnough = 3
)

// busyPace counts the completions of a sample in the time in which executions always waited: since the
// oldest waiting execution joined, the last pause ended and the policies last changed.
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
		return Drain{
			Basis: "the workers are busy, and too few executions have ended to tell how fast they are",
			Ended: d.Ended,
		}
	}
	rate := float64(d.Ended) / d.Period.Minutes()
	d.PerMinute = &rate
	return d
}
