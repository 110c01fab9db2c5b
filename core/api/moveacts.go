package api

import (
	"errors"
	"net/http"

	"github.com/attune-go/attune/core/triage"
)

// moveExecutions moves waiting executions to the front of their lane, to another lane, or back.
func moveExecutions(act triage.MoveAct) operatorAct {
	return func(r *http.Request, operator *triage.Triage) (any, error) {
		var body struct {
			reasonBody
			IDs   []int64 `json:"ids"`
			Lane  string  `json:"lane"`
			Audit int64   `json:"audit_id"`
		}
		if err := readAct(r, &body, &body.Reason); err != nil {
			return nil, err
		}
		request := triage.MoveRequest{Act: act, IDs: body.IDs, Undoes: body.Audit, Reason: body.Reason}
		switch {
		case (len(body.IDs) > 0) == (act == triage.MoveBack):
			return nil, requestError("front and lane take ids, put-back takes none")
		case (body.Audit != 0) != (act == triage.MoveBack):
			return nil, requestError("put-back takes the audit_id of a front or a lane, the others take none")
		case (body.Lane != "") != (act == triage.MoveLane):
			return nil, requestError("lane takes a lane: high, normal or low; the others take none")
		case act == triage.MoveLane:
			var err error
			if request.Lane, err = triage.ParseLane(body.Lane); err != nil {
				return nil, requestError(err.Error())
			}
		}
		receipt, err := operator.Move(r.Context(), request)
		if errors.Is(err, triage.ErrNoMove) {
			err = conflictf("%s", err.Error())
		}
		return receipt, err
	}
}
