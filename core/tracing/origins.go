package tracing

import (
	"context"
	"fmt"
	"sync"

	"github.com/attune-go/attune/core/store"
)

// Origins finds the traces of executions and enforcements.
type Origins interface {
	Executions(ctx context.Context, ids []int64) (map[int64]Context, error)
}

// seedReader has the seed of an installation, read once.
type seedReader struct {
	mu    sync.Mutex
	value Seed
	known bool
}

// read returns the seed.
func (s *seedReader) read(ctx context.Context, q *store.Queries) (Seed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known {
		return s.value, nil
	}
	seed, err := q.ReadTraceSeed(ctx)
	if err != nil {
		return Seed{}, fmt.Errorf("read the seed of trace ids: %w", err)
	}
	s.value, s.known = Seed(seed), true
	return s.value, nil
}

// Roots finds traces in the database.
type Roots struct {
	seed  *seedReader
	ratio float64
	store *store.Store
}

// NewRoots makes a finder that reads from st.
func NewRoots(st *store.Store, ratio float64) *Roots {
	return &Roots{seed: &seedReader{}, ratio: ratio, store: st}
}

// Executions returns the trace of each execution, with the parent of its first span.
func (r *Roots) Executions(ctx context.Context, ids []int64) (map[int64]Context, error) {
	found, _, err := r.In(ctx, r.store.Queries, ids, nil)
	return found, err
}

// In is Executions in a transaction of the caller, and for enforcements too.
func (r *Roots) In(ctx context.Context, q *store.Queries, executions, enforcements []int64) (
	ofExecution, ofEnforcement map[int64]Context, err error,
) {
	seed, err := r.seed.read(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	rows, err := q.ReadTraceOrigins(ctx, executions, enforcements)
	if err != nil {
		return nil, nil, fmt.Errorf("find the traces of %d executions and %d enforcements: %w", len(executions),
			len(enforcements), err)
	}
	ofExecution = make(map[int64]Context, len(executions))
	ofEnforcement = make(map[int64]Context, len(enforcements))
	for _, row := range rows {
		root := seed.Root(Origin{
			Kind: Kind(row.OriginKind), Row: row.Origin, Client: row.Traceparent,
		}, r.ratio)
		if row.Kind == string(Enforcement) {
			ofEnforcement[row.Subject] = root
		} else {
			ofExecution[row.Subject] = root
		}
	}
	return ofExecution, ofEnforcement, nil
}

// Requests traces HTTP requests.
type Requests struct {
	*Sender
	*Roots
}

// Begins returns the first span of the trace of a new row.
func (r Requests) Begins(ctx context.Context, kind Kind, row int64) (Context, error) {
	root := From(ctx)
	if !root.Valid() {
		seed, err := r.seed.read(ctx, r.store.Queries)
		if err != nil {
			return Context{}, err
		}
		root = seed.Root(Origin{Kind: kind, Row: row}, r.Roots.ratio)
	}
	return root.At(kind, row, Whole), nil
}
