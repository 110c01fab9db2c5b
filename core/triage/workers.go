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

// WorkerAct is what an operator may do to a worker.
type WorkerAct string

// The acts on workers.
const (
	CordonWorker   WorkerAct = "cordon"   // nothing new; what it has goes on
	UncordonWorker WorkerAct = "uncordon" // work again, after a cordon or a drain
	DrainWorker    WorkerAct = "drain"    // nothing new; what it has not begun goes to others
	ForgetWorker   WorkerAct = "forget"   // its row and its queues go
)

// Errors of acts on workers, to be told apart by errors.Is.
var (
	ErrNoWorker = errors.New("there is no such worker")
	ErrNoBroker = errors.New("to forget a worker the broker is needed, which has its queues")
)

// WorkerRefusedError says why something is not done to a worker, and what to do.
type WorkerRefusedError struct {
	Name   string
	Reason string
	Advice string
}

// Error says both.
func (e *WorkerRefusedError) Error() string {
	return fmt.Sprintf("worker %s stays: %s: %s", e.Name, e.Reason, e.Advice)
}

// WorkerOrder says what is to be done to which worker.
type WorkerOrder struct {
	Act    WorkerAct `json:"act"`
	Worker string    `json:"worker"` // its id or name
	ByID   bool      `json:"-"`      // it is the id, also when another has it as its name
	Reason string    `json:"reason,omitempty"`
}

// WorkerNow is a worker as an act finds or leaves it.
type WorkerNow struct {
	ID           int64      `json:"id"`
	Name         string     `json:"name"`
	Status       string     `json:"status"`
	Cordoned     bool       `json:"cordoned"`
	CordonReason string     `json:"cordon_reason,omitempty"`
	CordonedAt   *time.Time `json:"cordoned_at,omitempty"`
	Draining     bool       `json:"draining"`
	// HeartbeatAge is in seconds by the database's clock; nil: there never was one.
	HeartbeatAge *float64 `json:"heartbeat_age_seconds"`
	Stale        bool     `json:"heartbeat_stale"`
	// Fences says that it refuses what it was handed before that was moved away,
	// so that the engine may move it.
	Fences    bool  `json:"attempt_fence"`
	Running   int64 `json:"running"`
	Unstarted int64 `json:"unstarted"` // handed to it and not begun
}

// Empty reports that nothing is at the worker.
func (w *WorkerNow) Empty() bool { return w.Running+w.Unstarted == 0 }

// since says since when it is cordoned and what was said then.
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

// leavesByItself says that its process has taken it out of placement and still
// works.
func (w *WorkerNow) leavesByItself() bool { return w.Status == "inactive" && w.Draining && !w.Stale }

// WorkerReceipt is what was done to a worker.
type WorkerReceipt struct {
	WorkerOrder

	Before WorkerNow `json:"before"`
	// After is the worker once nothing more is handed to it, if that was asked
	// for. Of a forgotten one it is what it was.
	After   WorkerNow `json:"after"`
	Changed bool      `json:"changed"`
	Says    string    `json:"says"` // in a sentence
	// Settled says that no hand-over to the worker can follow. False: one that was
	// being decided may; it is so within seconds.
	Settled bool `json:"settled"`
	// Discarded is how many notices and cancels went with the queues of a
	// forgotten worker.
	Discarded int    `json:"discarded,omitempty"`
	Outcome   string `json:"outcome"`
	Audit     int64  `json:"audit_id,omitempty"`
}

// settlePatience is how long an act waits for batches that were under way.
const settlePatience = 5 * time.Second

// ActOnWorker does what one of the acts says. Who says what is so already changes
// nothing, and is told since when and why it is so. When the receipt of a cordon
// or a drain is settled, no execution is handed to the worker any more; messages
// of hand-overs from before may still be on their way to it.
func (t *Triage) ActOnWorker(ctx context.Context, order WorkerOrder) (*WorkerReceipt, error) {
	if order.Act == ForgetWorker {
		return t.forget(ctx, order)
	}
	var receipt *WorkerReceipt
	err := t.store.Tx(ctx, string(order.Act)+" a worker", func(ctx context.Context, tx *store.Tx) error {
		now, err := t.worker(ctx, tx, order, true)
		if err != nil {
			return err
		}
		receipt = &WorkerReceipt{WorkerOrder: order, Before: *now, After: *now, Outcome: outcomeUnchanged}
		word, says := t.wordOn(now, order)
		receipt.Says = says
		if word != nil {
			if err := t.sayWorker(ctx, tx, now, *word); err != nil {
				return err
			}
			receipt.Changed, receipt.Outcome = true, outcomeDone
			after, err := t.worker(ctx, tx, order, false)
			if err != nil {
				return err
			}
			receipt.After = *after
		}
		return t.record(ctx, tx.Queries, &receipt.Audit, receipt.audit())
	})
	if err != nil {
		return nil, err
	}
	t.settle(ctx, receipt)
	return receipt, nil
}

// settle waits for the batches that may still hand something over by what they saw
// before, and then counts what the worker has. What was said is committed: without
// an answer in time the receipt says that it is not settled, and nothing fails.
func (t *Triage) settle(ctx context.Context, receipt *WorkerReceipt) {
	if receipt.Act == UncordonWorker {
		receipt.Settled = true
		return
	}
	patient, cancel := context.WithTimeout(ctx, settlePatience)
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

// workerWord is what is to stand on a worker's row.
type workerWord struct {
	cordoned, draining bool
	reason             string
}

// wordOn says what an act changes, nil for nothing, and the sentence about it.
func (t *Triage) wordOn(now *WorkerNow, order WorkerOrder) (word *workerWord, says string) {
	reason := "by " + t.cfg.Actor
	if order.Reason != "" {
		reason = order.Reason + " (" + reason + ")"
	}
	switch order.Act {
	case CordonWorker:
		return cordonWord(now, order, reason)
	case DrainWorker:
		return drainWord(now, order, reason)
	case UncordonWorker:
		own := now.leavesByItself()
		switch {
		case !now.Cordoned && (!now.Draining || own):
			return nil, "is not cordoned" + leaves(now)
		case now.Draining && !own:
			return &workerWord{}, "takes work again: it was draining" + now.since()
		default:
			return &workerWord{draining: own}, "is given work again: it was cordoned" + now.since() + leaves(now)
		}
	case ForgetWorker:
	}
	return nil, "stays as it is"
}

func cordonWord(now *WorkerNow, order WorkerOrder, reason string) (*workerWord, string) {
	switch state := cmp.Or(map[bool]string{true: "draining"}[now.Draining && now.Cordoned], "cordoned"); {
	case now.Cordoned && (order.Reason == "" || now.CordonReason == reason):
		return nil, "is " + state + " already" + now.since()
	case now.Cordoned:
		return &workerWord{cordoned: true, draining: now.Draining, reason: reason}, "is " + state + " already: only the reason changes"
	}
	return &workerWord{cordoned: true, draining: now.Draining,
		reason: reason}, "is given nothing new; what it has goes on" + leaves(now)
}

func drainWord(now *WorkerNow, order WorkerOrder, reason string) (*workerWord, string) {
	if now.Status == "inactive" { // no process looks at it; the cordon waits for the next
		if word, says := cordonWord(now, order, reason); word == nil || now.Cordoned {
			return word, says
		}
		return &workerWord{cordoned: true, draining: now.Draining, reason: reason},
			"is inactive: it is cordoned, so that it is given nothing when it comes back"
	}
	if now.Cordoned && now.Draining {
		return cordonWord(now, order, reason)
	}
	if order.Reason == "" && now.CordonReason != "" {
		reason = now.CordonReason
	}
	return &workerWord{cordoned: true, draining: true, reason: reason},
		"drains: it is given nothing new, ends what it runs, and what it has not begun goes to others"
}

// leaves tells of a worker that is leaving by itself.
func leaves(now *WorkerNow) string {
	if now.leavesByItself() {
		return "; its process is leaving by itself"
	}
	return ""
}

func (t *Triage) sayWorker(ctx context.Context, tx *store.Tx, now *WorkerNow, word workerWord) error {
	n, err := tx.SayWorker(ctx, store.SayWorkerParams{
		ID: now.ID, Cordoned: word.cordoned, Draining: word.draining, Reason: word.reason,
		WasCordoned: now.Cordoned, WasDraining: now.Draining,
	})
	if err != nil {
		return fmt.Errorf("write the row of worker %s: %w", now.Name, err)
	}
	if n != 1 {
		return fmt.Errorf("worker %s changed meanwhile: the same again is safe", now.Name)
	}
	return nil
}

// worker reads a worker and what is at it. A lock keeps others from saying
// something about it until the end of the transaction.
func (t *Triage) worker(ctx context.Context, tx *store.Tx, order WorkerOrder, lock bool) (*WorkerNow, error) {
	which := order.Worker
	rows, err := tx.FindActWorker(ctx, which, order.ByID)
	if err == nil && lock && len(rows) > 0 {
		if _, err = tx.LockActWorker(ctx, rows[0].ID); err == nil {
			rows, err = tx.FindActWorker(ctx, which, order.ByID)
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
		return nil, fmt.Errorf("count what is at worker %s: %w", row.Name, err)
	}
	now.Running, now.Unstarted = work.Running, work.Unstarted
	return now, nil
}

// WorkerNow reads a worker, and what is at it. Of the order only the name counts.
func (t *Triage) WorkerNow(ctx context.Context, which WorkerOrder) (*WorkerNow, error) {
	var now *WorkerNow
	err := t.store.ReadTx(ctx, "look at a worker", func(ctx context.Context, tx *store.Tx) (err error) {
		now, err = t.worker(ctx, tx, which, false)
		return err
	})
	return now, err
}

func (r *WorkerReceipt) audit() audit {
	return audit{
		action: "worker." + string(r.Act), of: subject{kind: "worker", id: r.Before.ID, name: r.Before.Name},
		reason: r.Reason, request: r, outcome: r.Outcome,
	}
}
