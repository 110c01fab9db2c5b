package operator

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

func idsOf(targets []act.Target) []int64 {
	ids := make([]int64, len(targets))
	for i, t := range targets {
		ids[i] = t.ID
	}
	return ids
}

// asEnqueued is the order in which the executions of letters were requested, so that
// first in stays first out in every queue; letters of none come after, as they died.
func asEnqueued(a, b monitor.LedgerEntry) int {
	execution := func(e *monitor.LedgerEntry) int64 {
		if e.Execution == nil {
			return math.MaxInt64
		}
		return *e.Execution
	}
	return cmp.Or(cmp.Compare(execution(&a), execution(&b)), cmp.Compare(a.ID, b.ID))
}

// insteadOf says by the advice about a dead letter why it is not requeued, and what to
// do instead.
var insteadOf = map[string]string{
	monitor.AdviseDiscard: "what they asked for is over; discard them",
	monitor.AdviseExport:  "they are unreadable; export them, then discard them",
	monitor.AdviseRetry:   "their executions have been repeated; retry the newest",
	monitor.AdviseWait:    "the engine is about to decide; wait",
	monitor.AdviseNothing: "they are decided",
}

// planRequeueMany plans to requeue letters of the ledger that were marked, by the
// verdict that the list shows.
func (o *Operator) planRequeueMany(ctx context.Context, order act.Order) (*act.Plan, error) {
	letters, err := o.reader.Letters(ctx, idsOf(order.Targets))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(letters, asEnqueued)
	var ids []int64
	skipped := map[string]int{}
	for i := range letters {
		if letters[i].Verdict.Advice == monitor.AdviseRequeue {
			ids = append(ids, letters[i].ID)
		} else {
			skipped[letters[i].Verdict.Advice]++
		}
	}
	plan := &act.Plan{Title: "Requeue " + counted(len(ids), "dead letter", "dead letters")}
	plan.Lines = append(plan.Lines, line(act.Plain, "%d marked: %d will be requeued", len(order.Targets), len(ids)))
	for _, advice := range []string{monitor.AdviseDiscard, monitor.AdviseExport, monitor.AdviseRetry, monitor.AdviseWait, monitor.AdviseNothing} {
		if n := skipped[advice]; n > 0 {
			plan.Lines = append(plan.Lines, line(act.Note, "  %d cannot usefully be requeued: %s", n, insteadOf[advice]))
		}
	}
	if gone := len(order.Targets) - len(letters); gone > 0 {
		plan.Lines = append(plan.Lines, line(act.Note, "  %d are not in the ledger any more", gone))
	}
	if len(ids) == 0 {
		plan.Title = "Requeue marked dead letters"
		plan.Nothing = fmt.Sprintf("none of the %d can usefully be requeued", len(order.Targets))
		return plan, nil
	}
	plan.Lines = append(plan.Lines,
		line(act.Plain, "order    as first enqueued (FIFO kept); executions join the tails of their queues"),
		line(act.Plain, "rate     20/s, stop after 3 errors; est. %d s", len(ids)/20+1),
		line(act.Note, "safety   each is one transaction with its audit; hand-overs are repeated as new executions"))
	plan.Word = wordFor(len(ids), fmt.Sprintf("requeue %d", len(ids)))
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		r, err := o.triage.RequeueMany(ctx, ids, nil, reason)
		if err != nil {
			return nil, err
		}
		return manyReceipt("Requeue", r), nil
	})
	return plan, nil
}

// planDiscardMany plans to discard letters of the ledger that were marked.
func (o *Operator) planDiscardMany(ctx context.Context, order act.Order) (*act.Plan, error) {
	planned, err := o.triage.PlanDiscardOf(ctx, idsOf(order.Targets))
	if err != nil {
		return nil, err
	}
	plan := &act.Plan{Title: "Discard " + counted(planned.Letters, "dead letter", "dead letters")}
	plan.Lines = append(plan.Lines, line(act.Plain, "%d marked: %d wait, %d are decided already", len(order.Targets), planned.Letters, len(order.Targets)-planned.Letters))
	if planned.Letters == 0 {
		plan.Nothing = "none of them waits"
		return plan, nil
	}
	plan.Lines = append(plan.Lines, line(act.Note, "Nothing is done about them. The ledger keeps everything, and u has them wait again."))
	plan.Word = wordFor(planned.Letters, fmt.Sprintf("discard %d", planned.Letters))
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		planned.Note = reason
		r, err := o.triage.DiscardManyLocked(ctx, planned)
		if r == nil {
			return nil, err
		}
		return discardReceipt(r, planned), err
	})
	return plan, nil
}

// discardReceipt says what a discard of many did, and how to take it back.
func discardReceipt(r *triage.DiscardManyReceipt, planned *triage.DiscardPlan) *act.Receipt {
	receipt := &act.Receipt{
		Text:   outcome(r.Discarded, r.Planned, "discarded", other{r.AlreadyDecided, "had been decided by others"}, other{r.Left, "still wait"}),
		Partly: r.Left > 0, Audits: audits(r.Audit),
	}
	if r.Discarded > 0 {
		receipt.Undo, receipt.Next = reopens(planned.IDs()...), "u undoes it"
	}
	if planned.More || r.Left > 0 {
		receipt.Next = "the same again goes on"
	}
	return receipt
}

// lettersOf are the dead letters of an order.
func lettersOf(order act.Order) []act.Target {
	if len(order.Targets) > 0 {
		return order.Targets
	}
	return []act.Target{order.Target}
}

// reopens is the order that has letters wait again.
func reopens(ids ...int64) *act.Order {
	order := &act.Order{Kind: act.UndoLetters, Target: act.Target{Name: counted(len(ids), "dead letter", "dead letters")}}
	for _, id := range ids {
		order.Targets = append(order.Targets, act.Target{ID: id})
	}
	return order
}

// planUndo plans to take back what a discard did.
func (o *Operator) planUndo(ctx context.Context, order act.Order) (*act.Plan, error) {
	letters, err := o.reader.Letters(ctx, idsOf(lettersOf(order)))
	if err != nil {
		return nil, err
	}
	var ids []int64
	for i := range letters {
		if d := letters[i].Decision; d == "discarded" || d == "purged" {
			ids = append(ids, letters[i].ID)
		}
	}
	plan := &act.Plan{
		Title: "Reopen " + counted(len(ids), "dead letter", "dead letters"),
		Lines: []act.Line{line(act.Plain, "%s open again; the history is kept.", counted(len(ids), "dead letter is", "dead letters are"))},
		Word:  wordFor(len(ids), fmt.Sprintf("reopen %d", len(ids))),
	}
	if len(ids) == 0 {
		plan.Nothing = "none of them was discarded"
		return plan, nil
	}
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		r, err := o.triage.Reopen(ctx, ids, reason)
		if err != nil {
			return nil, err
		}
		return manyReceipt("Reopen", r), nil
	})
	return plan, nil
}

func manyReceipt(verb string, r *triage.ManyReceipt) *act.Receipt {
	receipt := &act.Receipt{
		Text:   verb + ": " + outcome(r.Done, r.Planned, "done", other{r.Changed, "changed meanwhile"}, other{r.Failed, "failed"}, other{r.Left, "left"}),
		Partly: r.Done < r.Planned, Audits: r.Audits,
	}
	if r.Stopped != "" {
		receipt.Lines = append(receipt.Lines, line(act.Warn, "%s", sentence("stopped: "+r.Stopped)))
	}
	for _, text := range r.Errors {
		receipt.Lines = append(receipt.Lines, line(act.Note, "%s", text))
	}
	return receipt
}
