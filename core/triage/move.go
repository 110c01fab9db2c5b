package triage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/store"
)

// MoveAct is what a move does to waiting executions.
type MoveAct string

// The acts.
const (
	MoveFront MoveAct = "front"    // before the others of their lane
	MoveLane  MoveAct = "lane"     // into another lane
	MoveBack  MoveAct = "put-back" // undo one of the others
)

// ErrNoMove reports that an audit id is not that of a move.
var ErrNoMove = errors.New("that audit is not of execution.front or execution.lane")

// MoveRequest asks to move waiting executions to other places of their queues.
type MoveRequest struct {
	Act    MoveAct `json:"act"`
	IDs    []int64 `json:"-"`
	Lane   int16   `json:"lane,omitempty"`      // of MoveLane: 1 high, 0 normal, -1 low
	Undoes int64   `json:"undoes_id,omitempty"` // of MoveBack: the audit of the move
	Reason string  `json:"reason,omitempty"`
}

// MoveReceipt is what a move changed. The chosen executions are the sum of Moved, Already and Gone.
type MoveReceipt struct {
	MoveRequest
	Sent

	Moved   int   `json:"moved"`
	Already int   `json:"already"` // in the lane already, or moved again since
	Gone    int   `json:"gone"`    // they do not wait: admitted, ended or missing
	Queues  int   `json:"queues"`
	Audit   int64 `json:"audit_id,omitempty"`
}

// moveAudit is the request of a move in operator_audit.
type moveAudit struct {
	*MoveReceipt

	Places []admission.Place `json:"places"`
}

// ParseLane reads the name of a lane.
func ParseLane(name string) (int16, error) {
	lane, ok := map[string]int16{"high": 1, "normal": 0, "low": -1}[name]
	if !ok {
		return 0, fmt.Errorf("lane %q is unknown: use high, normal or low", name)
	}
	return lane, nil
}

// PlanMove counts those of the executions that wait, without locks.
func (t *Triage) PlanMove(ctx context.Context, ids []int64) (waiting int, err error) {
	rows, err := t.store.ControlPlaces(ctx, ids)
	if err != nil {
		return 0, fmt.Errorf("read the places of %d executions: %w", len(ids), err)
	}
	return len(rows), nil
}

// Move moves waiting executions in one transaction. Admitted executions are not touched.
func (t *Triage) Move(ctx context.Context, request MoveRequest) (receipt *MoveReceipt, err error) {
	request.IDs = slices.Compact(slices.Sorted(slices.Values(request.IDs)))
	err = t.decide(ctx, string(request.Act)+" executions", func(ctx context.Context, tx *store.Tx) error {
		move := admission.Move{Front: request.Act == MoveFront}
		switch request.Act {
		case MoveLane:
			move.Lane = &request.Lane
		case MoveBack:
			if move.Back, err = placesOf(ctx, tx.Queries, request.Undoes); err != nil {
				return err
			}
			request.IDs = nil
			for _, place := range move.Back {
				request.IDs = append(request.IDs, place.Execution)
			}
		case MoveFront:
		}
		moved, err := admission.MoveEntries(ctx, tx, request.IDs, move)
		if err != nil {
			return err
		}
		queues := map[int64]bool{}
		for _, place := range moved.Places {
			queues[place.Queue] = true
		}
		receipt = &MoveReceipt{
			MoveRequest: request, Moved: len(moved.Places), Already: moved.Already, Gone: moved.Gone,
			Queues: len(queues),
		}
		if err := t.nudge(ctx, tx, moved.Heads, &receipt.Sent); err != nil {
			return err
		}
		of := subject{kind: "execution", name: fmt.Sprintf("%d executions", len(request.IDs))}
		if len(request.IDs) == 1 {
			of.id, of.name = request.IDs[0], fmt.Sprintf("execution %d", request.IDs[0])
		}
		return t.record(ctx, tx.Queries, &receipt.Audit, audit{
			action: "execution." + string(request.Act), of: of, reason: request.Reason,
			request: moveAudit{MoveReceipt: receipt, Places: moved.Places},
			outcome: outcomeOf(ctx, nil, len(request.IDs), receipt.Moved),
		})
	})
	if err != nil {
		return nil, plain(err)
	}
	return receipt, nil
}

// placesOf reads the moves of an earlier act.
func placesOf(ctx context.Context, queries *store.Queries, id int64) ([]admission.Place, error) {
	row, err := queries.ControlAudited(ctx, id)
	if errors.Is(err, sql.ErrNoRows) ||
		err == nil && row.Action != "execution."+string(MoveFront) && row.Action != "execution."+string(MoveLane) {
		return nil, fmt.Errorf("audit %d: %w", id, ErrNoMove)
	}
	if err != nil {
		return nil, fmt.Errorf("read audit %d: %w", id, err)
	}
	var written moveAudit
	if err := json.Unmarshal(row.Request, &written); err != nil {
		return nil, fmt.Errorf("decode audit %d: %w", id, err)
	}
	return written.Places, nil
}
