package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// PastSpan is how far back Past reads.
const PastSpan = time.Hour

// pastMinutes are the ends of the last sixty minutes, the oldest first.
func pastMinutes(now time.Time) []time.Time {
	list := make([]time.Time, PastSpan/time.Minute)
	for i := range list {
		list[i] = now.Add(-time.Duration(len(list)-1-i) * time.Minute)
	}
	return list
}

// Past samples so many times so many rows of each status, and counts so many dead letters.
const (
	pastLooks       = 120
	pastPer         = 25
	pastDeadLetters = 20_000
)

// Past is the last hour as far as it is recorded, so that a new dashboard begins with history.
type Past struct {
	Reading
	// Minutes are sixty, the oldest first; empty without the engine's tables or without an answer.
	Minutes []PastMinute `json:"minutes"`
	// Estimated says that more executions ended than were counted.
	Estimated bool `json:"estimated,omitempty"`
	// DeadLetters says whether dead letters are recorded. DeadLettersFrom is set when more arrived than are
	// counted.
	DeadLetters     bool      `json:"letters"`
	DeadLettersFrom time.Time `json:"letters_from,omitzero"`
	// Depth is the broker's own record of waiting dead letters, the oldest first; empty without an
	// answer.
	Depth []PastDepth `json:"depth"`
}

// PastMinute counts the events of a minute.
type PastMinute struct {
	// At is the end of the minute.
	At time.Time `json:"at"`
	// Failed includes timeouts and abandoned executions. DeadLetters counts arrivals, Waiting the
	// undecided dead letters at the end of the minute.
	Done        float64 `json:"done"`
	Failed      float64 `json:"failed"`
	DeadLetters float64 `json:"letters"`
	Waiting     float64 `json:"waiting"`
}

// PastDepth is how many dead letters waited, by the broker's clock.
type PastDepth struct {
	At    time.Time `json:"at"`
	Ready int64     `json:"ready"`
}

// Past reads the last hour, for the start of a dashboard and not for every poll. Without one source
// its half is empty; without both it fails.
func (m *Monitor) Past(ctx context.Context) (*Past, error) {
	p := &Past{}
	brokerErr, databaseErr := m.both(ctx, "the last hour", &p.Reading, func(b BrokerReader) (err error) {
		p.Depth, err = b.ReadDepth(ctx, DeadLetterQueue)
		return err
	}, func(ctx context.Context, tx *store.Tx, s Shape) error {
		p.Minutes, p.Estimated, p.DeadLetters = nil, false, false // the transaction may be repeated
		return p.read(ctx, tx, s)
	})
	if brokerErr != nil && databaseErr != nil {
		return p, errors.Join(brokerErr, databaseErr)
	}
	return p, nil
}

func (p *Past) read(ctx context.Context, tx *store.Tx, s Shape) error {
	if !s.Ours {
		return nil
	}
	for _, at := range pastMinutes(p.At) {
		p.Minutes = append(p.Minutes, PastMinute{At: at})
	}
	ends, err := tx.PastEnds(ctx, pastLooks, pastPer)
	if err != nil {
		return fmt.Errorf("count what ended in the last hour: %w", err)
	}
	for _, row := range ends {
		minute := p.minute(row.MinutesAgo)
		if minute == nil {
			continue
		}
		minute.Done += math.Round(row.N)
		p.Estimated = p.Estimated || row.Estimated
		switch lifecycle.Status(row.Status) {
		case lifecycle.StatusFailed, lifecycle.StatusTimeout, lifecycle.StatusAbandoned:
			minute.Failed += math.Round(row.N)
		default:
		}
	}
	if !s.ledger {
		return nil
	}
	deadLetters, err := tx.PastDeadLetters(ctx, pastDeadLetters)
	if err != nil {
		return fmt.Errorf("count the dead letters of the last hour: %w", err)
	}
	p.DeadLetters = true
	total, oldest := int64(0), int32(0)
	for _, row := range deadLetters {
		if minute := p.minute(row.MinutesAgo); minute != nil {
			minute.DeadLetters = float64(row.N)
			total, oldest = total+row.N, max(oldest, row.MinutesAgo)
		}
	}
	if total >= pastDeadLetters {
		p.DeadLettersFrom = p.At.Add(-time.Duration(oldest) * time.Minute)
	}
	return p.readWaiting(ctx, tx)
}

// readWaiting sums up the changes of the number of undecided dead letters.
func (p *Past) readWaiting(ctx context.Context, tx *store.Tx) error {
	rows, err := tx.PastWaiting(ctx, pastDeadLetters)
	if err != nil {
		return fmt.Errorf("count the dead letters that waited in the last hour: %w", err)
	}
	waiting := int64(0)
	for _, row := range rows {
		if minute := p.minute(row.MinutesAgo); minute != nil {
			minute.Waiting = float64(row.Change)
		} else {
			waiting += row.Change
		}
	}
	for i := range p.Minutes {
		waiting += int64(p.Minutes[i].Waiting)
		p.Minutes[i].Waiting = float64(waiting)
	}
	return nil
}

// minute is the minute that ended so many minutes ago; nil beyond the hour.
func (p *Past) minute(ago int32) *PastMinute {
	at := len(p.Minutes) - 1 - int(ago)
	if at < 0 || at >= len(p.Minutes) {
		return nil
	}
	return &p.Minutes[at]
}

// QueuesPast samples one queue so many times so many rows. Without an id it reads several queues
// with fewer samples.
const (
	leftLooks      = 150
	leftLooksShort = 30
	leftPer        = 15
	pastQueues     = 12
	// mostBefore bounds how long before the hour executions are searched that joined a queue of
	// groups.
	mostBefore = 24 * time.Hour
)

// QueuesPast is the last hour of some queues.
type QueuesPast struct {
	Reading
	// List is empty where admissions are not recorded.
	List []QueuePast `json:"list"`
}

// QueuePast is the last hour of a queue, derived from its executions.
type QueuePast struct {
	ID int64 `json:"id"`
	// Minutes are the last sixty, the oldest first.
	Minutes []QueueMinute `json:"minutes"`
	// Estimated says that more executions left the queue than were read.
	Estimated bool `json:"estimated,omitempty"`
}

// QueueMinute is a queue at the end of a minute.
type QueueMinute struct {
	At time.Time `json:"at"`
	// Depth is the number of waiting executions.
	Depth float64 `json:"depth"`
	// Head is the longest wait.
	Head time.Duration `json:"head_ns"`
}

// QueuesPast reads the last hour of a queue, or of the busiest for id 0, for the start of a
// dashboard and not for every poll. It derives waits from the times of requests, admissions and
// ends, so a delayed retry counts as waiting.
func (m *Monitor) QueuesPast(ctx context.Context, id int64) (*QueuesPast, error) {
	p := &QueuesPast{}
	err := m.Read(ctx, "the last hour of queues", &p.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		p.List = nil // the transaction may be repeated
		if !s.Shared {
			return nil
		}
		ids, looks := []int64{id}, int64(leftLooks)
		if id == 0 {
			var err error
			if ids, err = tx.ViewQueueIDs(ctx, store.ViewQueueIDsParams{Bound: pastQueues}); err != nil {
				return fmt.Errorf("list the busiest queues: %w", err)
			}
			looks = leftLooksShort
		}
		queues, err := m.QueuesByID(ctx, tx, ids)
		if err != nil {
			return err
		}
		for i := range queues {
			past, err := readQueuePast(ctx, tx, &queues[i], p.At, looks)
			if err != nil {
				return err
			}
			p.List = append(p.List, *past)
		}
		return nil
	})
	return p, err
}

// left is an execution that waited in a queue. A sample with a weight stands for executions that
// joined evenly until another time and waited as long.
type left struct {
	joined, until time.Time
	wait          time.Duration
	weight        float64
}

// at counts the waiting executions at a time and the longest wait.
func (l *left) at(then time.Time) (n float64, head time.Duration) {
	first := then.Add(-l.wait)
	if l.weight <= 1 {
		if l.joined.After(then) || !l.joined.After(first) {
			return 0, 0
		}
		return l.weight, then.Sub(l.joined)
	}
	from, to := l.joined, l.until
	if first.After(from) {
		from = first
	}
	if then.Before(to) {
		to = then
	}
	if !from.Before(to) {
		return 0, 0
	}
	return l.weight * to.Sub(from).Seconds() / l.until.Sub(l.joined).Seconds(), then.Sub(from)
}

func readQueuePast(ctx context.Context, tx *store.Tx, q *Queue, at time.Time, looks int64) (*QueuePast, error) {
	past := &QueuePast{ID: q.ID}
	list, err := readLeft(ctx, tx, q, at, looks)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		past.Estimated = past.Estimated || l.weight > 1
	}
	waits, estimated, err := readWaits(ctx, tx, q)
	if err != nil {
		return nil, err
	}
	past.Estimated = past.Estimated || estimated
	for _, then := range pastMinutes(at) {
		past.Minutes = append(past.Minutes, minuteOf(list, waits, at, then))
	}
	return past, nil
}

// minuteOf counts the executions that waited at a time: of those admitted since, and of those still
// waiting.
func minuteOf(list []left, waits []Waited, now, then time.Time) QueueMinute {
	m := QueueMinute{At: then}
	for _, l := range list {
		n, head := l.at(then)
		m.Depth += n
		m.Head = max(m.Head, head)
	}
	ago := now.Sub(then)
	for _, w := range waits {
		if w.Since >= ago {
			m.Depth += w.Weight
			m.Head = max(m.Head, w.Since-ago)
		}
	}
	m.Depth = math.Round(m.Depth)
	return m
}

// readLeft reads the executions that left the queue within the hour.
func readLeft(ctx context.Context, tx *store.Tx, q *Queue, at time.Time, looks int64) ([]left, error) {
	p := &Policies{}
	before := time.Duration(0)
	if q.Group != "" {
		a, err := FindAction(ctx, tx, "", q.ActionID)
		if err != nil {
			return nil, err
		}
		if p, err = ReadPolicies(ctx, tx, a.ID, a.PackID, a.ParamSchema); err != nil {
			return nil, err
		}
		before = PastSpan // the groups of an action do not progress evenly
		if q.Oldest != nil {
			before = max(before, 2*at.Sub(*q.Oldest))
		}
	}
	rows, err := tx.ViewLeft(ctx, store.ViewLeftParams{
		ActionID: q.ActionID, Below: behind(q), Seconds: (PastSpan + min(before, mostBefore)).Seconds(), Looks: looks,
		Per: leftPer, WithConfig: q.Group != "", Cut: ConfigCut,
	})
	if err != nil {
		return nil, fmt.Errorf("read what left queue %d within the hour: %w", q.ID, err)
	}
	var list []left
	for i, r := range rows {
		one := store.ViewSampleRow{ID: r.ID, HeldState: r.HeldState, Config: r.Config}
		if gone := moment(r.At); gone != nil && (q.Group == "" && r.HeldState == 0 || belongs(one, q, p)) {
			l := left{joined: r.Created, wait: max(gone.Sub(r.Created), 0), weight: r.Weight}
			if r.Weight > 1 {
				l.joined, l.until = stretch(rows, i, at)
			}
			list = append(list, l)
		}
	}
	return list, nil
}

// stretch is the time span of the executions that the rows of a sample stand for.
func stretch(rows []store.ViewLeftRow, i int, now time.Time) (from, until time.Time) {
	first, next := i, i
	for first > 0 && rows[first-1].Start == rows[i].Start {
		first--
	}
	for next < len(rows) && rows[next].Start == rows[i].Start {
		next++
	}
	from = rows[first].Created
	if next < len(rows) {
		until = rows[next].Created
	} else { // the last sample: its rate continues for its share
		pace := rows[next-1].Created.Sub(from)
		until = from.Add(min(time.Duration(rows[i].Weight*float64(pace)), now.Sub(from)))
	}
	if !from.Before(until) {
		until = from.Add(time.Millisecond)
	}
	return from, until
}

// behind is an id above every execution that left the queue in order; none if lanes overtake each
// other.
func behind(q *Queue) int64 {
	if normal := q.lanes[1]; normal.first != 0 && q.QueuedHigh+q.QueuedLow == 0 {
		return normal.first
	}
	return math.MaxInt64
}

// WorkersPast samples so many times so many rows of each status, and reads so many unfinished ones
// from both ends.
const (
	runLooks = 60
	runPer   = 15
	runScan  = 2_000
)

// WorkersPast is the last hour of all workers.
type WorkersPast struct {
	Reading
	// List is empty where the ends of executions are not recorded.
	List []WorkerPast `json:"list"`
	// Estimated says that more executions ended than were read.
	Estimated bool `json:"estimated,omitempty"`
}

// WorkerPast is the last hour of a worker, derived from its executions.
type WorkerPast struct {
	ID int64 `json:"id"`
	// Minutes are the last sixty, the oldest first.
	Minutes []WorkerMinute `json:"minutes"`
}

// WorkerMinute is the use of a worker in a minute.
type WorkerMinute struct {
	// At is the end of the minute.
	At time.Time `json:"at"`
	// Slots is the average number of running executions.
	Slots float64 `json:"slots"`
	Ended float64 `json:"ended"`
}

// Of finds the past of a worker; nil if it ran nothing.
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

// PerMinute is the rate of ends over the last minutes.
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

// WorkersPast reads the last hour of all workers, once a minute and not for every poll. It searches
// around the ids of an hour ago, so it may miss an ended run that began long before the others.
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

// add counts a run in every minute that it overlaps.
func (p *WorkersPast) add(r store.PastRunsRow) {
	w := p.Of(r.Worker)
	if w == nil {
		p.List = append(p.List, WorkerPast{ID: r.Worker})
		w = &p.List[len(p.List)-1]
		for _, at := range pastMinutes(p.At) {
			w.Minutes = append(w.Minutes, WorkerMinute{At: at})
		}
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
