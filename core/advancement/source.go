package advancement

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// source is the definition of started workflows.
type source struct {
	id         int64
	definition *workflow.Definition
	schema     []byte // of its parameters
}

// parameters are an execution's parameters with the defaults.
func (s *source) parameters(config []byte) map[string]any {
	return policy.WithDefaults(config, s.schema)
}

// maxSources bounds the cached definitions.
const maxSources = 2000

// Sources caches definitions. The definition of a started workflow never changes, so none is read
// twice while a workflow refers to it. It is safe for concurrent use.
type Sources struct {
	mu       sync.Mutex
	byID     map[int64]*source
	byDigest map[string]stored
}

// stored is a definition that the database has.
type stored struct {
	id int64
	at time.Time
}

// sourceFor is how long a definition counts as stored although no workflow may refer to it. It is
// far below the retention of unused definitions.
const sourceFor = time.Hour

// NewSources makes an empty cache.
func NewSources() *Sources {
	return &Sources{byID: map[int64]*source{}, byDigest: map[string]stored{}}
}

// store returns the source of a current definition, and stores it in the database for the replicas that advance the
// workflow.
func (m *Sources) store(ctx context.Context, q *store.Queries, now time.Time, definition,
	schema []byte,
) (*source, error) {
	sum := sha256.New()
	sum.Write(definition)
	sum.Write([]byte{0})
	sum.Write(schema)
	digest := hex.EncodeToString(sum.Sum(nil))
	if found := m.used(digest, now); found != nil {
		return found, nil
	}
	parsed, err := workflow.ParseJSON(definition)
	if err != nil {
		return nil, fmt.Errorf("read its definition: %w", err)
	}
	id, err := q.KeepWorkflowSource(ctx, digest, definition, schema)
	if err != nil {
		return nil, &readError{fmt.Errorf("store the definition of a workflow: %w", err)}
	}
	return m.keep(&source{id: id, definition: parsed, schema: schema}, digest, now), nil
}

func (m *Sources) get(ctx context.Context, q *store.Queries, id int64) (*source, error) {
	if found := m.find(id); found != nil {
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
	return m.keep(&source{id: id, definition: parsed, schema: rows[0].ParamSchema}, "", time.Time{}), nil
}

// readError is an error of the database, not of the definition.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

func (m *Sources) find(id int64) *source {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byID[id]
}

// used finds a definition that was stored recently.
func (m *Sources) used(digest string, now time.Time) *source {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one, ok := m.byDigest[digest]; ok && now.Sub(one.at) < sourceFor {
		return m.byID[one.id]
	}
	return nil
}

func (m *Sources) keep(s *source, digest string, at time.Time) *source {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.byID) >= maxSources {
		clear(m.byID)
		clear(m.byDigest)
	}
	m.byID[s.id] = s
	if digest != "" {
		m.byDigest[digest] = stored{id: s.id, at: at}
	}
	return s
}
