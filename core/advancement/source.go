package advancement

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// source is a definition that workflows were started with.
type source struct {
	id         int64
	definition *workflow.Definition
	schema     []byte // of its parameters
}

// parameters are those of an execution with the defaults.
func (s *source) parameters(config []byte) map[string]any {
	return policy.WithDefaults(config, s.schema)
}

// maxSources bounds how many definitions are kept in memory.
const maxSources = 2000

// Sources keeps definitions in memory. A definition that a workflow was started
// with never changes, so none is ever read twice. It may be used by many at once.
type Sources struct {
	mu       sync.Mutex
	byID     map[int64]*source
	byDigest map[string]int64
}

// NewSources makes an empty memory.
func NewSources() *Sources {
	return &Sources{byID: map[int64]*source{}, byDigest: map[string]int64{}}
}

// take returns the source of a definition as it is now, which is kept in the
// database for those who lead the workflow on.
func (m *Sources) take(ctx context.Context, q *store.Queries, definition, schema []byte) (*source, error) {
	sum := sha256.New()
	sum.Write(definition)
	sum.Write([]byte{0})
	sum.Write(schema)
	digest := hex.EncodeToString(sum.Sum(nil))
	if found := m.find(0, digest); found != nil {
		return found, nil
	}
	parsed, err := workflow.ParseJSON(definition)
	if err != nil {
		return nil, fmt.Errorf("read its definition: %w", err)
	}
	id, err := q.KeepWorkflowSource(ctx, digest, definition, schema)
	if errors.Is(err, sql.ErrNoRows) { // another replica kept it at this moment, which shows only now
		id, err = q.KeepWorkflowSource(ctx, digest, definition, schema)
	}
	if err != nil {
		return nil, &readError{fmt.Errorf("keep the definition of a workflow: %w", err)}
	}
	return m.keep(&source{id: id, definition: parsed, schema: schema}, digest), nil
}

// get returns the source with the id.
func (m *Sources) get(ctx context.Context, q *store.Queries, id int64) (*source, error) {
	if found := m.find(id, ""); found != nil {
		return found, nil
	}
	rows, err := q.ReadWorkflowSources(ctx, []int64{id})
	if err != nil {
		return nil, &readError{fmt.Errorf("read the definition of a workflow: %w", err)}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("its definition (source %d) is gone", id)
	}
	parsed, err := workflow.ParseJSON(rows[0].Definition)
	if err != nil {
		return nil, fmt.Errorf("read its definition: %w", err)
	}
	return m.keep(&source{id: id, definition: parsed, schema: rows[0].ParamSchema}, ""), nil
}

// readError is an error of the database, and not of the definition.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

func (m *Sources) find(id int64, digest string) *source {
	m.mu.Lock()
	defer m.mu.Unlock()
	if digest != "" {
		id = m.byDigest[digest]
	}
	return m.byID[id]
}

func (m *Sources) keep(s *source, digest string) *source {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.byID) >= maxSources {
		clear(m.byID)
		clear(m.byDigest)
	}
	m.byID[s.id] = s
	if digest != "" {
		m.byDigest[digest] = s.id
	}
	return s
}
