package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/store"
)

// AuditBound is the length of a page of operator actions; one with large requests is shorter.
const AuditBound = 200

const (
	// maxAuditRequest bounds the request of one entry on a screen, in stored bytes.
	maxAuditRequest = 16 << 10
	// maxAuditPage is the size of requests with which a page ends early.
	maxAuditPage = 16 << 20
)

// Audit lists operator actions, the newest first, and says whether this login may act on the
// database.
type Audit struct {
	Reading
	// Recorded is true where actions are recorded. Without that, acting is disabled.
	Recorded bool `json:"recorded"`
	// Current is true when the schema suits the actions of this version.
	Current bool `json:"current"`
	// Adopted is true for the schema of an installation older than the engine.
	Adopted bool `json:"adopted"`
	// ReadOnly says why this login cannot act.
	ReadOnly string `json:"read_only,omitempty"`
	// Replicas counts live replicas.
	Replicas int64 `json:"replicas"`
	// From is the cursor of this page: ids are smaller; 0 is the newest.
	From int64        `json:"from,omitempty"`
	List []AuditEntry `json:"list"`
	// Next is the cursor of the next page; 0 at the end.
	Next int64 `json:"next,omitempty"`
}

// AuditEntry is one recorded operator action.
type AuditEntry struct {
	ID         int64     `json:"id"`
	At         time.Time `json:"at"`
	Actor      string    `json:"actor"`
	Source     string    `json:"source"`
	Action     string    `json:"action"`
	TargetType string    `json:"target_type"`
	TargetID   *int64    `json:"target_id"`
	Target     string    `json:"target"`
	Reason     string    `json:"reason,omitempty"`
	Outcome    string    `json:"outcome"`
	Error      string    `json:"error,omitempty"`
	// Request is the request and its result. In a list one above maxAuditRequest stored bytes is absent;
	// RequestBytes is then its size.
	Request      json.RawMessage `json:"request,omitempty"`
	RequestBytes int64           `json:"request_bytes,omitempty"`
}

// Audit reads a page of operator actions below an id, the newest first; 0 is the newest. Where they
// are not recorded, the list is empty.
func (m *Monitor) Audit(ctx context.Context, below int64) (*Audit, error) {
	return m.audit(ctx, below, maxAuditRequest)
}

// WholeAudit is Audit with every request, however long.
func (m *Monitor) WholeAudit(ctx context.Context, below int64) (*Audit, error) {
	return m.audit(ctx, below, WholeDocument)
}

func (m *Monitor) audit(ctx context.Context, below int64, longest int32) (*Audit, error) {
	a := &Audit{From: below, List: []AuditEntry{}}
	err := m.Read(ctx, "the acts of operators", &a.Reading, func(ctx context.Context, tx *store.Tx, _ Shape) error {
		shape, err := tx.AuditShape(ctx)
		if err != nil {
			return fmt.Errorf("read whether acts are recorded: %w", err)
		}
		a.Recorded, a.Current = shape.Recorded, shape.Current
		switch {
		case shape.Standby:
			a.ReadOnly = "this database is a standby, which takes no changes"
		case !shape.MayWrite:
			a.ReadOnly = "the login " + shape.Login +
				" may not write here: acting needs the role operator, see `attune-executor doctor --as operator`"
		}
		if a.Current {
			origin, err := tx.AuditOrigin(ctx, ReplicaAlive.Seconds())
			if err != nil {
				return fmt.Errorf("read whose schema it is: %w", err)
			}
			a.Adopted, a.Replicas = origin.Adopted, origin.Replicas
		}
		if !a.Recorded {
			return nil
		}
		return a.read(ctx, tx, longest)
	})
	return a, err
}

func (a *Audit) read(ctx context.Context, tx *store.Tx, longest int32) error {
	rows, err := store.Rows[AuditEntry](ctx, tx, store.AuditRecent, longest,
		cmp.Or(max(a.From, 0), math.MaxInt64), AuditBound+1, maxAuditPage)
	if err != nil {
		return fmt.Errorf("list acts: %w", err)
	}
	size := 0
	for _, row := range rows {
		size += len(row.Request)
	}
	if len(rows) > AuditBound || size >= maxAuditPage {
		a.Next = rows[min(len(rows), AuditBound)-1].ID
	}
	a.List = rows[:min(len(rows), AuditBound)]
	return nil
}
