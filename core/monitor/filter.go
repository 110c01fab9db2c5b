package monitor

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/store"
)

// ExecutionFilter selects executions. The zero value selects all.
type ExecutionFilter struct {
	// Statuses keeps these statuses; empty keeps all.
	Statuses []attune.Status `json:"statuses,omitempty"`
	// Action keeps actions whose ref matches; a star stands for anything.
	Action string `json:"action,omitempty"`
	// Worker keeps executions of one worker, given by id or by name; Workers those of
	// any of several, NotWorkers all but theirs. One that does not exist has none.
	Worker     string   `json:"worker,omitempty"`
	Workers    []string `json:"workers,omitempty"`
	NotWorkers []string `json:"not_workers,omitempty"`
	// MaxAge keeps executions requested within it, MinAge those requested before;
	// zero keeps all.
	MaxAge time.Duration `json:"max_age_ns,omitempty"`
	MinAge time.Duration `json:"min_age_ns,omitempty"`
	// Parent keeps the children of one execution; zero keeps all. Parented keeps
	// those that have one, or that have none.
	Parent   int64  `json:"parent,omitempty"`
	Parented string `json:"parented,omitempty"`
	// IDs keeps these executions; empty keeps all.
	IDs []int64 `json:"ids,omitempty"`
	// MinID and MaxID keep the ids from one to the other, both included; zero is no
	// bound.
	MinID int64 `json:"min_id,omitempty"`
	MaxID int64 `json:"max_id,omitempty"`
	// Params keeps executions whose parameters match all of these.
	Params []ParamMatch `json:"params,omitempty"`
	// Match are expressions that the action's ref must all contain, Unmatch those of
	// which it must contain none; capitals do not matter. Reasons and NotReasons are
	// the same for why an execution ended as it did.
	Match      []string `json:"match,omitempty"`
	Unmatch    []string `json:"unmatch,omitempty"`
	Reasons    []string `json:"reasons,omitempty"`
	NotReasons []string `json:"not_reasons,omitempty"`
	// MinTries and MaxTries bound how often it was repeated.
	MinTries int64  `json:"min_tries,omitempty"`
	MaxTries *int64 `json:"max_tries,omitempty"`
	// Or are further filters: what one of them selects is selected too. Their own
	// limits and alternatives are ignored.
	Or []ExecutionFilter `json:"or,omitempty"`
	// Oldest begins with the oldest instead of the newest.
	Oldest bool `json:"oldest,omitempty"`
	// Limit bounds a page; zero means DefaultPage.
	Limit int `json:"limit,omitempty"`
	// WithParams reads the parameters of the rows of a page too.
	WithParams bool `json:"with_params,omitempty"`

	// windowed looks at every row of a range, so that the search can go on where it
	// stopped.
	windowed bool
}

// The values of Parented.
const (
	ParentedAny  = "any"
	ParentedNone = "none"
)

// NoLimit is a number of tries that nothing reaches.
const NoLimit int64 = math.MaxInt32

// sifted reports whether the filter asks for something that no index finds.
func (f *ExecutionFilter) sifted() bool {
	return len(f.Workers) > 0 || len(f.NotWorkers) > 0 || len(f.IDs) > 0 || len(f.Match) > 0 || len(f.Unmatch) > 0 ||
		len(f.Params) > 0 || f.windowed || f.Parented != "" || f.MinTries > 0 || f.MaxTries != nil || f.reasoned() ||
		f.Parent != 0 && (f.Action != "" || f.Worker != "" || f.MaxAge > 0)
}

// ByParams reports whether parameters have to be opened.
func (f *ExecutionFilter) ByParams() bool {
	return len(f.Params) > 0 || slices.ContainsFunc(f.Or,
		func(other ExecutionFilter) bool { return len(other.Params) > 0 })
}

// reasoned reports whether results have to be opened.
func (f *ExecutionFilter) reasoned() bool { return len(f.Reasons) > 0 || len(f.NotReasons) > 0 }

// String says the filter in words.
func (f *ExecutionFilter) String() string {
	var terms []string
	add := func(name string, values ...string) {
		if len(values) > 0 && values[0] != "" {
			terms = append(terms, name+strings.Join(values, ","))
		}
	}
	words := make([]string, len(f.Statuses))
	for i, s := range f.Statuses {
		words[i] = string(s)
	}
	add("status:", words...)
	add("action:", f.Action)
	add("worker:", f.Worker)
	if f.Parent != 0 {
		add("parent:", strconv.FormatInt(f.Parent, 10))
	}
	if f.MaxAge > 0 {
		add("age<", f.MaxAge.String())
	}
	if f.MinAge > 0 {
		add("age>", f.MinAge.String())
	}
	return strings.Join(terms, " ")
}

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
		Statuses: q.allowed(), Pattern: q.pattern, Match: list(f.Match), Unmatch: list(f.Unmatch),
		Reasons:    list(f.Reasons),
		NotReasons: list(f.NotReasons), Params: []string{}, ParamMatch: []string{}, ParamNot: []bool{},
		Cut:           MaxDocument,
		SecretActions: []string{}, SecretParams: []string{}, MinTries: f.MinTries, MaxTries: NoLimit,
		Parent: f.Parent, Parented: f.Parented, Rising: q.rising, Page: q.page,
	}}
	for _, p := range f.Params {
		s.params.Params = append(s.params.Params, p.Path)
		s.params.ParamMatch, s.params.ParamNot = append(s.params.ParamMatch, p.expression()),
			append(s.params.ParamNot, p.Not)
	}
	if f.MaxTries != nil {
		s.params.MaxTries = *f.MaxTries
	}
	var err error
	if s.params.Workers, err = resolveAll(ctx, tx, f.Workers, ResolveWorker); err != nil {
		return nil, err
	}
	if s.params.NotWorkers, err = resolveAll(ctx, tx, f.NotWorkers, ResolveWorker); err != nil {
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
