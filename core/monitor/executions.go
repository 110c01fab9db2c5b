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
	search, err := newSearch(ctx, tx, s, filter, cursor, scan)
	if err != nil || search == nil {
		return &idPage{}, err
	}
	page := &idPage{}
	if page.ids, err = search.find(ctx, tx); err != nil {
		return nil, fmt.Errorf("search executions: %w", err)
	}
	return page, search.finish(ctx, tx, page)
}

// search is a filter prepared for the database: indexes find candidates, whose rows are then compared.
type search struct {
	shape         Shape
	ended, live   []string
	parent        int64
	named         []int64
	before, floor int64
	page, scan    int64
	// sift are the conditions without an index; nil if every candidate matches. params are those on parameters.
	sift   *store.MonitorSiftParams
	params []ParamMatch
	// rising is true when the oldest come first. bothEnds also reads the other end of the unfinished rows. windowed
	// reads every row of a range.
	rising, bothEnds, windowed bool
	// first is the first id that was read, stopped the last one if the search stopped there; 0 at the end. looked
	// counts the rows that were read.
	first, stopped, looked int64
}

// newSearch resolves names and times; nil when no row can match.
func newSearch(
	ctx context.Context, tx *store.Tx, s Shape, f ExecutionFilter, cursor, scan int64,
) (*search, error) {
	q := &search{
		shape: s, parent: f.Parent, named: f.IDs, before: cursor, page: int64(f.Limit), scan: scan, params: f.Params,
		rising: f.Oldest,
	}
	if q.before <= 0 || q.rising {
		q.before = math.MaxInt64
	}
	if q.page <= 0 {
		q.page = DefaultPage
	}
	for _, status := range f.Statuses {
		if status.Terminal() {
			q.ended = append(q.ended, string(status))
		} else {
			q.live = append(q.live, string(status))
		}
	}
	// Without an index for the matching rows, the search reads rows that do not match.
	reads := f.Parent == 0 && len(f.IDs) == 0 && (f.sifted() || f.Action != "" || f.Worker != "" || len(q.live) > 0 ||
		len(q.ended) > 0 && !s.Ours)
	q.bothEnds = reads && cursor <= 0 && len(q.live) > 0 && len(q.ended) == 0 && s.Ours && len(f.Params) == 0 &&
		!f.InOrder
	q.windowed = reads && !q.bothEnds || f.InOrder
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
	if !f.sifted() && !q.windowed && !q.bothEnds {
		q.scan = q.page
		return q, nil
	}
	if f.reasoned() {
		q.scan = min(q.scan, reasonBound)
	}
	if len(f.Statuses) > 0 && s.Ours && f.Parent == 0 {
		q.scan = min(q.scan, statusBound)
	}
	if q.windowed {
		q.scan = min(q.scan, paramBound)
	}
	if q.sift, err = newSift(ctx, tx, &f, q); err != nil || q.sift == nil {
		return nil, err
	}
	return q, nil
}

// statuses are never nil: the database reads an empty list as any status.
func (q *search) statuses() []string { return append(append([]string{}, q.ended...), q.live...) }

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

// find finds at most a page of ids in the order of the list.
func (q *search) find(ctx context.Context, tx *store.Tx) ([]int64, error) {
	ids, err := q.candidates(ctx, tx)
	if err != nil || q.sift == nil {
		return ids, err
	}
	if len(ids) > 0 && len(q.named) == 0 {
		q.first, q.looked = ids[0], int64(len(ids))
		if q.looked >= q.scan {
			q.stopped = ids[len(ids)-1]
		}
	}
	if q.bothEnds { // running executions are old, waiting ones may be many
		other, err := q.unended(ctx, tx, !q.rising)
		if err != nil {
			return nil, err
		}
		ids = inOrder(q.rising, append(ids, other...))
	}
	if len(ids) == 0 {
		return nil, nil
	}
	q.sift.Ids = ids
	if len(q.params) > 0 {
		if err := hideSecrets(ctx, tx, q.params, q.sift); err != nil {
			return nil, err
		}
	}
	matching, err := tx.MonitorSift(ctx, *q.sift)
	if err != nil {
		return nil, fmt.Errorf("look at %d rows: %w", len(ids), err)
	}
	if q.windowed && int64(len(matching)) >= q.page { // later rows belong to the next page
		q.looked = int64(slices.Index(ids, matching[len(matching)-1]) + 1)
	}
	return matching, nil
}

// candidates finds the first ids by the indexes, in the order of the list.
func (q *search) candidates(ctx context.Context, tx *store.Tx) ([]int64, error) {
	switch {
	case len(q.named) > 0:
		return inOrder(q.rising, slices.DeleteFunc(slices.Clone(q.named),
			func(id int64) bool { return id >= q.before || id < q.floor })), nil
	case q.parent != 0:
		return tx.MonitorChildIDs(ctx, store.MonitorChildIDsParams{
			Parent: q.parent, Before: q.before, Floor: q.floor, Statuses: q.statuses(), Rising: q.rising, Page: q.scan,
		})
	case !q.shape.Ours || len(q.ended)+len(q.live) == 0:
		return tx.MonitorWindow(ctx,
			store.MonitorWindowParams{Rising: q.rising, Before: q.before, Floor: q.floor, Scan: q.scan})
	}
	var all []int64
	var err error
	if len(q.ended) > 0 {
		if all, err = tx.MonitorEnded(ctx, store.MonitorEndedParams{
			Statuses: q.ended, Rising: q.rising, Before: q.before, Floor: q.floor, Scan: q.scan,
		}); err != nil {
			return nil, err
		}
	}
	if len(q.live) > 0 {
		ids, err := q.unended(ctx, tx, q.rising)
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
	}
	all = inOrder(q.rising, all)
	return all[:min(int64(len(all)), q.scan)], nil
}

// unended finds the first unfinished executions from one end.
func (q *search) unended(ctx context.Context, tx *store.Tx, rising bool) ([]int64, error) {
	return tx.MonitorUnendedWindow(ctx,
		store.MonitorUnendedWindowParams{Rising: rising, Before: q.before, Floor: q.floor, Scan: q.scan})
}

// finish sets the cursor of the next page, whether the search was cut short and about how much is left.
func (q *search) finish(ctx context.Context, tx *store.Tx, page *idPage) error {
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
	list, err := store.Rows[Execution](ctx, tx, s.query(store.MonitorExecutionsByID, store.MonitorPublishedByID), ids)
	if err != nil {
		return nil, fmt.Errorf("read %d executions: %w", len(ids), err)
	}
	for i := range list {
		list[i].Reason = cutText(list[i].Reason, 300)
	}
	return list, nil
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
