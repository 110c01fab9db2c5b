package api

import (
	"net/http"
	"strconv"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/triage"
)

// overrideQueues changes all queues of an action, or that of a group.
func (s *Server) overrideQueues(kind act.Kind) operatorAct {
	return func(r *http.Request) (any, error) {
		var body struct {
			reasonBody
			Group string `json:"group"`
			Limit *int   `json:"limit"`
		}
		if err := readAct(r, &body, &body.Reason); err != nil {
			return nil, err
		}
		request := act.Request{Kind: kind, Target: act.Target{Action: r.PathValue("ref"), Group: body.Group}}
		switch {
		case kind == act.LimitQueue && body.Limit == nil:
			return nil, requestError("the body has no limit")
		case kind == act.LimitQueue:
			request.Values = map[string]string{act.FieldLimit: strconv.Itoa(*body.Limit)}
		case body.Limit != nil:
			return nil, requestError("only queues/limit takes a limit")
		}
		return s.do(r, request, body.Reason)
	}
}

// clearing selects the waiting executions of an action's queues.
func clearing(r *http.Request) (act.Request, error) {
	q := queryOf(r)
	wish := triage.ClearRequest{
		Target: triage.Target{Action: r.PathValue("ref"), Group: q.Get("group")}, OlderThan: q.age("older_than"),
	}
	return act.Request{Kind: act.ClearQueue, Input: wish}, q.err
}

// repairing selects the queues of an action, or all.
func repairing(r *http.Request) (act.Request, error) {
	return act.Request{Kind: act.RepairQueue, Target: act.Target{Action: r.URL.Query().Get("action")}}, nil
}

// moveExecutions moves waiting executions to the front of their lane, to another lane, or back.
func (s *Server) moveExecutions(kind act.Kind) operatorAct {
	return func(r *http.Request) (any, error) {
		var body struct {
			reasonBody
			IDs   []int64 `json:"ids"`
			Lane  string  `json:"lane"`
			Audit int64   `json:"audit_id"`
		}
		if err := readAct(r, &body, &body.Reason); err != nil {
			return nil, err
		}
		back := kind == act.PutBackExecutions
		switch {
		case (len(body.IDs) > 0) == back:
			return nil, requestError("front and lane take ids, put-back takes none")
		case (body.Audit != 0) != back:
			return nil, requestError("put-back takes the audit_id of a front or a lane, the others take none")
		case (body.Lane != "") != (kind == act.LaneExecution):
			return nil, requestError("lane takes a lane: high, normal or low; the others take none")
		case body.Lane != "":
			if _, err := triage.ParseLane(body.Lane); err != nil {
				return nil, requestError(err.Error())
			}
		}
		request := act.OnIDs(kind, body.IDs...)
		request.Values = map[string]string{act.FieldLane: body.Lane}
		if back {
			request.Target.ID = body.Audit
		}
		return s.do(r, request, body.Reason)
	}
}
