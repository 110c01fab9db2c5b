package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
)

// Executions reads one page of matching executions beyond the cursor; 0 is the beginning. A filtered
// search reads a bounded number of rows and says so; Next then continues behind them.
func (m *Monitor) Executions(ctx context.Context, filter ExecutionFilter, cursor int64) (*Executions, error) {
	x := &Executions{Filter: filter, From: cursor}
	err := m.Read(ctx, "executions", &x.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		page, err := findExecutions(ctx, tx, s, filter, cursor)
		if err != nil {
			return err
		}
		x.Bounded, x.Next, x.Looked, x.Left = page.bounded, page.next, page.looked, page.left
		if x.List, err = ReadExecutions(ctx, tx, s, page.ids); err == nil && filter.WithParams {
			err = readParams(ctx, tx, x.List)
		}
		if filter.Oldest {
			slices.Reverse(x.List)
		}
		return err
	})
	return x, err
}

// idPage is a page of ids and the cursor of the next.
type idPage struct {
	ids     []int64
	next    int64
	bounded bool
	// looked counts the rows that a search read, left says about how many it did not.
	looked, left int64
}

// findExecutions merges a page of each alternative. Where one stopped early the page ends, because
// its rows below are missing.
func findExecutions(ctx context.Context, tx *store.Tx, s Shape, filter ExecutionFilter, cursor int64) (*idPage, error) {
	all := &idPage{}
	for _, f := range append([]ExecutionFilter{filter}, filter.Or...) {
		f.Limit, f.Oldest, f.InOrder = filter.Limit, filter.Oldest, filter.InOrder
		one, err := findPage(ctx, tx, s, f, cursor, scanBound/int64(1+len(filter.Or)))
		if err != nil {
			return nil, err
		}
		all.ids, all.bounded, all.next = append(all.ids, one.ids...), all.bounded || one.bounded,
			sooner(filter.Oldest, all.next, one.next)
		all.looked, all.left = all.looked+one.looked, all.left+one.left
	}
	if len(filter.Or) == 0 {
		return all, nil
	}
	page := cmp.Or(filter.Limit, DefaultPage)
	if all.ids = mergeIDs(filter.Oldest, all.ids, all.next); len(all.ids) > page {
		all.ids, all.next = all.ids[:page], all.ids[page-1]
	}
	return all, nil
}

// mergeIDs sorts the ids of several searches. The list ends at stop, where a search stopped early:
// beyond it rows of that search are missing.
func mergeIDs(oldest bool, ids []int64, stop int64) []int64 {
	ids = inOrder(oldest, ids)
	beyond := func(id int64) bool { return stop != 0 && id != stop && sooner(oldest, id, stop) == stop }
	if end := slices.IndexFunc(ids, beyond); end >= 0 {
		return ids[:end]
	}
	return ids
}

// sooner is the id that comes first in a list; 0 is none.
func sooner(oldest bool, a, b int64) int64 {
	if oldest && a != 0 && b != 0 {
		return min(a, b)
	}
	return max(a, b)
}

// inOrder sorts ids as a list does, without duplicates.
func inOrder(oldest bool, ids []int64) []int64 {
	slices.Sort(ids)
	if !oldest {
		slices.Reverse(ids)
	}
	return slices.Compact(ids)
}

// findPage finds the page of one alternative in scan rows.
func findPage(ctx context.Context, tx *store.Tx, s Shape, filter ExecutionFilter, cursor, scan int64) (*idPage, error) {
	search, err := newSearch(ctx, tx, s, filter, cursor)
	if err != nil || search == nil {
		return &idPage{}, err
	}
	search.scan = scan
	page := &idPage{}
	if page.ids, err = search.ids(ctx, tx, &filter); err != nil {
		return nil, fmt.Errorf("search executions: %w", err)
	}
	return page, search.finish(ctx, tx, page)
}

// search is a filter prepared for the database.
type search struct {
	shape           Shape
	ended, live     []string
	pattern         string
	worker, parent  int64
	before, floor   int64
	page, scan      int64
	statusesAllowed []string
	sift            *sift
	// byID is true when the filter names ids, rising when the oldest come first.
	byID, rising bool
	// first is the first id that was read, stopped the last one if the search stopped there; 0 at the end.
	first, stopped int64
	// windowed reads every row of a range. looked counts the rows that were read.
	windowed bool
	looked   int64
}

// took notes the rows that the search has read, at most so many.
func (q *search) took(ids []int64, most int64) {
	if len(ids) == 0 {
		return
	}
	q.first, q.looked = ids[0], int64(len(ids))
	if q.looked >= most {
		q.stopped = ids[len(ids)-1]
	}
}

// newSearch resolves names and times; nil when no row can match.
func newSearch(ctx context.Context, tx *store.Tx, s Shape, f ExecutionFilter, cursor int64) (*search, error) {
	q := &search{
		shape: s, pattern: Pattern(f.Action, false), parent: f.Parent, before: cursor, page: int64(f.Limit),
		scan: scanBound, rising: f.Oldest,
	}
	if q.before <= 0 || q.rising {
		q.before = math.MaxInt64
	}
	if q.page <= 0 {
		q.page = DefaultPage
	}
	for _, status := range f.Statuses {
		q.statusesAllowed = append(q.statusesAllowed, string(status))
		if status.Terminal() {
			q.ended = append(q.ended, string(status))
		} else {
			q.live = append(q.live, string(status))
		}
	}
	bothEnds := cursor <= 0 && len(q.live) > 0 && len(q.ended) == 0 && s.Ours && len(f.Params) == 0 && !f.InOrder
	q.windowed = q.reads(&f) && !bothEnds || f.InOrder
	if f.Worker != "" {
		id, err := ResolveWorker(ctx, tx, f.Worker)
		if err != nil || id == 0 {
			return nil, err
		}
		q.worker = id
	}
	floor, ceiling, err := timeWindow(ctx, tx, f.MaxAge, f.MinAge)
	if err != nil {
		return nil, err
	}
	q.floor, q.before = floor, min(q.before, ceiling)
	if q.rising {
		q.floor = max(q.floor, cursor+1)
	}
	q.floor = max(q.floor, f.MinID)
	if f.MaxID > 0 {
		q.before = min(q.before, f.MaxID+1)
	}
	if q.sift, err = newSift(ctx, tx, &f, q); err != nil || q.sift != nil && q.sift.impossible {
		return nil, err
	}
	return q, nil
}

// reads reports whether the search reads rows that do not match, because no index finds the matching ones.
func (q *search) reads(f *ExecutionFilter) bool {
	if f.Parent != 0 || len(f.IDs) > 0 {
		return false
	}
	return f.sifted() || q.pattern != "" || f.Worker != "" || len(q.live) > 0 || len(q.ended) > 0 && !q.shape.Ours
}

// timeWindow converts ages into a range of ids.
func timeWindow(ctx context.Context, tx *store.Tx, within, before time.Duration) (floor, ceiling int64, err error) {
	ceiling = math.MaxInt64
	if within > 0 {
		if floor, err = tx.MonitorFloor(ctx, within.Seconds()); err != nil {
			return 0, 0, fmt.Errorf("find where the time window begins: %w", err)
		}
	}
	if before > 0 {
		if ceiling, err = tx.MonitorFloor(ctx, before.Seconds()); err != nil {
			return 0, 0, fmt.Errorf("find where the time window ends: %w", err)
		}
	}
	return floor, ceiling, nil
}

// ResolveWorker converts an id or a name into an id; 0 if the worker does not exist.
func ResolveWorker(ctx context.Context, tx *store.Tx, worker string) (int64, error) {
	if id, err := strconv.ParseInt(worker, 10, 64); err == nil {
		return id, nil
	}
	id, err := tx.MonitorWorkerByName(ctx, worker)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find worker %q: %w", worker, err)
	}
	return id, nil
}

// ids finds at most a page of ids in the order of the list.
func (q *search) ids(ctx context.Context, tx *store.Tx, f *ExecutionFilter) ([]int64, error) {
	switch {
	case q.sift != nil:
		return q.siftedIDs(ctx, tx, f)
	case q.parent != 0:
		return tx.MonitorChildIDs(ctx, store.MonitorChildIDsParams{
			Parent: q.parent, Before: q.before, Floor: q.floor, Statuses: q.allowed(), Rising: q.rising, Page: q.page,
		})
	case !q.shape.Ours || len(q.ended) == 0 && len(q.live) == 0:
		arg := store.MonitorNewestParams{
			Before: q.before, Floor: q.floor, Scan: q.scan, Pattern: q.pattern, Worker: q.worker,
			Statuses: q.allowed(), Page: q.page,
		}
		if q.rising {
			return tx.MonitorOldest(ctx, store.MonitorOldestParams(arg))
		}
		return tx.MonitorNewest(ctx, arg)
	}
	return q.idsByStatus(ctx, tx)
}

// allowed is never nil: the database reads an empty list as any status.
func (q *search) allowed() []string {
	if q.statusesAllowed == nil {
		return []string{}
	}
	return q.statusesAllowed
}

func (q *search) idsByStatus(ctx context.Context, tx *store.Tx) ([]int64, error) {
	var all []int64
	q.scan = min(q.scan, statusBound)
	ended := q.scan
	if q.pattern == "" && q.worker == 0 {
		ended = q.page // the index alone decides
	}
	if len(q.ended) > 0 {
		ids, err := q.idsEnded(ctx, tx, ended)
		if err != nil {
			return nil, err
		}
		all = ids
	}
	switch {
	case len(q.live) > 0 && q.windowed:
		ids, err := tx.MonitorUnendedWindow(ctx,
			store.MonitorUnendedWindowParams{Rising: q.rising, Before: q.before, Floor: q.floor, Scan: q.scan})
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
	case len(q.live) > 0:
		ids, err := tx.MonitorUnended(ctx, store.MonitorUnendedParams{
			Statuses: q.live, Before: q.before, Floor: q.floor, Scan: q.scan, Pattern: q.pattern, Worker: q.worker,
			Rising: q.rising, Page: q.page,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
	}
	all = inOrder(q.rising, all)
	return all[:min(int64(len(all)), q.page)], nil
}

// idsEnded finds a page of ended executions in scan rows of each status.
func (q *search) idsEnded(ctx context.Context, tx *store.Tx, scan int64) ([]int64, error) {
	arg := store.MonitorEndedParams{
		Statuses: q.ended, Before: q.before, Floor: q.floor, Scan: scan, Pattern: q.pattern, Worker: q.worker,
		Page: q.page,
	}
	if q.rising {
		return tx.MonitorOldestEnded(ctx, store.MonitorOldestEndedParams(arg))
	}
	return tx.MonitorEnded(ctx, arg)
}

// finish sets the cursor of the next page, whether the search was cut short and about how much is left.
func (q *search) finish(ctx context.Context, tx *store.Tx, page *idPage) error {
	if len(q.live) > 0 && !q.windowed && q.parent == 0 && !q.byID {
		// Both ends of the unfinished rows were searched: the next page continues behind the first end.
		ids, err := tx.MonitorUnendedWindow(ctx,
			store.MonitorUnendedWindowParams{Rising: q.rising, Before: q.before, Floor: q.floor, Scan: q.scan})
		if err != nil {
			return fmt.Errorf("find where the search stopped: %w", err)
		}
		q.stopped = 0
		q.took(ids, q.scan)
	}
	if int64(len(page.ids)) >= q.page {
		page.next = page.ids[len(page.ids)-1]
		if q.stopped == 0 || sooner(q.rising, page.next, q.stopped) == page.next {
			page.looked = q.looked
			return nil
		}
	}
	page.looked, page.bounded, page.next = q.looked, q.stopped != 0, q.stopped
	if !page.bounded {
		return nil
	}
	floor, before := q.floor, q.stopped
	if q.rising {
		floor, before = q.stopped+1, q.before
	}
	span, err := tx.MonitorSpan(ctx, before, floor)
	if err != nil {
		return fmt.Errorf("estimate how much is left to search: %w", err)
	}
	width := max(max(q.first, q.stopped)-min(q.first, q.stopped), 1)
	page.left = int64(float64(q.looked) * float64(span.Last-span.First) / float64(width))
	return nil
}

// ReadExecutions reads the rows of a page, the newest first.
func ReadExecutions(ctx context.Context, tx *store.Tx, s Shape, ids []int64) ([]Execution, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var rows []store.MonitorExecutionsByIDRow
	var err error
	if s.Ours {
		rows, err = tx.MonitorExecutionsByID(ctx, ids)
	} else {
		var published []store.MonitorPublishedByIDRow
		published, err = tx.MonitorPublishedByID(ctx, ids)
		rows = each(published, func(r store.MonitorPublishedByIDRow) store.MonitorExecutionsByIDRow {
			return store.MonitorExecutionsByIDRow(r)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read %d executions: %w", len(ids), err)
	}
	return each(rows, func(r store.MonitorExecutionsByIDRow) Execution {
		return Execution{
			ID: r.ID, ActionRef: r.ActionRef, Status: string(r.Status), WorkerID: r.Worker,
			WorkerName: text(r.WorkerName), Parent: r.Parent, Created: r.Created, Updated: r.Updated,
			StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, RetryCount: int64(r.RetryCount),
			MaxRetries: wide(r.MaxRetries), Reason: cutText(r.Reason, 300), RepeatedBy: r.RepeatedBy,
		}
	}), nil
}

// MatchBound bounds the count of matching executions.
const MatchBound = 10_000

// Matching counts the executions that match a filter.
type Matching struct {
	Reading
	Count Count `json:"count"`
}

// Matching counts matching executions up to MatchBound, by the same search that lists them.
func (m *Monitor) Matching(ctx context.Context, filter ExecutionFilter) (*Matching, error) {
	n := &Matching{}
	err := m.Read(ctx, "executions", &n.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		filter.Limit = MatchBound
		page, err := findExecutions(ctx, tx, s, filter, 0)
		if err != nil {
			return err
		}
		n.Count = Count{Value: int64(len(page.ids)), AtLeast: page.bounded || page.next != 0}
		return nil
	})
	return n, err
}
