package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/store"
)

// AuditBound is how many acts are read at once.
const AuditBound = 200

// maxAuditRequest bounds the document of one act that is read.
const maxAuditRequest = 16 << 10

// Audit is what operators did last, the newest first, and whether they may act
// on this database.
type Audit struct {
	Reading
	// Recorded is true where acts are written down. Nobody acts where they are not.
	Recorded bool `json:"recorded"`
	// Current is true where the schema has what the acts of this version need.
	Current bool `json:"current"`
	// Adopted is true where the schema is that of an installation that was there
	// before the engine.
	Adopted bool `json:"adopted"`
	// ReadOnly says why this login cannot act on the database; empty where it can.
	ReadOnly string `json:"read_only,omitempty"`
	// Replicas counts the replicas of the engine that have reported lately.
	Replicas int64 `json:"replicas"`
	// From is the id that the acts were read from: theirs are smaller. Zero means from
	// the newest.
	From int64        `json:"from,omitempty"`
	List []AuditEntry `json:"list"`
	// Next continues the list; it is zero at its end.
	Next int64 `json:"next,omitempty"`
}

// AuditEntry is one act as it was recorded.
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
	// Request is what was asked for and what came of it; empty when it is too long
	// to be read along.
	Request json.RawMessage `json:"request,omitempty"`
}

// Audit reads a page of acts, the newest first, below an id; zero begins with the
// newest. On a schema that records none the list is empty and Recorded is false.
func (m *Monitor) Audit(ctx context.Context, below int64) (*Audit, error) {
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
				" may not write here: INSERT on operator_audit and UPDATE on execution are not granted to it"
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
		return a.read(ctx, tx)
	})
	return a, err
}

func (a *Audit) read(ctx context.Context, tx *store.Tx) error {
	before := a.From
	if before <= 0 {
		before = math.MaxInt64
	}
	rows, err := tx.AuditRecent(ctx, maxAuditRequest, before, AuditBound+1)
	if err != nil {
		return fmt.Errorf("list acts: %w", err)
	}
	if len(rows) > AuditBound {
		a.Next = rows[AuditBound-1].ID
	}
	a.List = each(rows[:min(len(rows), AuditBound)], auditEntry)
	return nil
}

func auditEntry(r store.AuditRecentRow) AuditEntry {
	return AuditEntry{
		ID: r.ID, At: r.At, Actor: r.Actor, Source: r.Source, Action: r.Action, TargetType: r.TargetType,
		TargetID: r.TargetID,
		Target:   r.Target, Reason: r.Reason, Outcome: r.Outcome, Error: r.Error, Request: json.RawMessage(r.Request),
	}
}
