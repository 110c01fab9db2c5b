package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// clearPage bounds the executions that one transaction of a clearing cancels. Between two transactions, slots that
// become free start waiting executions of the plan.
const clearPage = 2000

// ClearingQueue is a queue whose waiting executions a clearing cancels.
type ClearingQueue struct {
	ID      int64     `json:"id"`
	Group   string    `json:"group,omitempty"`
	Paused  bool      `json:"paused"`
	Waiting int       `json:"waiting"`
	Oldest  time.Time `json:"oldest,omitzero"` // zero if only some are cancelled

	ticket int64 // the last waiting execution when the plan was made
}

// Clearing is a plan to cancel the waiting executions in the target's queues, with its progress.
// Executions that arrive later are not in it. It is not safe for concurrent use.
type Clearing struct {
	Target  Target
	At      time.Time // when it was planned
	Cutoff  time.Time // only executions that have waited since then or longer
	Queues  []ClearingQueue
	Waiting int

	next       int   // earlier queues are done
	lane       int16 // continue behind this position of queue next
	queueOrder int64

	only map[int64]bool // nil: all
}

// PlanClearing counts the executions that have waited in the target's queues for olderThan or
// longer, in one snapshot. A missing queue counts as empty. If only is not nil, the plan excludes
// all other executions.
func PlanClearing(ctx context.Context, tx *store.Tx, target Target, olderThan time.Duration,
	only []int64,
) (*Clearing, error) {
	queues, err := tx.ControlReadQueues(ctx, target.ActionID, target.groups())
	if err != nil {
		return nil, fmt.Errorf("read the queues of %s: %w", target, err)
	}
	if len(queues) == 0 && target.Group != "" {
		if err := target.Fits(); err != nil {
			return nil, err
		}
	}
	now, err := tx.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the clock: %w", err)
	}
	c := &Clearing{Target: target, At: now, Cutoff: now.Add(-olderThan)}
	c.rewind()
	rows, err := tx.ControlWaiting(ctx, c.Cutoff, target.ActionID, target.groups())
	if err != nil {
		return nil, fmt.Errorf("count the executions that wait for %s: %w", target, err)
	}
	for _, row := range rows {
		c.Queues = append(c.Queues, ClearingQueue{
			ID: row.ID, Group: row.GroupKey, Paused: row.Paused, Waiting: int(row.Waiting), Oldest: row.Oldest,
			ticket: row.Ticket,
		})
		c.Waiting += int(row.Waiting)
	}
	if only == nil {
		return c, nil
	}
	return c, c.restrict(ctx, tx.Queries, only)
}

// restrict limits the plan to some executions, and counts them.
func (c *Clearing) restrict(ctx context.Context, queries *store.Queries, only []int64) error {
	c.only, c.Waiting = make(map[int64]bool, len(only)), 0
	for _, id := range only {
		c.only[id] = true
	}
	waiting := map[int64]int{}
	for {
		page, err := c.Next(ctx, queries)
		if err != nil {
			return err
		}
		if page.Len() == 0 {
			break
		}
		for _, row := range page.rows {
			waiting[row.StateID]++
			c.Waiting++
		}
	}
	c.next = 0
	c.rewind()
	c.Queues = slices.DeleteFunc(c.Queues, func(q ClearingQueue) bool { return waiting[q.ID] == 0 })
	for i := range c.Queues {
		c.Queues[i].Waiting, c.Queues[i].Oldest = waiting[c.Queues[i].ID], time.Time{}
	}
	return nil
}

// rewind starts at the first position of a queue.
func (c *Clearing) rewind() { c.lane, c.queueOrder = math.MinInt16, math.MinInt64 }

// ClearingPage is the work of one transaction of a clearing.
type ClearingPage struct {
	rows []store.ControlPageRow
}

// Len is the number of executions of the page.
func (p ClearingPage) Len() int { return len(p.rows) }

// Next reads the next page, without locks; an empty page is the end. The page excludes executions
// that left their queue since the plan.
func (c *Clearing) Next(ctx context.Context, queries *store.Queries) (ClearingPage, error) {
	for c.next < len(c.Queues) {
		arg, until := c.window()
		rows, err := queries.ControlPage(ctx, arg)
		if err != nil {
			return ClearingPage{}, fmt.Errorf("read the executions that wait for %s: %w", c.Target, err)
		}
		c.pass(rows, until)
		if c.only != nil {
			rows = slices.DeleteFunc(rows, func(row store.ControlPageRow) bool { return !c.only[row.ExecutionID] })
		}
		if len(rows) > 0 {
			return ClearingPage{rows: rows}, nil
		}
	}
	return ClearingPage{}, nil
}

// window selects as many queues as fill one page.
func (c *Clearing) window() (arg store.ControlPageParams, until int) {
	arg = store.ControlPageParams{Cutoff: c.Cutoff, Page: clearPage}
	waiting := 0
	for until = c.next; until < len(c.Queues) && waiting < clearPage; until++ {
		queue := c.Queues[until]
		waiting += queue.Waiting
		lane, order := int16(math.MinInt16), int64(math.MinInt64)
		if until == c.next {
			lane, order = c.lane, c.queueOrder
		}
		arg.States, arg.Tickets = append(arg.States, queue.ID), append(arg.Tickets, queue.ticket)
		arg.Lanes, arg.Orders = append(arg.Lanes, lane), append(arg.Orders, order)
	}
	return arg, until
}

// pass moves the position behind the rows of a window that ended before queue until.
func (c *Clearing) pass(rows []store.ControlPageRow, until int) {
	if len(rows) < clearPage {
		c.next = until
		c.rewind()
		return
	}
	last := rows[len(rows)-1]
	for c.Queues[c.next].ID != last.StateID {
		c.next++
	}
	c.lane, c.queueOrder = last.Lane, last.QueueOrder
}

// EndedExecution is an execution that ended while it waited.
type EndedExecution struct {
	ExecutionID int64
	ActionID    int64
	ActionRef   string
	Status      lifecycle.Status
	Result      json.RawMessage
}

// Cleared is what one transaction of a clearing decided. Write stores it; nothing remains unless
// the transaction commits.
type Cleared struct {
	At    time.Time // of the transaction, by the database's clock
	Ended []EndedExecution
	Gone  int // executions that were promoted or ended meanwhile

	ledger *Ledger
	result json.RawMessage
}

// ClearingConfig configure the cancellation of a page.
type ClearingConfig struct {
	// Result encodes the result of the cancelled executions at a time.
	Result func(at time.Time) json.RawMessage
	// StaleAfter is the heartbeat age from which a worker counts as absent.
	StaleAfter time.Duration
	// WithoutStats leaves queue_stats unchanged.
	WithoutStats bool
}

// CancelPage locks the queues of a page and cancels the executions that still wait there. An
// execution that was promoted before the lock keeps its slot.
func CancelPage(ctx context.Context, tx *store.Tx, page ClearingPage, config ClearingConfig) (*Cleared, error) {
	want := Want{
		Queues: make(map[int64]int), Workers: []int64{}, MaxHeads: 1,
		StaleAfter: config.StaleAfter, WithoutStats: config.WithoutStats,
	}
	for _, row := range page.rows {
		want.Queues[row.StateID] = 0
		want.Executions = append(want.Executions, row.ExecutionID)
	}
	ledger, err := Lock(ctx, tx, want)
	if err != nil {
		return nil, err
	}
	cleared := &Cleared{At: ledger.Now.UTC(), ledger: ledger}
	cleared.result = config.Result(cleared.At)
	for _, row := range page.rows {
		fact, ok := ledger.Fact(row.ExecutionID)
		if !ok || fact.Waits == nil || *fact.Waits != row.StateID || !ledger.Withdraw(row.ExecutionID) {
			cleared.Gone++
			continue
		}
		if fact.Status != lifecycle.StatusRequested {
			cleared.Gone++ // it had already ended; only its entry was left
			continue
		}
		ledger.End(row.ExecutionID, lifecycle.StatusCancelled)
		cleared.Ended = append(cleared.Ended, EndedExecution{
			ExecutionID: row.ExecutionID, ActionID: row.Action, ActionRef: row.ActionRef,
			Status: lifecycle.StatusCancelled, Result: cleared.result,
		})
	}
	return cleared, nil
}

// Write queues the statements that store the page.
func (c *Cleared) Write(p *store.Pipeline) {
	if len(c.Ended) > 0 {
		ids := make([]int64, len(c.Ended))
		for i, e := range c.Ended {
			ids[i] = e.ExecutionID
		}
		p.Exec(store.CancelWaiting, ids, []byte(c.result))
	}
	c.ledger.Write(p)
}

// CompletedMessage announces that an execution ended while it waited.
func CompletedMessage(e EndedExecution, at time.Time, source string) (outbox.Message, error) {
	return outbox.Completed(store.ReadOutcomesRow{
		ID: e.ExecutionID, Action: &e.ActionID, ActionRef: e.ActionRef, Status: e.Status,
		Result: e.Result, FinishedAt: at,
	}, at, source)
}

// maxConfigInNudge bounds the parameters copied into the message.
const maxConfigInNudge = 16 << 10

// NudgeMessage requests the execution at the head of a queue again. The execution keeps its
// position; the batch that takes the message gives free slots to the queue's heads.
func NudgeMessage(head Head, at time.Time, source string) (outbox.Message, error) {
	return outbox.Encode(message.TypeExecutionRequested, message.ExecutionRequested{
		ExecutionID: head.ExecutionID, ActionID: head.ActionID, ActionRef: head.ActionRef,
		ParentID: head.Parent, EnforcementID: head.Enforcement, Config: jsonvalue.Copy(head.Config, maxConfigInNudge),
	}, at, source)
}
