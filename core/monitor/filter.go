package monitor

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// ExecutionFilter selects executions. The zero value selects all.
type ExecutionFilter struct {
	// Statuses keeps these statuses; empty keeps all.
	Statuses []lifecycle.Status `json:"statuses,omitempty"`
	// Action keeps actions whose ref matches; a star matches anything.
	Action string `json:"action,omitempty"`
	// Worker, Workers and NotWorkers name workers by id or name. An unknown worker has no
	// executions.
	Worker     string   `json:"worker,omitempty"`
	Workers    []string `json:"workers,omitempty"`
	NotWorkers []string `json:"not_workers,omitempty"`
	// MaxAge keeps executions requested within it, MinAge executions requested before.
	MaxAge time.Duration `json:"max_age_ns,omitempty"`
	MinAge time.Duration `json:"min_age_ns,omitempty"`
	// Parent keeps the children of one execution. Parented is ParentedAny or ParentedNone.
	Parent   int64   `json:"parent,omitempty"`
	Parented string  `json:"parented,omitempty"`
	IDs      []int64 `json:"ids,omitempty"`
	// MinID and MaxID are inclusive.
	MinID int64 `json:"min_id,omitempty"`
	MaxID int64 `json:"max_id,omitempty"`
	// Params must all match.
	Params []ParamMatch `json:"params,omitempty"`
	// Match are regular expressions that the action's ref must all match, Unmatch must not match.
	// Case does not matter. Reasons and NotReasons do the same for the reason of the end.
	Match      []string `json:"match,omitempty"`
	Unmatch    []string `json:"unmatch,omitempty"`
	Reasons    []string `json:"reasons,omitempty"`
	NotReasons []string `json:"not_reasons,omitempty"`
	// MinTries and MaxTries bound the number of retries.
	MinTries int64  `json:"min_tries,omitempty"`
	MaxTries *int64 `json:"max_tries,omitempty"`
	// Or are alternatives. Their own limits and alternatives are ignored.
	Or []ExecutionFilter `json:"or,omitempty"`
	// Oldest lists the oldest first.
	Oldest bool `json:"oldest,omitempty"`
	// Limit bounds a page; 0 means DefaultPage.
	Limit int `json:"limit,omitempty"`
	// WithParams reads the parameters of the rows.
	WithParams bool `json:"with_params,omitempty"`

	// InOrder reads every row in the order of the list, so that no page repeats a row. Without it the first page
	// of unfinished executions also has some from the other end of the list: running ones are old, waiting ones
	// may be many.
	InOrder bool `json:"in_order,omitempty"`
}

// The values of Parented.
const (
	ParentedAny  = "any"
	ParentedNone = "none"
)

// NoLimit is more tries than any execution has.
const NoLimit int64 = math.MaxInt32

// sifted reports whether a part of the filter has no index.
func (f *ExecutionFilter) sifted() bool {
	return len(f.Workers) > 0 || len(f.NotWorkers) > 0 || len(f.IDs) > 0 || len(f.Match) > 0 || len(f.Unmatch) > 0 ||
		len(f.Params) > 0 || f.Parented != "" || f.MinTries > 0 || f.MaxTries != nil || f.reasoned() ||
		f.Parent != 0 && (f.Action != "" || f.Worker != "" || f.MaxAge > 0)
}

// ByParams reports whether the search reads parameters.
func (f *ExecutionFilter) ByParams() bool {
	return len(f.Params) > 0 || slices.ContainsFunc(f.Or,
		func(other ExecutionFilter) bool { return len(other.Params) > 0 })
}

// reasoned reports whether the search reads results.
func (f *ExecutionFilter) reasoned() bool { return len(f.Reasons) > 0 || len(f.NotReasons) > 0 }

// String writes the filter as the filter language does.
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

// reasonBound is how many results a search reads.
const reasonBound = 2_000

// newSift prepares the conditions without an index; nil when no row can match.
func newSift(ctx context.Context, tx *store.Tx, f *ExecutionFilter, q *search) (*store.MonitorSiftParams, error) {
	s := &store.MonitorSiftParams{
		Statuses: q.statuses(), Pattern: Pattern(f.Action, false), Match: list(f.Match), Unmatch: list(f.Unmatch),
		Reasons: list(f.Reasons), NotReasons: list(f.NotReasons), Params: []string{}, ParamMatch: []string{},
		ParamNot: []bool{}, Cut: MaxDocument, SecretActions: []string{}, SecretParams: []string{}, MinTries: f.MinTries,
		MaxTries: NoLimit, Parent: f.Parent, Parented: f.Parented, Rising: q.rising, Page: q.page,
	}
	for _, p := range f.Params {
		s.Params, s.ParamMatch = append(s.Params, p.Path), append(s.ParamMatch, p.expression())
		s.ParamNot = append(s.ParamNot, p.Not)
	}
	if f.MaxTries != nil {
		s.MaxTries = *f.MaxTries
	}
	workers := f.Workers
	if len(workers) == 0 && f.Worker != "" {
		workers = []string{f.Worker}
	}
	var err error
	if s.Workers, err = resolveAll(ctx, tx, workers, ResolveWorker); err != nil ||
		len(workers) > 0 && len(s.Workers) == 0 {
		return nil, err
	}
	s.NotWorkers, err = resolveAll(ctx, tx, f.NotWorkers, ResolveWorker)
	return s, err
}

// list is never nil, which the database would read as NULL.
func list[T any](values []T) []T {
	if values == nil {
		return []T{}
	}
	return values
}

// resolveAll resolves names to ids and skips unknown names.
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
