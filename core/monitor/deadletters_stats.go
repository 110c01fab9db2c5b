package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
)

const (
	// statsBound bounds the rows of each table.
	statsBound = 50_000
	// statsTop bounds the groups of one statistic, by name and decision.
	statsTop = 400
	// DefaultStatsWindow is the window if none is given.
	DefaultStatsWindow = 24 * time.Hour
	// MaxStatsWindow is the longest window.
	MaxStatsWindow = 366 * 24 * time.Hour
	// hourly is the longest window with a group for each hour.
	hourly = 72 * time.Hour
)

// LedgerStats groups the dead letters and the lost work of a window, with the depth of the broker's
// queue if there is a broker. 0 is DefaultStatsWindow.
func (m *Monitor) LedgerStats(ctx context.Context, window time.Duration) (*LedgerStats, error) {
	if window < 0 || window > MaxStatsWindow {
		return nil, fmt.Errorf("%w looks back further than %d days, or into the future", ErrFilter,
			int(MaxStatsWindow.Hours()/24))
	}
	l := &LedgerStats{Window: cmp.Or(window, DefaultStatsWindow), Unit: "hour"}
	if l.Window > hourly {
		l.Unit = "day"
	}
	if m.deps.Broker == nil { // a monitor without a broker lacks no source
		return l, m.Read(ctx, "dead letters", &l.Reading, l.read)
	}
	_, err := m.both(ctx, "dead letters", &l.Reading, func(reader BrokerReader) error {
		b, err := reader.ReadBroker(ctx)
		if q, ok := b.Queue(DeadLetterQueue); ok {
			l.Queue = &q
		}
		return err
	}, l.read)
	return l, err
}

func (l *LedgerStats) read(ctx context.Context, tx *store.Tx, s Shape) error {
	if !s.Ours {
		return ErrUnmigrated
	}
	numbers, err := readLedgerNumbers(ctx, tx)
	if err != nil {
		return err
	}
	l.Open, l.Oldest, l.PerMinute, l.Latency = numbers.open, numbers.oldest, numbers.perMinute, numbers.latency
	totals, err := tx.ViewDeadLetterTotals(ctx, l.Window.Seconds(), statsBound)
	if err != nil {
		return fmt.Errorf("count dead letters and lost work: %w", err)
	}
	l.DeadLetters, l.Lost = upTo(totals.DeadLetters, statsBound), upTo(totals.Lost, statsBound)
	for by, into := range map[string]*[]LedgerTally{
		"reason": &l.ByReason, "action": &l.ByAction, "worker": &l.ByWorker, "cause": &l.ByCause, "time": &l.ByTime,
	} {
		list, err := l.tally(ctx, tx, by)
		if err != nil {
			return fmt.Errorf("group dead letters and lost work by %s: %w", by, err)
		}
		*into = list
	}
	slices.SortFunc(l.ByTime, func(a, b LedgerTally) int { return cmp.Compare(b.Name, a.Name) })
	return nameWorkers(ctx, tx, l.ByWorker)
}

// tally groups both tables by a column. Only dead letters have a reason, only lost work has a cause.
func (l *LedgerStats) tally(ctx context.Context, tx *store.Tx, by string) ([]LedgerTally, error) {
	tallies := map[string]*LedgerTally{}
	if by != "cause" {
		rows, err := tx.ViewDeadLetterGroups(ctx, store.ViewDeadLetterGroupsParams{
			By: by, Unit: l.Unit, Seconds: l.Window.Seconds(), Bound: statsBound, Top: statsTop,
		})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			t := tallyOf(tallies, r.Name)
			t.DeadLetters += r.N
			t.Decisions[r.Decision] += r.N
			t.Open = t.Decisions[DecisionOpen]
			t.seen(r.Newest)
		}
	}
	if by != "reason" {
		rows, err := tx.ViewLostGroups(ctx, store.ViewLostGroupsParams{
			By: by, Unit: l.Unit, Seconds: l.Window.Seconds(), Bound: statsBound, Top: statsTop,
		})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			tallyOf(tallies, r.Name).addLost(r)
		}
	}
	list := make([]LedgerTally, 0, len(tallies))
	for _, t := range tallies {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b LedgerTally) int {
		return cmp.Or(cmp.Compare(b.DeadLetters+b.Lost, a.DeadLetters+a.Lost), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

func tallyOf(tallies map[string]*LedgerTally, name string) *LedgerTally {
	t := tallies[name]
	if t == nil {
		t = &LedgerTally{Name: name, Decisions: map[string]int64{}, Outcomes: map[string]int64{}}
		tallies[name] = t
	}
	return t
}

func (t *LedgerTally) addLost(r store.ViewLostGroupsRow) {
	if r.AgeSeconds >= 0 {
		mean := Seconds(r.AgeSeconds)
		if t.MeanAge != nil { // weighted by the number of each mean
			mean = (*t.MeanAge*time.Duration(t.Lost) + mean*time.Duration(r.N)) / time.Duration(t.Lost+r.N)
		}
		t.MeanAge = &mean
	}
	t.Lost += r.N
	t.Outcomes[r.Outcome] += r.N
	t.seen(r.Newest)
}

func (t *LedgerTally) seen(at time.Time) {
	if at.After(t.Newest) {
		t.Newest = at
	}
}

// nameWorkers adds the names of existing workers.
func nameWorkers(ctx context.Context, tx *store.Tx, list []LedgerTally) error {
	at := map[int64]int{}
	ids := make([]int64, 0, len(list))
	for i, t := range list {
		if id, err := strconv.ParseInt(t.Name, 10, 64); err == nil {
			ids, at[id] = append(ids, id), i
		}
	}
	rows, err := tx.ViewWorkerNames(ctx, ids)
	if err != nil {
		return fmt.Errorf("read the names of workers: %w", err)
	}
	for _, r := range rows {
		list[at[r.ID]].WorkerName = r.Name
	}
	return nil
}

// Tallies returns the groups by reason, action, worker, cause or time.
func (l *LedgerStats) Tallies(by string) ([]LedgerTally, error) {
	switch by {
	case "reason":
		return l.ByReason, nil
	case "action":
		return l.ByAction, nil
	case "worker":
		return l.ByWorker, nil
	case "cause":
		return l.ByCause, nil
	case "hour", "day", "time":
		return l.ByTime, nil
	}
	return nil, errors.New("groups are reason, action, worker, cause or hour")
}
