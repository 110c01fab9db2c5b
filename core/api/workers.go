package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/triage"
)

// workerActs are the actions on workers, by the last part of their paths.
var workerActs = []triage.WorkerAct{triage.CordonWorker, triage.UncordonWorker, triage.DrainWorker, triage.ForgetWorker}

func (s *Server) actOnWorker(act triage.WorkerAct) reasonedAct {
	return func(ctx context.Context, operator *triage.Triage, id int64, reason string) (any, error) {
		receipt, err := operator.ActOnWorker(ctx,
			triage.WorkerOrder{Act: act, Worker: strconv.FormatInt(id, 10), ByID: true, Reason: reason})
		refused, isRefused := errors.AsType[*triage.WorkerRefusedError](err)
		switch {
		case err == nil:
			return receipt, nil
		case isRefused:
			return nil, conflictf("%s", refused.Error())
		case errors.Is(err, triage.ErrNoBroker), errors.Is(err, broker.ErrNotConnected):
			s.deps.Logger.WarnContext(ctx, "Worker not forgotten", "worker_id", id, "error", err)
			return nil, &statusError{http.StatusServiceUnavailable,
				"the broker does not answer, and it has the queues of the worker"}
		}
		return nil, ofWorker(err, id)
	}
}

func ofWorker(err error, id int64) error {
	if errors.Is(err, triage.ErrNoWorker) {
		return missing("worker", id)
	}
	return err
}

// worker answers one worker with the executions that it has.
func (s *Server) worker(ctx context.Context, id int64) (*triage.WorkerNow, error) {
	now, err := s.deps.Acts.WorkerNow(ctx, triage.WorkerOrder{Worker: strconv.FormatInt(id, 10), ByID: true})
	return now, ofWorker(err, id)
}
