package monitor

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/store"
)

// The bounds of looking back at workers: so many looks of so many rows for each way
// to end, and so many rows at both ends of what has not ended.
const (
	runLooks = 60
	runPer   = 15
	runScan  = 2_000
)

// WorkersPast is the last hour of all workers.
type WorkersPast struct {
	Reading
	// List is empty where nobody records when executions ended.
	List []WorkerPast `json:"list"`
	// Estimated says that more ended than were looked at one by one.
	Estimated bool `json:"estimated,omitempty"`
}

// WorkerPast is the last hour of a worker, as the rows of its executions tell it.
type WorkerPast struct {
	ID int64 `json:"id"`
	// Minutes are the last sixty, the oldest first; the last has just passed.
	Minutes []WorkerMinute `json:"minutes"`
}

// WorkerMinute is what a worker did in a minute.
type WorkerMinute struct {
	// At is the end of the minute.
	At time.Time `json:"at"`
	// Slots is how many executions ran, taken over the minute; Ended how many ended,
	// however.
	Slots float64 `json:"slots"`
	Ended float64 `json:"ended"`
}

// Of finds the past of a worker; nil when nothing ran at it.
func (p *WorkersPast) Of(worker int64) *WorkerPast {
	if p == nil {
		return nil
	}
	for i := range p.List {
		if p.List[i].ID == worker {
			return &p.List[i]
		}
	}
	return nil
}

// PerMinute is how many ended at the worker in a minute, over the last minutes.
func (w *WorkerPast) PerMinute(minutes int) float64 {
	minutes = min(minutes, len(w.Minutes))
	if minutes == 0 {
		return 0
	}
	n := 0.0
	for _, m := range w.Minutes[len(w.Minutes)-minutes:] {
		n += m.Ended
	}
	return n / float64(minutes)
}

// WorkersPast reads the last hour of all workers. It is meant for once a minute and
// not for every poll. What ended is looked for among the ids around those that ended
// an hour ago, so a run that began long before the others may be missed once it ended.
func (m *Monitor) WorkersPast(ctx context.Context) (*WorkersPast, error) {
	p := &WorkersPast{}
	err := m.Read(ctx, "the last hour of workers", &p.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		p.List, p.Estimated = nil, false // the transaction may be repeated
		if !s.Ours {
			return nil
		}
		rows, err := tx.PastRuns(ctx, runLooks, runPer, runScan)
		if err != nil {
			return fmt.Errorf("count what ran in the last hour: %w", err)
		}
		for _, r := range rows {
			p.add(r)
		}
		return nil
	})
	return p, err
}

// add counts a run in every minute that it took a part of.
func (p *WorkersPast) add(r store.PastRunsRow) {
	w := p.Of(r.Worker)
	if w == nil {
		w = p.begin(r.Worker)
	}
	p.Estimated = p.Estimated || r.Weight > 1
	const minute = 60.0
	last := len(w.Minutes) - 1
	for ago := int(r.EndedAgo / minute); ago <= last && minute*float64(ago) < r.BeganAgo; ago++ {
		taken := min(r.BeganAgo, minute*float64(ago+1)) - max(r.EndedAgo, minute*float64(ago))
		w.Minutes[last-ago].Slots += r.Weight * taken / minute
	}
	if ago := int(r.EndedAgo / minute); r.Ended && ago <= last {
		w.Minutes[last-ago].Ended += r.Weight
	}
}

// begin adds a worker at which nothing was seen yet.
func (p *WorkersPast) begin(id int64) *WorkerPast {
	w := WorkerPast{ID: id}
	for _, at := range pastMinutes(p.At) {
		w.Minutes = append(w.Minutes, WorkerMinute{At: at})
	}
	p.List = append(p.List, w)
	return &p.List[len(p.List)-1]
}
