package explain

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// TimingOut forecasts how many waiting executions of a queue will time out before they start.
type TimingOut struct {
	// Count is nil when it is unknown; Of is the number of waiting executions.
	Count *int64 `json:"count"`
	Of    int64  `json:"of"`
	// First is when the first of them times out; of an unknown number, when the first may.
	First *time.Time `json:"first"`
	// Basis says why the number is unknown, or that it holds at best.
	Basis string `json:"basis"`
}

// Threatened reports whether executions will time out.
func (t *TimingOut) Threatened() bool { return t != nil && t.Count != nil && *t.Count > 0 }

// String says what is known in one sentence.
func (t *TimingOut) String(now time.Time) string {
	switch {
	case t.Count == nil:
		return fmt.Sprintf("unknown: %s; the first may %s", t.Basis, phrase.Clock(*t.First, now))
	case *t.Count == 0:
		return "none, if none joins before them"
	default:
		return phrase.Say("about %d of %d before they start, the first %s", *t.Count, t.Of,
			phrase.Clock(*t.First, now)).With(", ", t.Basis).String()
	}
}

// TimingOut forecasts the timeouts of a queue; nil without a timeout and while it is paused. Its cost does not depend
// on the length of the queue.
func (m *Reader) TimingOut(ctx context.Context, tx *store.Tx, q *monitor.Queue, at time.Time) (*TimingOut, error) {
	action, err := monitor.FindAction(ctx, tx, "", q.ActionID)
	if err != nil {
		return nil, err
	}
	p, err := monitor.ReadPolicies(ctx, tx, action.ID, action.PackID, action.ParamSchema)
	if err != nil {
		return nil, err
	}
	lines, err := p.Lines(ctx, tx, q, paramsOf(p, q.Group), at)
	if err != nil {
		return nil, err
	}
	f, _, err := m.forecast(ctx, tx, q, p, lines, at)
	if err != nil {
		return nil, err
	}
	return f.readTimingOut(ctx, tx)
}

func (f *forecast) readTimingOut(ctx context.Context, tx *store.Tx) (*TimingOut, error) {
	if f.q.QueueTimeout <= 0 || f.q.Paused || f.q.Queued == 0 {
		return nil, nil //nolint:nilnil // nothing times out, which is no fault
	}
	waits, err := monitor.ProbeWaits(ctx, tx, f.q)
	if err != nil {
		return nil, err
	}
	return f.timingOut(waits), nil
}

// patience is how much later than its timeout an execution must be expected to start, as a share of the time until
// then, to count: forecasts are no more precise.
const patience = 0.1

// timingOut serves the waiting executions in their order. Each stands for several, and an execution that times out
// gives its place to the next.
func (f *forecast) timingOut(waits []monitor.Waited) *TimingOut {
	if len(waits) == 0 {
		return nil
	}
	if f.runs == nil && f.running > 0 {
		slower := *f
		slower.runs = &monitor.Percentiles{P50: f.running}
		if t := slower.timingOut(waits); t.Threatened() {
			t.Basis = "or more: none has ended yet, and the running ones have taken " + phrase.Span(f.running) + " so far"
			return t
		}
	}
	slices.SortStableFunc(waits, func(a, b monitor.Waited) int {
		return cmp.Or(cmp.Compare(b.Lane, a.Lane), cmp.Compare(b.Since, a.Since))
	})
	t := &TimingOut{Of: f.q.Queued}
	started, lost, passed := int64(0), 0.0, 0.0
	for _, w := range waits {
		deadline := f.at.Add(-w.Since)
		if f.q.ResumedAt != nil && f.q.ResumedAt.After(deadline) {
			deadline = *f.q.ResumedAt
		}
		deadline = deadline.Add(f.q.QueueTimeout)
		if expected := f.start(started + 1); expected.At == nil {
			return f.unknownTimeouts(t, deadline, expected.Basis)
		} else if expected.Basis != "" {
			t.Basis = expected.Basis
		}
		late := deadline.Add(time.Duration(patience * float64(max(deadline.Sub(f.at), 0))))
		n := int64(math.Round(passed+w.Weight)) - int64(math.Round(passed))
		passed += w.Weight
		served := int64(0) // the largest number that starts in time
		for low, high := int64(1), n; low <= high; {
			middle := (low + high) / 2
			if at := f.start(started + middle).At; at != nil && !at.After(late) {
				served, low = middle, middle+1
			} else {
				high = middle - 1
			}
		}
		started += served
		if served < n {
			lost += float64(n - served)
			if t.First == nil || deadline.Before(*t.First) {
				t.First = &deadline
			}
		}
	}
	t.Count = new(min(roughly(lost), t.Of))
	return t
}

// unknownTimeouts names the first time at which one may time out.
func (f *forecast) unknownTimeouts(t *TimingOut, first time.Time, basis string) *TimingOut {
	t.Basis = basis[min(len("unknown: "), len(basis)):]
	t.First = &first
	return t
}

// roughly rounds to the three digits that a forecast can promise.
func roughly(n float64) int64 {
	step := 1.0
	for n/step >= 1000 {
		step *= 10
	}
	return int64(math.Round(n/step) * step)
}
