package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/tracing"
)

// beforeStart is the result of an execution that was cancelled before it started.
var beforeStart = mustEncode(map[string]any{
	"succeeded": false, "cancelled": true, "error": "cancelled before it started",
})

// intake turns dispatches into running executions.
type intake struct {
	member    *membership
	roster    *roster
	runner    *runner
	finisher  *finisher
	announcer *announcer
	life      context.Context // of the executions: outlives the intake
	// unable is told why this worker could not start a process.
	unable  func(ctx context.Context, cause error)
	starter *starter

	settling sync.WaitGroup // of batches whose actions have not all begun
}

// handle starts the deliveries of a batch as places become free. They are acknowledged when all their actions have
// begun; a slow begin does not delay the next batch. If the process crashes in between, the redelivered dispatch finds
// its row running and starts nothing. A dispatch that could not begin because of this worker, or whose start was
// refused because another process has the name, returns to the queue.
func (in *intake) handle(ctx context.Context, batch *broker.Batch) {
	waiting := in.split(ctx, batch)
	var begun []*job
	for len(waiting) > 0 {
		n := in.roster.acquire(ctx, min(len(waiting), startMax))
		jobs := in.read(ctx, waiting[:n])
		in.roster.release(n - len(jobs))
		if n == 0 || !in.start(ctx, jobs) {
			in.roster.release(len(jobs))
			in.giveBack(ctx, waiting)
			break
		}
		begun, waiting = append(begun, jobs...), waiting[n:]
	}
	in.settling.Go(func() { in.settle(ctx, batch, begun) })
}

// settle acknowledges a batch when its jobs have begun.
func (in *intake) settle(ctx context.Context, batch *broker.Batch, begun []*job) {
	for _, j := range begun {
		<-j.begun
		if j.returned {
			in.giveBack(ctx, []*broker.Delivery{j.delivery})
		}
		j.delivery = nil // the run may be long
	}
	if err := batch.Ack(); err != nil {
		// The connection is lost; the redelivered dispatches start nothing.
		in.member.logger.DebugContext(ctx, "Dispatches could not be acknowledged", "error", err)
	}
}

// split lists the dispatches of a batch of deliveries; each may hold one or many.
func (in *intake) split(ctx context.Context, batch *broker.Batch) []*broker.Delivery {
	dispatches := make([]*broker.Delivery, 0, len(batch.Deliveries))
	for i := range batch.Deliveries {
		delivery := &batch.Deliveries[i]
		if delivery.Type != message.TypeExecutionBatchRequested {
			dispatches = append(dispatches, delivery)
			continue
		}
		singles, err := message.Split(delivery.Body)
		if err != nil {
			in.poison(ctx, delivery, err)
			continue
		}
		dispatches = append(dispatches, delivery.Split(singles)...)
	}
	return dispatches
}

func (in *intake) poison(ctx context.Context, delivery *broker.Delivery, cause error) {
	in.member.metrics.poison.Inc()
	in.member.logger.WarnContext(telemetry.Often(ctx), "Dispatch cannot be read and is dead-lettered",
		"message_id", delivery.MessageID, "error", cause)
	delivery.GiveUpUnread(ctx, cause)
}

// giveBack returns unstarted dispatches to the queue. A batch message returns as a whole; its
// started executions ignore the redelivery.
func (in *intake) giveBack(ctx context.Context, deliveries []*broker.Delivery) {
	for _, delivery := range deliveries {
		requeue(ctx, delivery, in.member.logger)
	}
}

func requeue(ctx context.Context, delivery *broker.Delivery, logger *slog.Logger) {
	if err := delivery.Requeue(); err != nil {
		logger.DebugContext(ctx, "Message not requeued, the broker delivers it again by itself", "error", err)
	}
}

// giveBack returns the unsettled messages of a batch to their queue.
func giveBack(ctx context.Context, batch *broker.Batch, logger *slog.Logger) {
	for i := range batch.Deliveries {
		requeue(ctx, &batch.Deliveries[i], logger)
	}
}

// read decodes dispatches and adds them to the roster. It dead-letters unreadable ones; a copy of a
// dispatch in hand only needs the acknowledgement.
func (in *intake) read(ctx context.Context, deliveries []*broker.Delivery) []*job {
	jobs := make([]*job, 0, len(deliveries))
	for _, delivery := range deliveries {
		dispatch, err := message.Decode[message.Dispatch](delivery.Body)
		switch {
		case err != nil:
		case dispatch.MessageType != message.TypeExecutionRequested:
			err = fmt.Errorf("a %s is no dispatch", dispatch.MessageType)
		case dispatch.Payload.WorkerID != in.member.id:
			err = fmt.Errorf("the dispatch is for worker %d, not %d", dispatch.Payload.WorkerID, in.member.id)
		case dispatch.Payload.Attempt < 0:
			err = fmt.Errorf("the dispatch names attempt %d", dispatch.Payload.Attempt)
		}
		if err != nil {
			in.poison(ctx, delivery, err)
			continue
		}
		j, added := in.roster.add(in.life, dispatch.Payload.ExecutionID, dispatch.Payload.Attempt)
		if !added {
			in.member.metrics.lost.WithLabelValues("start").Inc()
			in.member.logger.DebugContext(ctx, "Dispatch is in hand already", "execution_id",
				dispatch.Payload.ExecutionID, "attempt", dispatch.Payload.Attempt)
			continue
		}
		j.delivery = delivery
		if at := tracing.Parse(dispatch.Payload.TraceParent); at.Valid() {
			j.traced = at.At(tracing.Execution, j.id, tracing.Run)
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// start moves the rows and runs the jobs. It repeats until the database answers; false means that
// the context ended first, and nothing runs. If a row was moved although the answer was lost, the
// next process of this worker or the engine ends it as an orphan.
func (in *intake) start(ctx context.Context, jobs []*job) bool {
	if len(jobs) == 0 {
		return true
	}
	again := false
	for pause := retryFirst; ; pause = min(2*pause, retryLongest) {
		rows, err := in.once(ctx, jobs, again)
		if err == nil {
			in.launch(ctx, jobs, rows)
			return true
		}
		again = true
		if ctx.Err() == nil {
			in.member.metrics.failed.WithLabelValues("start").Inc()
			in.member.logger.WarnContext(ctx, "Executions not started, retrying", "executions", len(jobs), "error", err)
		}
		if !supervise.Sleep(ctx, pause) {
			for _, j := range jobs {
				in.roster.remove(j)
			}
			return false
		}
	}
}

func (in *intake) once(ctx context.Context, jobs []*job, again bool) ([]started, error) {
	// Stop does not interrupt the statement: its answer decides whether an execution runs.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	defer cancel()
	rows, err := in.starter.start(ctx, jobs, again)
	if err != nil {
		return nil, fmt.Errorf("start %d executions: %w", len(jobs), err)
	}
	return rows, nil
}

// launch runs the executions whose start succeeded, announces the ones that were cancelled before,
// and forgets the rest. These return to the queue if another process has the name: it may start them.
func (in *intake) launch(ctx context.Context, jobs []*job, rows []started) {
	won := make(map[int64]started, len(rows))
	for _, row := range rows {
		won[row.ID] = row
	}
	var cancelled []announcement
	var refused []*job
	running := make([]*job, 0, len(rows))
	// A dispatch that names the attempt precedes one that names none.
	slices.SortStableFunc(jobs, func(a, b *job) int { return cmp.Compare(b.attempt, a.attempt) })
	for _, j := range jobs {
		row, ok := won[j.id]
		ok = ok && (j.attempt == 0 || j.attempt == row.Attempt)
		if ok && row.Status == lifecycle.StatusRunning && in.roster.started(j, row) {
			delete(won, j.id)
			running = append(running, j)
			continue
		}
		if ok && row.Status != lifecycle.StatusRunning {
			delete(won, j.id)
			cancelled = append(cancelled, announcement{
				execution: row.ID, action: row.Action, ref: row.ActionRef, status: row.Status,
				previous: lifecycle.StatusCanceling, result: string(row.Words), at: at(row.FinishedAt),
			})
		} else {
			refused = append(refused, j)
		}
		in.roster.remove(j)
		in.roster.release(1)
	}
	displaced := len(refused) > 0 && !in.member.owns(ctx)
	for _, j := range refused {
		in.member.metrics.lost.WithLabelValues("start").Inc()
		in.member.logger.DebugContext(ctx, "Dispatch starts nothing", "execution_id", j.id, "attempt", j.attempt,
			"returned", displaced)
		j.returned = displaced
	}
	in.announcer.add(ctx, cancelled)
	for _, j := range running {
		crashpoint.Reach("worker:started")
		go in.runJob(j)
	}
	for _, j := range jobs {
		if !j.active {
			j.begin()
		}
	}
}

// runJob runs one execution and passes on its end. Its place is free when the action has really
// returned.
func (in *intake) runJob(j *job) {
	defer in.roster.release(1)
	logger := in.member.logger.With("execution_id", j.id, "action_ref", j.row.ActionRef, "attempt", j.attempt)
	if j.traced.Valid() {
		logger = logger.With("trace_id", j.traced.Trace.String())
	}
	begin := time.Now()
	end, returned := in.runner.run(j)
	if end.unstarted != nil {
		in.returnUnstarted(j, end, logger)
		return
	}
	j.begin()
	end.took = time.Since(begin)
	logger.DebugContext(in.life, "Execution ended", "status", string(end.status), "took", end.took)
	crashpoint.Reach("worker:ran")
	in.finisher.add(end)
	if returned == nil {
		return
	}
	select {
	case <-returned:
	case <-in.life.Done(): // the process is ending: do not wait
	}
}

// returnUnstarted gives back an execution of which nothing ran, because this worker cannot start a process. It repeats
// until the database answers; if the process ends before, the next one with the name ends the execution as abandoned.
func (in *intake) returnUnstarted(j *job, end ending, logger *slog.Logger) {
	defer j.begin()
	in.unable(in.life, end.unstarted)
	in.member.metrics.failed.WithLabelValues("process").Inc()
	once := func() ([]store.ReturnExecutionRow, error) {
		ctx, cancel := context.WithTimeout(in.life, statementTimeout)
		defer cancel()
		return in.member.store.ReturnExecution(ctx, store.ReturnExecutionParams{
			CancelledResult: beforeStart, ID: j.id, Worker: &in.member.id, Attempt: j.attempt,
		})
	}
	for pause := retryFirst; ; pause = min(2*pause, retryLongest) {
		rows, err := once()
		if err == nil {
			for _, row := range rows {
				in.announcer.add(in.life, []announcement{{
					execution: row.ID, action: row.Action, ref: row.ActionRef, status: row.Status,
					previous: lifecycle.StatusCanceling, result: string(row.Result), at: at(row.FinishedAt),
				}})
			}
			break
		}
		if store.Divisible(err) || !supervise.Sleep(in.life, pause) {
			logger.WarnContext(in.life, "Execution that could not be started is not given back and fails", "error", err)
			in.finisher.add(end)
			return
		}
	}
	logger.WarnContext(in.life, "Execution given back unstarted", "reason", end.unstarted)
	j.returned = true
	in.roster.remove(j)
}

func mustEncode(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // a literal of this package
	}
	return raw
}
