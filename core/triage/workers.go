package triage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/store"
)

// WorkerAct is an action on a worker.
type WorkerAct string

// The actions on workers.
const (
	CordonWorker   WorkerAct = "cordon"   // no new executions
	UncordonWorker WorkerAct = "uncordon" // new executions again, after a cordon or a drain
	DrainWorker    WorkerAct = "drain"    // no new executions, and unstarted ones move to others
	ForgetWorker   WorkerAct = "forget"   // remove its row and its queues
)

// Errors of actions on workers, for errors.Is.
var (
	ErrNoWorker = errors.New("there is no such worker")
	ErrNoBroker = errors.New("to forget a worker the broker is needed, which has its queues")
)

// WorkerRefusedError is the reason why an action on a worker is refused, with advice.
type WorkerRefusedError struct {
	Name   string
	Reason string
	Advice string
}

// Error returns the reason and the advice.
func (e *WorkerRefusedError) Error() string {
	return fmt.Sprintf("worker %s stays: %s: %s", e.Name, e.Reason, e.Advice)
}

// WorkerRequest asks for an action on a worker.
type WorkerRequest struct {
	Act    WorkerAct `json:"act"`
	Worker string    `json:"worker"` // its id or name
	ByID   bool      `json:"-"`      // Worker is an id, even if another worker has it as its name
	Reason string    `json:"reason,omitempty"`
}

// WorkerNow is the state of a worker before or after an action.
type WorkerNow struct {
	ID           int64      `json:"id"`
	Name         string     `json:"name"`
	Status       string     `json:"status"`
	Cordoned     bool       `json:"cordoned"`
	CordonReason string     `json:"cordon_reason,omitempty"`
	CordonedAt   *time.Time `json:"cordoned_at,omitempty"`
	Draining     bool       `json:"draining"`
	// HeartbeatAge is in seconds by the database's clock; nil without a heartbeat.
	HeartbeatAge *float64 `json:"heartbeat_age_seconds"`
	Stale        bool     `json:"heartbeat_stale"`
	// Fences reports that it refuses outdated dispatches, so that the engine may move executions away
	// from it.
	Fences    bool  `json:"attempt_fence"`
	Running   int64 `json:"running"`
	Unstarted int64 `json:"unstarted"` // dispatched and not started
}

// Empty reports that the worker has no executions.
func (w *WorkerNow) Empty() bool { return w.Running+w.Unstarted == 0 }

// since returns the time and the reason of the cordon.
func (w *WorkerNow) since() string {
	text := ""
	if w.CordonedAt != nil {
		text = " since " + w.CordonedAt.UTC().Format(time.RFC3339)
	}
	if w.CordonReason != "" {
		text += ": " + w.CordonReason
	}
	return text
}

// leavesByItself reports that its process drains it for a shutdown.
func (w *WorkerNow) leavesByItself() bool { return w.Status == "inactive" && w.Draining && !w.Stale }

// WorkerReceipt is the result of an action on a worker.
type WorkerReceipt struct {
	WorkerRequest

	Before WorkerNow `json:"before"`
	// After is the worker after the action; of a forgotten worker it is Before.
	After   WorkerNow `json:"after"`
	Changed bool      `json:"changed"`
	Says    string    `json:"says"` // in a sentence
	// Settled reports that no dispatch to the worker can follow. Otherwise the last one follows within
	// seconds.
	Settled bool `json:"settled"`
	// Discarded counts the notices and cancel requests in the queues of a forgotten worker.
	Discarded int    `json:"discarded,omitempty"`
	Outcome   string `json:"outcome"`
	Audit     int64  `json:"audit_id,omitempty"`
}

// settleTimeout bounds the wait of an action for running batches.
const settleTimeout = 5 * time.Second

// ActOnWorker acts on a worker. If nothing changes, the receipt has the time and the reason of the
// existing state. After a settled cordon or drain no execution is dispatched to the worker any more;
// messages of earlier dispatches may still reach it.
func (t *Triage) ActOnWorker(ctx context.Context, request WorkerRequest) (*WorkerReceipt, error) {
	if request.Act == ForgetWorker {
		return t.forget(ctx, request)
	}
	done, err := commit(ctx, t, string(request.Act)+" a worker",
		func(ctx context.Context, tx *store.Tx) (*WorkerReceipt, error) {
			now, err := t.worker(ctx, tx, request, true)
			if err != nil {
				return nil, err
			}
			receipt := &WorkerReceipt{WorkerRequest: request, Before: *now, After: *now, Outcome: outcomeUnchanged}
			state, says := t.change(now, request)
			receipt.Says = says
			if state != nil {
				n, err := tx.SayWorker(ctx, store.SayWorkerParams{
					ID: now.ID, Cordoned: state.cordoned, Draining: state.draining, Reason: state.reason,
					WasCordoned: now.Cordoned, WasDraining: now.Draining,
				})
				if err != nil {
					return nil, fmt.Errorf("write the row of worker %s: %w", now.Name, err)
				}
				if n != 1 {
					return nil, fmt.Errorf("worker %s changed meanwhile: the same again is safe", now.Name)
				}
				receipt.Changed, receipt.Outcome = true, outcomeDone
				after, err := t.worker(ctx, tx, request, false)
				if err != nil {
					return nil, err
				}
				receipt.After = *after
			}
			return receipt, t.record(ctx, tx.Queries, &receipt.Audit, receipt.audit())
		})
	if err == nil {
		t.settle(ctx, done)
	}
	return done, err
}

// settle waits for the batches that read the workers before the action, and then counts the worker's
// executions. The action is committed, so a timeout only leaves the receipt unsettled.
func (t *Triage) settle(ctx context.Context, receipt *WorkerReceipt) {
	if receipt.Act == UncordonWorker {
		receipt.Settled = true
		return
	}
	patient, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if t.store.AwaitLockers(patient, "worker_load") != nil {
		return
	}
	work, err := t.store.CountWorkerWork(patient, receipt.After.ID)
	if err != nil {
		return
	}
	receipt.Settled, receipt.After.Running, receipt.After.Unstarted = true, work.Running, work.Unstarted
}

// workerState is the part of a worker's row that an action changes.
type workerState struct {
	cordoned, draining bool
	reason             string
}

// change returns the state after an action, nil if it changes nothing, and the sentence about it.
func (t *Triage) change(now *WorkerNow, request WorkerRequest) (state *workerState, says string) {
	reason := "by " + t.cfg.Actor
	if request.Reason != "" {
		reason = request.Reason + " (" + reason + ")"
	}
	switch request.Act {
	case CordonWorker:
		return cordonState(now, request, reason)
	case DrainWorker:
		return drainState(now, request, reason)
	case UncordonWorker:
		own := now.leavesByItself()
		switch {
		case !now.Cordoned && (!now.Draining || own):
			return nil, "is not cordoned" + leaves(now)
		case now.Draining && !own:
			return &workerState{}, "takes work again: it was draining" + now.since()
		default:
			return &workerState{draining: own}, "is given work again: it was cordoned" + now.since() + leaves(now)
		}
	case ForgetWorker:
	}
	return nil, "stays as it is"
}

func cordonState(now *WorkerNow, request WorkerRequest, reason string) (*workerState, string) {
	switch state := cmp.Or(map[bool]string{true: "draining"}[now.Draining && now.Cordoned], "cordoned"); {
	case now.Cordoned && (request.Reason == "" || now.CordonReason == reason):
		return nil, "is " + state + " already" + now.since()
	case now.Cordoned:
		return &workerState{cordoned: true, draining: now.Draining, reason: reason},
			"is " + state + " already: only the reason changes"
	}
	return &workerState{cordoned: true, draining: now.Draining, reason: reason},
		"is given nothing new; what it has goes on" + leaves(now)
}

func drainState(now *WorkerNow, request WorkerRequest, reason string) (*workerState, string) {
	if now.Status == "inactive" { // no process reads the drain; the next one finds the cordon
		if state, says := cordonState(now, request, reason); state == nil || now.Cordoned {
			return state, says
		}
		return &workerState{cordoned: true, draining: now.Draining, reason: reason},
			"is inactive: it is cordoned, so that it is given nothing when it comes back"
	}
	if now.Cordoned && now.Draining {
		return cordonState(now, request, reason)
	}
	if request.Reason == "" && now.CordonReason != "" {
		reason = now.CordonReason
	}
	return &workerState{cordoned: true, draining: true, reason: reason},
		"drains: it is given nothing new, ends what it runs, and what it has not begun goes to others"
}

// leaves returns the remark about a worker that leaves by itself.
func leaves(now *WorkerNow) string {
	if now.leavesByItself() {
		return "; its process is leaving by itself"
	}
	return ""
}

// worker reads a worker and counts its executions. A lock excludes other actions on it until the end of the
// transaction.
func (t *Triage) worker(ctx context.Context, tx *store.Tx, request WorkerRequest, lock bool) (*WorkerNow, error) {
	which := request.Worker
	rows, err := tx.FindActWorker(ctx, which, request.ByID)
	if err == nil && lock && len(rows) > 0 {
		if _, err = tx.LockActWorker(ctx, rows[0].ID); err == nil {
			rows, err = tx.FindActWorker(ctx, which, request.ByID)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find worker %s: %w", which, err)
	}
	if len(rows) == 0 {
		return nil, ErrNoWorker
	}
	row := rows[0]
	now := &WorkerNow{
		ID: row.ID, Name: row.Name, Status: row.Status, Cordoned: row.Cordoned, CordonReason: row.CordonReason,
		Draining: row.Draining, Fences: row.Fences, Stale: row.HeartbeatAge >= t.cfg.HeartbeatStaleAfter.Seconds(),
	}
	if row.CordonedAt.Unix() != 0 {
		now.CordonedAt = &row.CordonedAt
	}
	if !math.IsInf(row.HeartbeatAge, 1) {
		now.HeartbeatAge = &row.HeartbeatAge
	}
	work, err := tx.CountWorkerWork(ctx, row.ID)
	if err != nil {
		return nil, fmt.Errorf("count the executions of worker %s: %w", row.Name, err)
	}
	now.Running, now.Unstarted = work.Running, work.Unstarted
	return now, nil
}

// WorkerNow reads the worker of a request.
func (t *Triage) WorkerNow(ctx context.Context, which WorkerRequest) (*WorkerNow, error) {
	return Read(ctx, t, "look at a worker", func(ctx context.Context, tx *store.Tx) (*WorkerNow, error) {
		return t.worker(ctx, tx, which, false)
	})
}

func (r *WorkerReceipt) audit() audit {
	return audit{
		action: "worker." + string(r.Act), of: subject{kind: "worker", id: r.Before.ID, name: r.Before.Name},
		reason: r.Reason, request: r, outcome: r.Outcome,
	}
}
