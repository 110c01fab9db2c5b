package cancellation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

const (
	// MaxPage bounds the executions that one transaction stops.
	MaxPage = 200
	// MaxWaiting bounds the executions of a transaction that only withdraws waiting ones.
	MaxWaiting = 5000
)

// GraceDefault is how long a worker that does not fence attempts may take to start a canceling
// execution before it counts as unstarted.
const GraceDefault = 30 * time.Second

// Request has the operator and the reason of a cancellation, and its configuration.
type Request struct {
	Actor  string
	Reason string
	// Source is the program that writes the messages.
	Source string
	// Grace is the grace of GraceDefault.
	Grace time.Duration
	// StaleAfter is the heartbeat age from which a worker counts as dead. Dead workers get no
	// message. Default 90 s.
	StaleAfter time.Duration
	// WithoutStats leaves queue_stats unchanged.
	WithoutStats bool
	// Waiting leaves executions alone that a worker has: they become Page.Held.
	Waiting bool

	recorded bool           // the cancel requests are already stored
	later    []int64        // waiting executions of later pages, whose cancel requests are stored now
	stored   map[int64]bool // those of which an earlier page stored the request: any process may have ended them
}

func (r Request) withDefaults() Request {
	r.Grace = cmp.Or(r.Grace, GraceDefault)
	r.StaleAfter = cmp.Or(r.StaleAfter, 90*time.Second)
	r.Source = cmp.Or(r.Source, "attune-executor")
	r.Actor = cmp.Or(r.Actor, "unknown")
	return r
}

// Result is the outcome for one execution.
type Result struct {
	ID int64 `json:"id"`
	// Retry is the retry of ID that was stopped in its place.
	Retry      int64            `json:"repetition,omitempty"`
	ActionRef  string           `json:"action_ref,omitempty"`
	Outcome    Outcome          `json:"outcome"`
	Was        lifecycle.Status `json:"was,omitempty"`    // the status before
	Status     lifecycle.Status `json:"status,omitempty"` // the status now
	WorkerID   int64            `json:"worker_id,omitempty"`
	WorkerName string           `json:"worker_name,omitempty"`
	// WorkerGone reports that the worker is dead and got no message.
	WorkerGone bool `json:"worker_gone,omitempty"`

	workflow bool // it is the execution of a workflow
}

// Acting returns the id of the changed execution.
func (r Result) Acting() int64 { return cmp.Or(r.Retry, r.ID) }

// Page is the result of one transaction. Its messages are not sent yet: the caller appends them to the outbox
// in the same transaction.
type Page struct {
	At       time.Time // of the transaction, by the database's clock
	Results  []Result  // in order of id
	Messages []outbox.Message
	// Again are executions that another transaction queued, failed or retried before their rows were locked. The
	// caller must pass them to Apply again.
	Again []int64
	// Held are executions that a worker has, and that Request.Waiting left alone.
	Held []int64

	stored []int64 // executions that this page does not decide, but whose cancel requests are stored
}

// page is a Page under construction.
type page struct {
	Page

	request Request
	targets []store.CancelTargetsRow
	facts   map[int64]store.CancelFactsRow
	ledger  *admission.Ledger // nil without waiting executions
	ended   []decided
	asked   []decided
	left    []int64 // queues from which executions were removed
}

// decided is an execution with pending writes.
type decided struct {
	store.CancelFactsRow

	rule   Rule
	result json.RawMessage // of executions that end
}

// Apply stops these executions, MaxPage at most, in the caller's transaction. It locks rows in the
// order of docs/lock-order.md, so it must precede all other locks of the transaction.
func Apply(ctx context.Context, tx *store.Tx, request Request, ids []int64) (*Page, error) {
	if most := map[bool]int{false: MaxPage, true: MaxWaiting}[request.Waiting]; len(ids) > most {
		return nil, fmt.Errorf("cancel %d executions at once: at most %d", len(ids), most)
	}
	p := &page{request: request.withDefaults()}
	if err := p.read(ctx, tx, ids); err != nil {
		return nil, err
	}
	p.decide()
	p.missing(ids)
	if err := p.write(ctx, tx); err != nil {
		return nil, err
	}
	return &p.Page, p.compose(ctx, tx)
}

// read locks and reads: workflows, queues, executions.
func (p *page) read(ctx context.Context, tx *store.Tx, ids []int64) (err error) {
	if p.targets, err = tx.CancelTargets(ctx, ids); err != nil {
		return fmt.Errorf("find %d executions to cancel: %w", len(ids), err)
	}
	want := admission.Want{
		Queues: make(map[int64]int), Workers: []int64{}, MaxHeads: 1,
		StaleAfter: p.request.StaleAfter, WithoutStats: p.request.WithoutStats,
	}
	acting := make([]int64, 0, len(p.targets))
	for _, target := range p.targets {
		acting = append(acting, target.ID)
		if target.StateID != 0 {
			want.Queues[target.StateID] = 0
			want.Executions = append(want.Executions, target.ID)
		}
	}
	slices.Sort(acting)
	acting = slices.Compact(acting)
	if err := tx.CancelLockWorkflows(ctx, acting); err != nil {
		return fmt.Errorf("lock the workflows of %d executions: %w", len(acting), err)
	}
	if len(want.Queues) > 0 {
		if p.ledger, err = admission.Lock(ctx, tx, want); err != nil {
			return err
		}
	}
	pipe := tx.Pipeline()
	pipe.Exec(store.LockForChange, acting)
	facts := store.Many[store.CancelFactsRow](pipe, store.CancelFacts, p.request.StaleAfter.Seconds(), acting)
	if err := pipe.Send(ctx); err != nil {
		return fmt.Errorf("lock %d executions to cancel: %w", len(acting), err)
	}
	p.facts = make(map[int64]store.CancelFactsRow, len(acting))
	for _, row := range facts.Rows() {
		p.facts[row.ID] = row
		p.At = row.Now.UTC()
	}
	return nil
}

// factsOf converts a row to facts.
func factsOf(row store.CancelFactsRow) Facts {
	return Facts{
		Status: row.Status, Worker: row.Worker != 0, Fences: row.Fences, Started: row.Started, Tends: row.Tends,
		Since: time.Duration(row.Age * float64(time.Second)),
	}
}

// decide applies the table to every row, and once to an execution of several ids.
func (p *page) decide() {
	done := make(map[int64]bool, len(p.facts))
	for _, target := range p.targets {
		row, ok := p.facts[target.ID]
		if !ok {
			continue // deleted meanwhile
		}
		// It may have failed after its queue was read. The batch that releases its slot may be about to retry it.
		failed := row.Held != 0 && row.Held != target.StateID
		if row.Retry != 0 || failed || row.Waits != 0 && (p.ledger == nil || !p.ledger.Locked(row.Waits)) {
			p.Again = append(p.Again, target.Named)
			if row.Status != lifecycle.StatusCancelled {
				p.stored = append(p.stored, row.ID) // see recorded
			}
			continue
		}
		if p.leaves(row) {
			p.Held = append(p.Held, target.Named)
			continue
		}
		rule := Decide(factsOf(row), p.request.Grace)
		if !done[row.ID] {
			done[row.ID] = true
			p.record(row, rule)
		}
		result := resultOf(target, row, rule)
		if p.request.stored[row.ID] && row.Status == lifecycle.StatusCancelled {
			result.Outcome = Cancelled
		}
		p.Results = append(p.Results, result)
	}
}

// leaves reports whether a row is left alone, because a worker has its execution.
func (p *page) leaves(row store.CancelFactsRow) bool {
	return p.request.Waiting && row.Worker != 0 && !row.Status.Terminal()
}

// record records the writes for one row.
func (p *page) record(row store.CancelFactsRow, rule Rule) {
	d := decided{CancelFactsRow: row, rule: rule}
	switch rule.Step {
	case StepEnd:
		d.result = p.result(row)
		p.ended = append(p.ended, d)
		if row.Waits != 0 && p.ledger.Withdraw(row.ID) {
			p.left = append(p.left, row.Waits)
		}
	case StepAsk, StepAgain:
		p.asked = append(p.asked, d)
	case StepNone, StepWait:
	}
}

func resultOf(target store.CancelTargetsRow, row store.CancelFactsRow, rule Rule) Result {
	r := Result{
		ID: target.Named, ActionRef: row.ActionRef, Outcome: Ended, Was: row.Status, Status: row.Status,
		WorkerID: row.Worker, WorkerName: row.WorkerName, workflow: row.Workflow,
	}
	if target.Named != target.ID {
		r.Retry = target.ID
	}
	switch rule.Step {
	case StepEnd:
		r.Outcome, r.Status = Cancelled, lifecycle.StatusCancelled
	case StepAsk, StepAgain, StepWait:
		r.Outcome, r.Status, r.WorkerGone = Asked, lifecycle.StatusCanceling, row.Gone
	case StepNone:
	}
	return r
}

// missing reports the ids without a row.
func (p *page) missing(ids []int64) {
	known := make(map[int64]bool, len(ids))
	for _, r := range p.Results {
		known[r.ID] = true
	}
	for _, id := range slices.Concat(p.Again, p.Held) {
		known[id] = true
	}
	for _, id := range ids {
		if !known[id] {
			known[id] = true
			p.Results = append(p.Results, Result{ID: id, Outcome: Missing})
		}
	}
	slices.SortFunc(p.Results, func(a, b Result) int { return cmp.Compare(a.ID, b.ID) })
}

// result returns the result of a cancelled execution, in the format of the published scheduler.
func (p *page) result(row store.CancelFactsRow) json.RawMessage {
	result := map[string]any{
		"error": "Cancelled", "message": cmp.Or(row.Reason, p.request.Reason, "cancelled on request"),
		"cancelled_by": cmp.Or(row.Actor, p.request.Actor), "cancelled_at": p.At, "action_ref": row.ActionRef,
	}
	if row.Workflow && row.Worker == 0 {
		result["error"], result["succeeded"] = "Workflow cancelled", false
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return json.RawMessage(`{}`) // impossible: strings and a time
	}
	return raw
}

// Contended reports whether a transaction of Apply failed because rows changed, so that a retry can
// succeed.
func Contended(err error) bool {
	return store.ClassOf(err) == store.ClassRefused || errors.Is(err, admission.ErrConflict)
}
