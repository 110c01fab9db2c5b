package api

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/triage"
)

// workerActs are the acts on workers by the last part of their paths.
var workerActs = []triage.WorkerAct{triage.CordonWorker, triage.UncordonWorker, triage.DrainWorker, triage.ForgetWorker}

// workerBody is what an act on a worker takes.
type workerBody struct {
	Reason string `json:"reason"`
}

// actOnWorker makes the handler of an act.
func (s *Server) actOnWorker(act triage.WorkerAct) func(*http.Request, *triage.Triage, int64) (any, error) {
	return func(r *http.Request, operator *triage.Triage, id int64) (any, error) {
		var body workerBody
		if err := readAct(r, &body, &body.Reason); err != nil {
			return nil, err
		}
		order := triage.WorkerOrder{Act: act, Worker: strconv.FormatInt(id, 10), ByID: true, Reason: body.Reason}
		receipt, err := operator.ActOnWorker(r.Context(), order)
		refused, isRefused := errors.AsType[*triage.WorkerRefusedError](err)
		switch {
		case err == nil:
			return receipt, nil
		case isRefused:
			return nil, conflictf("%s", refused.Error())
		case errors.Is(err, triage.ErrNoBroker), errors.Is(err, broker.ErrNotConnected):
			s.deps.Logger.WarnContext(r.Context(), "A worker could not be forgotten", "worker_id", id, "error", err)
			return nil, &statusError{http.StatusServiceUnavailable,
				"the broker does not answer, and it has the queues of the worker"}
		}
		return nil, ofWorker(err, id)
	}
}

// ofWorker gives a worker that does not exist its answer.
func ofWorker(err error, id int64) error {
	if errors.Is(err, triage.ErrNoWorker) {
		return &statusError{http.StatusNotFound, "there is no worker " + strconv.FormatInt(id, 10)}
	}
	return err
}

// worker answers a worker as acts find it.
func (s *Server) worker(r *http.Request) (any, error) {
	if err := onlyParameters(r, nil); err != nil {
		return nil, err
	}
	id, err := idOf(r)
	if err != nil {
		return nil, err
	}
	now, err := s.deps.Acts.WorkerNow(r.Context(), triage.WorkerOrder{Worker: strconv.FormatInt(id, 10), ByID: true})
	if err != nil {
		return nil, ofWorker(err, id)
	}
	return now, nil
}
