package monitor

import (
	"context"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/store"
)

// reasonBound is how many results a search opens before it stops.
const reasonBound = 2_000

// sift is what a search asks of the rows that the indexes have found.
type sift struct {
	params store.MonitorSiftParams
	// impossible is true when nothing can pass.
	impossible bool
}

// newSift makes the part of a filter ready that no index finds; nil when there is
// none.
func newSift(ctx context.Context, tx *store.Tx, f *ExecutionFilter, q *search) (*sift, error) {
	if !f.sifted() {
		return nil, nil
	}
	s := &sift{params: store.MonitorSiftParams{
		Statuses: q.allowed(), Pattern: q.pattern, Match: list(f.Match), Unmatch: list(f.Unmatch), Reasons: list(f.Reasons),
		NotReasons: list(f.NotReasons), Params: []string{}, ParamMatch: []string{}, ParamNot: []bool{}, Cut: MaxDocument,
		SecretActions: []string{}, SecretParams: []string{}, MinTries: f.MinTries, MaxTries: NoLimit, Parent: f.Parent, Parented: f.Parented, Rising: q.rising, Page: q.page,
	}}
	for _, p := range f.Params {
		s.params.Params = append(s.params.Params, p.Path)
		s.params.ParamMatch, s.params.ParamNot = append(s.params.ParamMatch, p.expression()), append(s.params.ParamNot, p.Not)
	}
	if f.MaxTries != nil {
		s.params.MaxTries = *f.MaxTries
	}
	var err error
	if s.params.Workers, err = resolveAll(ctx, tx, f.Workers, resolveWorker); err != nil {
		return nil, err
	}
	if s.params.NotWorkers, err = resolveAll(ctx, tx, f.NotWorkers, resolveWorker); err != nil {
		return nil, err
	}
	s.impossible = len(f.Workers) > 0 && len(s.params.Workers) == 0
	if q.worker != 0 && len(s.params.Workers) == 0 {
		s.params.Workers = []int64{q.worker}
	}
	return s, nil
}

// list is never nil, since the database would take that for an unknown list.
func list[T any](values []T) []T {
	if values == nil {
		return []T{}
	}
	return values
}

// resolveAll turns names into ids by one of the resolvers; those that do not exist are left out.
func resolveAll(
	ctx context.Context, tx *store.Tx, names []string, resolve func(context.Context, *store.Tx, string) (int64, error),
) ([]int64, error) {
	ids := []int64{}
	for _, name := range names {
		id, err := resolve(ctx, tx, name)
		if err != nil {
			return nil, err
		}
		if id != 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// siftedIDs finds the page among what the indexes find, of which it looks at a
// bounded number.
func (q *search) siftedIDs(ctx context.Context, tx *store.Tx, f *ExecutionFilter) ([]int64, error) {
	page := q.page
	wide := *q
	wide.sift = nil
	if f.reasoned() {
		wide.scan = min(wide.scan, reasonBound)
	}
	if len(q.statusesAllowed) > 0 && q.shape.Ours && q.parent == 0 {
		wide.scan = min(wide.scan, statusBound)
	}
	if q.windowed { // the rows are looked at here, so that where that stopped is known
		wide.pattern, wide.worker, wide.statusesAllowed = "", 0, nil
		wide.scan = min(wide.scan, paramBound)
	}
	wide.page, q.scan = wide.scan, wide.scan // what is found first is found whole down to the last of it
	candidates := q.named(f.IDs)
	if q.byID = len(f.IDs) > 0; !q.byID {
		var err error
		if candidates, err = wide.ids(ctx, tx, f); err != nil {
			return nil, err
		}
		if int64(len(candidates)) >= wide.page {
			q.stopped = candidates[len(candidates)-1]
		}
	}
	if q.windowed {
		q.looked = int64(len(candidates))
	}
	if len(candidates) == 0 {
		return nil, nil
	}
	params := q.sift.params
	params.Ids, params.Page = candidates, page
	if len(f.Params) > 0 {
		if err := hideSecrets(ctx, tx, f.Params, &params); err != nil {
			return nil, err
		}
	}
	ids, err := tx.MonitorSift(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("look at %d rows: %w", len(candidates), err)
	}
	if q.windowed && int64(len(ids)) >= page { // what is behind the last of them is for the next page
		q.looked = int64(slices.Index(candidates, ids[len(ids)-1]) + 1)
	}
	return ids, nil
}

// named are the ids that were asked for and are on the page, in the order of the list.
func (q *search) named(ids []int64) []int64 {
	var out []int64
	for _, id := range ids {
		if id < q.before && id >= q.floor {
			out = append(out, id)
		}
	}
	return inOrder(q.rising, out)
}
