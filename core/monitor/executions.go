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

	"github.com/attune-go/attune/core/store"
)

// Executions reads one page of the executions that match the filter, the newest
// first, below the cursor; a cursor of zero begins at the newest. A filtered
// search looks at a bounded number of rows and says when it stopped there; Next
// then goes on below what was looked at, where that is known.
func (m *Monitor) Executions(ctx context.Context, filter ExecutionFilter, cursor int64) (*Executions, error) {
	x := &Executions{Filter: filter, From: cursor}
	err := m.database(ctx, "executions", &x.Reading, func(ctx context.Context, tx *store.Tx, s shape) error {
		page, err := findExecutions(ctx, tx, s, filter, cursor)
		if err != nil {
			return err
		}
		x.Bounded, x.Next = page.bounded, page.next
		x.List, err = readExecutions(ctx, tx, s, page.ids)
		return err
	})
	return x, err
}

// idPage is a page of ids and where the next one begins.
type idPage struct {
	ids     []int64
	next    int64
	bounded bool
}

// findExecutions finds a page for each alternative of the filter and makes one page
// of them. Where one of them stopped early, the page ends there: below it rows of
// that alternative would be missing.
func findExecutions(ctx context.Context, tx *store.Tx, s shape, filter ExecutionFilter, cursor int64) (*idPage, error) {
	all := &idPage{}
	for _, f := range append([]ExecutionFilter{filter}, filter.Or...) {
		f.Limit = filter.Limit
		one, err := findPage(ctx, tx, s, f, cursor, scanBound/int64(1+len(filter.Or)))
		if err != nil {
			return nil, err
		}
		all.ids, all.bounded, all.next = append(all.ids, one.ids...), all.bounded || one.bounded, max(all.next, one.next)
	}
	if len(filter.Or) == 0 {
		return all, nil
	}
	slices.Sort(all.ids)
	slices.Reverse(all.ids)
	all.ids = slices.Compact(all.ids)
	if end := slices.IndexFunc(all.ids, func(id int64) bool { return id < all.next }); end >= 0 {
		all.ids = all.ids[:end]
	}
	if page := cmp.Or(filter.Limit, DefaultPage); len(all.ids) > page {
		all.ids, all.next = all.ids[:page], all.ids[page-1]
	}
	return all, nil
}

// findPage finds the page of one alternative, for which it looks at scan rows.
func findPage(ctx context.Context, tx *store.Tx, s shape, filter ExecutionFilter, cursor, scan int64) (*idPage, error) {
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

// search is a filter made ready for the database.
type search struct {
	shape           shape
	ended, live     []string
	pattern         string
	worker, parent  int64
	before, floor   int64
	page, scan      int64
	statusesAllowed []string
	// sift is what is asked of the rows that were found; nil: nothing.
	sift *sift
	// byID is true when the ids were given.
	byID bool
	// stopped is the id at which looking at rows stopped; zero at the end.
	stopped int64
}

// newSearch resolves names and times. It is nil when nothing can match.
func newSearch(ctx context.Context, tx *store.Tx, s shape, f ExecutionFilter, cursor int64) (*search, error) {
	q := &search{shape: s, pattern: pattern(f.Action, false), parent: f.Parent, before: cursor, page: int64(f.Limit), scan: scanBound}
	if q.before <= 0 {
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
	if f.Worker != "" {
		id, err := resolveWorker(ctx, tx, f.Worker)
		if err != nil || id == 0 {
			return nil, err
		}
		q.worker = id
	}
	if f.MaxAge > 0 {
		floor, err := tx.MonitorFloor(ctx, f.MaxAge.Seconds())
		if err != nil {
			return nil, fmt.Errorf("find where the time window begins: %w", err)
		}
		q.floor = floor
	}
	if f.MinAge > 0 {
		ceiling, err := tx.MonitorFloor(ctx, f.MinAge.Seconds())
		if err != nil {
			return nil, fmt.Errorf("find where the time window ends: %w", err)
		}
		q.before = min(q.before, ceiling)
	}
	var err error
	if q.sift, err = newSift(ctx, tx, &f, q); err != nil || q.sift != nil && q.sift.impossible {
		return nil, err
	}
	return q, nil
}

// resolveWorker turns an id or a name into an id, zero if there is no such worker.
func resolveWorker(ctx context.Context, tx *store.Tx, worker string) (int64, error) {
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

// ids finds the page: at most page ids, the newest first.
func (q *search) ids(ctx context.Context, tx *store.Tx, f *ExecutionFilter) ([]int64, error) {
	switch {
	case q.sift != nil:
		return q.siftedIDs(ctx, tx, f)
	case q.parent != 0:
		return tx.MonitorChildIDs(ctx, store.MonitorChildIDsParams{
			Parent: q.parent, Before: q.before, Statuses: q.allowed(), Page: q.page,
		})
	case !q.shape.ours:
		return tx.MonitorPublishedIDs(ctx, store.MonitorPublishedIDsParams{
			Before: q.before, Floor: q.floor, Scan: q.scan, Pattern: q.pattern, Worker: q.worker, Statuses: q.allowed(), Page: q.page,
		})
	case len(q.ended) == 0 && len(q.live) == 0:
		return tx.MonitorNewest(ctx, store.MonitorNewestParams{
			Before: q.before, Floor: q.floor, Scan: q.scan, Pattern: q.pattern, Worker: q.worker, Page: q.page,
		})
	}
	return q.idsByStatus(ctx, tx)
}

// allowed is never nil, since the database takes an empty list for "any".
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
		ended = q.page // The index alone decides; there is nothing to look past.
	}
	if len(q.ended) > 0 {
		ids, err := tx.MonitorEnded(ctx, store.MonitorEndedParams{
			Statuses: q.ended, Before: q.before, Floor: q.floor, Scan: ended, Pattern: q.pattern, Worker: q.worker, Page: q.page,
		})
		if err != nil {
			return nil, err
		}
		all = ids
	}
	if len(q.live) > 0 {
		ids, err := tx.MonitorUnended(ctx, store.MonitorUnendedParams{
			Statuses: q.live, Before: q.before, Floor: q.floor, Scan: q.scan, Pattern: q.pattern, Worker: q.worker, Page: q.page,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
	}
	slices.Sort(all)
	slices.Reverse(all)
	all = slices.Compact(all)
	return all[:min(int64(len(all)), q.page)], nil
}

// finish says where the next page begins and whether the search was cut short.
func (q *search) finish(ctx context.Context, tx *store.Tx, page *idPage) error {
	if int64(len(page.ids)) >= q.page {
		page.next = page.ids[len(page.ids)-1]
		return nil
	}
	byIndex := q.parent != 0 || q.shape.ours && len(q.statusesAllowed) > 0
	if q.stopped != 0 && len(q.live) == 0 {
		page.bounded, page.next = true, q.stopped
		return nil
	}
	if q.parent != 0 || q.byID || !q.filtered() {
		return nil
	}
	edge, err := tx.MonitorScanEdge(ctx, q.before, q.floor, q.scan)
	if err != nil {
		return fmt.Errorf("find where the search stopped: %w", err)
	}
	if len(edge) == 0 {
		return nil
	}
	// Ended rows of a status alone are found whole by their index.
	page.bounded = !byIndex || q.pattern != "" || q.worker != 0 || len(q.live) > 0
	if !byIndex && len(page.ids) > 0 {
		page.next = edge[0] + 1
	}
	return nil
}

// filtered reports whether rows are looked at that are not on the page.
func (q *search) filtered() bool {
	return q.pattern != "" || q.worker != 0 || len(q.statusesAllowed) > 0 || q.sift != nil
}

func readExecutions(ctx context.Context, tx *store.Tx, s shape, ids []int64) ([]Execution, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if !s.ours {
		return readPublishedExecutions(ctx, tx, ids)
	}
	rows, err := tx.MonitorExecutionsByID(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read %d executions: %w", len(ids), err)
	}
	list := make([]Execution, len(rows))
	for i, r := range rows {
		list[i] = Execution{
			ID: r.ID, ActionRef: r.ActionRef, Status: string(r.Status), WorkerID: r.Worker, WorkerName: text(r.WorkerName),
			Parent: r.Parent, Created: r.Created, Updated: r.Updated, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
			RetryCount: int64(r.RetryCount), MaxRetries: wide(r.MaxRetries), Reason: r.Reason,
		}
	}
	return list, nil
}

func readPublishedExecutions(ctx context.Context, tx *store.Tx, ids []int64) ([]Execution, error) {
	rows, err := tx.MonitorPublishedByID(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read %d executions: %w", len(ids), err)
	}
	list := make([]Execution, len(rows))
	for i, r := range rows {
		list[i] = Execution{
			ID: r.ID, ActionRef: r.ActionRef, Status: string(r.Status), WorkerID: r.Worker, WorkerName: text(r.WorkerName),
			Parent: r.Parent, Created: r.Created, Updated: r.Updated, StartedAt: r.StartedAt,
			RetryCount: int64(r.RetryCount), MaxRetries: wide(r.MaxRetries), Reason: r.Reason,
		}
	}
	return list, nil
}
