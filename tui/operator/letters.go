package operator

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

// letterPlan begins the plan of an act on one dead letter with what it is about.
func (o *Operator) letterPlan(ctx context.Context, verb string, id int64) (*act.Plan, *monitor.LedgerDetail, error) {
	letter, err := o.reader.Letter(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	about := letter.What + ", " + letter.Reason
	if letter.Queue != "" {
		about += " in " + letter.Queue
	}
	if letter.ActionRef != "" {
		about += ", " + letter.ActionRef
	}
	if letter.Execution != nil {
		about += ", execution " + strconv.FormatInt(*letter.Execution, 10)
		if letter.StatusNow != "" {
			about += " (" + letter.StatusNow + " now)"
		}
	}
	plan := &act.Plan{Title: verb + " dead letter " + strconv.FormatInt(id, 10), Lines: []act.Line{line(act.Plain, "%s", sentence(about))}}
	return plan, letter, nil
}

// planRequeue plans to try again what a letter was about.
func (o *Operator) planRequeue(ctx context.Context, order act.Order) (*act.Plan, error) {
	if len(order.Targets) > 0 {
		return o.planRequeueMany(ctx, order)
	}
	plan, letter, err := o.letterPlan(ctx, "Requeue", order.Target.ID)
	if err != nil {
		return nil, err
	}
	verdict := letter.Verdict
	if verdict.Requeue == monitor.RequeueRefused {
		plan.Nothing = verdict.Why
		return plan, nil
	}
	advised := verdict.Advice == monitor.AdviseRequeue
	if advised {
		plan.Lines = append(plan.Lines, line(act.Plain, "%s", sentence(verdict.Why)))
	} else {
		plan.Lines = append(plan.Lines, line(act.Warn, "%s", sentence(verdict.Why)), line(act.Warn, "Better: %s.", verdict.Advice))
		plan.Word = "anyway"
	}
	if verdict.Requeue == monitor.RequeueSends {
		plan.Lines = append(plan.Lines, line(act.Note, "The message may arrive twice if somebody has sent it already; it cannot be lost."))
	} else {
		plan.Lines = append(plan.Lines, line(act.Note, "The hand-over itself is never sent again, since that could start the execution twice."))
	}
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		requeue := o.triage.RequeueIfUseful
		if !advised {
			requeue = o.triage.Requeue // it was confirmed that it is not advised
		}
		r, err := requeue(ctx, order.Target.ID, reason)
		if err != nil {
			return nil, err
		}
		receipt := &act.Receipt{Audits: audits(r.Audit)}
		if r.Repeated != nil {
			receipt.Text = fmt.Sprintf("Execution %d repeats %d as attempt %d.", r.Repeated.Execution, r.Repeated.Failed, r.Repeated.Attempt)
			receipt.Next = "3, then enter shows how it goes"
			return receipt, nil
		}
		receipt.Text = fmt.Sprintf("It is sent again to %s with the key %s.", r.Exchange, r.RoutingKey)
		receipt.Next = delivered(r.Sent)
		return receipt, nil
	})
	return plan, nil
}

// planDiscard plans to do nothing about a letter.
func (o *Operator) planDiscard(ctx context.Context, order act.Order) (*act.Plan, error) {
	if len(order.Targets) > 0 {
		return o.planDiscardMany(ctx, order)
	}
	plan, letter, err := o.letterPlan(ctx, "Discard", order.Target.ID)
	if err != nil {
		return nil, err
	}
	if !letter.Open() {
		plan.Nothing = "it is decided: " + letter.Decision
		return plan, nil
	}
	plan.Lines = append(plan.Lines, line(act.Plain, "Nothing is done about it. The ledger keeps everything."))
	if letter.Verdict.Advice != monitor.AdviseDiscard {
		plan.Lines = append(plan.Lines, line(act.Warn, "Better: %s, since %s.", letter.Verdict.Advice, letter.Verdict.Why))
	}
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		r, err := o.triage.Discard(ctx, order.Target.ID, reason)
		if err != nil {
			return nil, err
		}
		return &act.Receipt{Text: fmt.Sprintf("Dead letter %d is discarded; the ledger keeps it.", r.Letter), Audits: audits(r.Audit), Undo: reopens(r.Letter)}, nil
	})
	return plan, nil
}

// planDiscardAll plans to discard all letters that wait and match.
func (o *Operator) planDiscardAll(ctx context.Context, order act.Order) (*act.Plan, error) {
	age, err := act.OlderThan(order.Values[act.FieldOlderThan])
	if err != nil {
		return nil, err
	}
	value := func(name string) string { return strings.TrimSpace(order.Values[name]) }
	planned, err := o.triage.PlanDiscard(ctx, triage.DiscardOrder{
		Reason: value(act.FieldReason), Action: value(act.FieldAction), Worker: value(act.FieldWorker), MinAge: age,
	})
	if err != nil {
		return nil, err
	}
	plan := &act.Plan{Title: "Discard " + counted(planned.Letters, "dead letter", "dead letters"), Letters: planned.IDs()}
	if planned.Letters == 0 {
		plan.Nothing = "none that waits matches"
		return plan, nil
	}
	plan.Lines = append(plan.Lines, line(act.Plain, "%s that wait now and match, %d to %d:",
		counted(planned.Letters, "letter", "letters"), planned.First, planned.Last))
	for i, group := range planned.Groups {
		if i == maxNamed {
			plan.Lines = append(plan.Lines, line(act.Note, "  … and %d more kinds", len(planned.Groups)-i))
			break
		}
		plan.Lines = append(plan.Lines, line(act.Plain, "  %d  %s  %s, the oldest of %s", group.Count, group.Reason, group.Type,
			group.Oldest.UTC().Format("2006-01-02 15:04Z")))
	}
	if planned.More {
		plan.Lines = append(plan.Lines, line(act.Note, "More match than one act takes: these are the oldest."))
	}
	plan.Lines = append(plan.Lines, line(act.Note, "What comes later is not touched."), line(act.Plain, ""),
		line(act.Danger, "Nothing is done about them. The ledger keeps everything, but they no longer wait."))
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
