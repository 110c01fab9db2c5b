package triage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/cancellation"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// CancelResult is the result of a cancellation for one execution.
type CancelResult = cancellation.Result

// CancelOutcome is the kind of a result.
type CancelOutcome = cancellation.Outcome

// The outcomes of a cancellation.
const (
	CancelDone    = cancellation.Cancelled // the execution has ended
	CancelAsked   = cancellation.Asked     // its worker was asked to stop it
	CancelEnded   = cancellation.Ended     // it had ended before
	CancelMissing = cancellation.Missing   // it does not exist
	CancelMoving  = cancellation.Moving    // it changed during every try
)

// CancelRequest selects the executions that are to be stopped.
type CancelRequest struct {
	IDs []int64 `json:"ids"`
	// Tree cancels all descendants. Without it, only the tasks of workflows end that their cancellation_policy does not
	// let run to their ends.
	Tree   bool   `json:"tree,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Paced stops executions that workers have at the pace of Config.Pace. Waiting ones never start meanwhile.
	Paced bool `json:"-"`
}

// CancelCounts counts executions by outcome.
type CancelCounts struct {
	Cancelled int `json:"cancelled"`
	Asked     int `json:"stop_asked"`
	Ended     int `json:"had_ended"`
	Missing   int `json:"not_found"`
	Moving    int `json:"kept_moving,omitempty"`
}

func (c *CancelCounts) add(outcome CancelOutcome) {
	switch outcome {
	case CancelDone:
		c.Cancelled++
	case CancelAsked:
		c.Asked++
	case CancelEnded:
		c.Ended++
	case CancelMissing:
		c.Missing++
	case CancelMoving:
		c.Moving++
	}
}

// Acted counts the executions that are stopped or were asked to stop.
func (c *CancelCounts) Acted() int { return c.Cancelled + c.Asked }

// cancelled has the results of a plan or a receipt.
type cancelled struct {
	CancelCounts

	// Executions lists the named executions, and of a tree the first thousand that are stopped.
	Executions []CancelResult `json:"executions"`
}

func (c *cancelled) take(request CancelRequest, results []CancelResult) {
	ids := slices.Sorted(slices.Values(request.IDs))
	for _, r := range results {
		_, named := slices.BinarySearch(ids, r.ID)
		if !named && (r.Outcome == CancelMissing || r.Outcome == CancelEnded && !request.Tree) {
			continue // a deleted child, or an ended task
		}
		c.add(r.Outcome)
		if named || len(c.Executions) < maxListed && r.Outcome != CancelEnded {
			c.Executions = append(c.Executions, r)
		}
	}
}

// CancelPlan is what a cancellation would do.
type CancelPlan struct {
	CancelRequest
	cancelled
}

// PlanCancel reads what a cancellation would do, without locks or writes.
func (t *Triage) PlanCancel(ctx context.Context, request CancelRequest) (*CancelPlan, error) {
	return Read(ctx, t, "plan a cancellation", func(ctx context.Context, tx *store.Tx) (*CancelPlan, error) {
		planned := &CancelPlan{CancelRequest: request, cancelled: cancelled{Executions: []CancelResult{}}}
		_, err := t.walk(ctx, request, tx.Queries, func(ids []int64, _ *cancellation.Walk) (*cancellation.Page, error) {
			results, err := cancellation.Preview(ctx, tx.Queries, t.cancelRequest(request), ids)
			planned.take(request, results)
			return &cancellation.Page{Results: results}, err
		})
		return planned, err
	})
}

// stopPage bounds the executions that one transaction of a paced cancellation stops.
const stopPage = 20

// walk calls do for the executions of a request, a page at a time, parents before their children, and all waiting
// ones before the executions that a worker has. It returns the executions that changed during every try.
func (t *Triage) walk(
	ctx context.Context, request CancelRequest, queries *store.Queries,
	do func(ids []int64, walk *cancellation.Walk) (*cancellation.Page, error),
) (stuck []int64, err error) {
	walk, due := cancellation.NewWalk(request.IDs, request.Tree), time.Time{}
	if request.Paced {
		walk.Stops = stopPage
	}
	err = loop{}.run(ctx, func(ctx context.Context) (more bool, err error) {
		ids, err := walk.Next(ctx, queries)
		if err != nil || len(ids) == 0 {
			return false, err
		}
		if request.Paced && !walk.Waiting {
			if !supervise.Sleep(ctx, time.Until(due)) {
				return false, ctx.Err()
			}
			due = time.Now().Add(time.Duration(len(ids)) * t.cfg.Pace)
		}
		page, err := do(ids, walk)
		if err == nil {
			walk.Again(page)
		}
		return true, err
	})
	return walk.Stuck, err
}

func (t *Triage) cancelRequest(request CancelRequest) cancellation.Request {
	return cancellation.Request{
		Actor: t.cfg.Actor, Reason: request.Reason, Source: t.cfg.Source,
		StaleAfter: t.cfg.HeartbeatStaleAfter, WithoutStats: t.cfg.WithoutStats,
	}
}

// CancelReceipt is the result of a cancellation.
type CancelReceipt struct {
	CancelRequest
	cancelled
	Sent

	Seconds float64 `json:"seconds"`
	Outcome string  `json:"outcome"` // done, nothing to do, unchanged, interrupted or failed
	Audit   int64   `json:"audit_id,omitempty"`
	// Left are the named executions that were not reached. They are as they were, or an engine withdraws them.
	Left []int64 `json:"-"`
}

// Cancel stops the executions of a plan in their present state, a page in each transaction. It withdraws waiting
// executions before it stops one that holds a slot, so that no free slot starts another one of the plan. In a
// tree it stops parents before their children, and also children that start meanwhile. It always
// returns a receipt, with an error that of a part; the same plan again continues.
func (t *Triage) Cancel(ctx context.Context, plan *CancelPlan) (*CancelReceipt, error) {
	began := time.Now()
	receipt := &CancelReceipt{
		CancelRequest: plan.CancelRequest, cancelled: cancelled{Executions: []CancelResult{}},
		Outcome: outcomeRunning,
	}
	err := t.cancelPages(ctx, receipt)
	receipt.Seconds = time.Since(began).Seconds()
	slices.SortFunc(receipt.Executions, func(a, b CancelResult) int { return cmp.Compare(a.ID, b.ID) })
	if err != nil {
		receipt.Left = slices.DeleteFunc(slices.Clone(plan.IDs), receipt.decided)
	}
	receipt.Outcome = outcomeOf(ctx, err, receipt.Ended+receipt.Moving, receipt.Acted())
	return receipt, t.finish(ctx, "end a cancellation", err, func(ctx context.Context, tx *store.Tx) error {
		return t.record(ctx, tx.Queries, &receipt.Audit, receipt.audit(err))
	})
}

// decided reports whether the receipt has the result of a named execution.
func (r *CancelReceipt) decided(id int64) bool {
	_, found := slices.BinarySearchFunc(r.Executions, id,
		func(one CancelResult, id int64) int { return cmp.Compare(one.ID, id) })
	return found
}

func (t *Triage) cancelPages(ctx context.Context, receipt *CancelReceipt) error {
	do := func(ids []int64, walk *cancellation.Walk) (*cancellation.Page, error) {
		page, err := t.cancelExecutions(ctx, ids, walk, receipt)
		if err != nil {
			return nil, fmt.Errorf("after %d cancelled and %d asked to stop: %w", receipt.Cancelled, receipt.Asked, err)
		}
		total := 0 // the size of a tree is unknown
		if !receipt.Tree {
			total = max(len(receipt.IDs), receipt.Acted()+receipt.Ended)
		}
		progress(ctx, receipt.Acted()+receipt.Ended, total)
		return page, nil
	}
	stuck, err := t.walk(ctx, receipt.CancelRequest, t.store.Queries, do)
	if err != nil {
		return err
	}
	for _, id := range stuck {
		receipt.take(receipt.CancelRequest, []CancelResult{{ID: id, Outcome: CancelMoving}})
	}
	return nil
}

// cancelExecutions runs one page. If a row changes between its lock and its write, the page is
// decided again.
func (t *Triage) cancelExecutions(
	ctx context.Context, ids []int64, walk *cancellation.Walk, receipt *CancelReceipt,
) (page *cancellation.Page, err error) {
	request := walk.Of(t.cancelRequest(receipt.CancelRequest))
	err = t.decide(ctx, "cancel executions", func(ctx context.Context, tx *store.Tx) (err error) {
		after := *receipt
		after.Rows, after.Executions = slices.Clone(receipt.Rows), slices.Clone(receipt.Executions)
		if page, err = cancellation.Apply(ctx, tx, request, ids); err != nil {
			return err
		}
		after.take(receipt.CancelRequest, page.Results)
		tx.AfterCommit(func() { *receipt = after })
		if err := t.send(ctx, tx, page.Messages, &after.Sent); err != nil {
			return err
		}
		return t.record(ctx, tx.Queries, &after.Audit, after.audit(nil))
	})
	return page, err
}

func (r *CancelReceipt) audit(failure error) audit {
	of := subject{kind: "execution", name: r.target()}
	if len(r.IDs) == 1 {
		of.id = r.IDs[0]
	}
	return audit{
		action: "execution.cancel", of: of, reason: r.Reason, request: r, outcome: r.Outcome,
		failure: failureOf(failure),
	}
}

// maxNamed bounds the executions that an audit names.
const maxNamed = 10

func (o CancelRequest) target() string {
	if len(o.IDs) > maxNamed {
		return fmt.Sprintf("%d executions", len(o.IDs))
	}
	names := make([]string, len(o.IDs))
	for i, id := range o.IDs {
		names[i] = fmt.Sprint(id)
	}
	text := "execution " + strings.Join(names, ", ")
	if o.Tree {
		text += " with all below"
	}
	return text
}
