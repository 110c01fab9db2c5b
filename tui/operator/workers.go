package operator

import (
	"context"
	"fmt"
	"strconv"

	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

var workerActs = map[act.Kind]triage.WorkerAct{
	act.CordonWorker: triage.CordonWorker, act.UncordonWorker: triage.UncordonWorker,
	act.DrainWorker: triage.DrainWorker, act.ForgetWorker: triage.ForgetWorker,
}

// planWorker plans an act on a worker.
func (o *Operator) planWorker(ctx context.Context, order act.Order) (*act.Plan, error) {
	asked := triage.WorkerOrder{Act: workerActs[order.Kind], Worker: strconv.FormatInt(order.Target.ID, 10)}
	planned, err := o.triage.PlanWorker(ctx, asked)
	if err != nil {
		return nil, err
	}
	now := &planned.Now
	plan := &act.Plan{Title: sentenceCase(string(asked.Act)) + " worker " + now.Name}
	if !planned.Changes {
		plan.Nothing = "it " + planned.Says
		return plan, nil
	}
	plan.Lines = append(plan.Lines, line(act.Plain, "%s", sentence("it "+planned.Says)),
		line(act.Note, "%s", hasNow(now.Running, now.Unstarted)))
	for _, effect := range planned.Effects {
		plan.Lines = append(plan.Lines, line(act.Plain, "%s", effect))
	}
	for i, taker := range planned.Takers {
		if i == maxNamed {
			plan.Lines = append(plan.Lines, line(act.Note, "… and %d more workers", len(planned.Takers)-i))
			break
		}
		plan.Lines = append(plan.Lines, line(act.Note, "  %s can take %d of them", taker.Name, taker.Executions))
	}
	if planned.Alone > 0 || len(planned.Last) > 0 {
		plan.Word = now.Name // work would wait or fail for want of it
	}
	if asked.Act == triage.ForgetWorker {
		plan.Lines = append(plan.Lines, line(act.Plain, ""),
			line(act.Danger, "It cannot be taken back. A worker that starts anew under this name registers again."))
		plan.Word = now.Name
	}
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		asked.Reason = reason
		desk, stop, err := o.workerDesk(ctx, asked.Act)
		if err != nil {
			return nil, err
		}
		defer stop()
		r, err := desk.ActOnWorker(ctx, asked)
		return workerReceipt(r), err
	})
	return plan, nil
}

// workerDesk is the triage for an act: forgetting needs the broker, which has the
// worker's queues.
func (o *Operator) workerDesk(ctx context.Context, which triage.WorkerAct) (*triage.Triage, func(), error) {
	if which != triage.ForgetWorker {
		return o.triage, func() {}, nil
	}
	if o.cfg.WithBroker == nil {
		return nil, nil, triage.ErrNoBroker
	}
	return o.cfg.WithBroker(ctx)
}

// hasNow says what a worker has.
func hasNow(running, waiting int64) string {
	text := "It runs nothing"
	if running > 0 {
		text = "It runs " + counted(running, "execution", "executions")
	}
	if waiting == 0 {
		return text + "; none waits at it."
	}
	return text + "; " + counted(waiting, "waits at it and has not started.", "wait at it and have not started.")
}

func workerReceipt(r *triage.WorkerReceipt) *act.Receipt {
	if r == nil {
		return nil
	}
	receipt := &act.Receipt{Text: sentence("worker " + r.Before.Name + " " + r.Says), Audits: audits(r.Audit), Unchanged: !r.Changed}
	switch {
	case r.Act == triage.ForgetWorker:
		if r.Discarded > 0 {
			receipt.Lines = append(receipt.Lines, line(act.Note, "%s went with its queues",
				counted(r.Discarded, "notice or cancel", "notices and cancels")))
		}
		return receipt
	case r.Act == triage.UncordonWorker:
		return receipt
	case !r.Settled:
		receipt.Lines = append(receipt.Lines, line(act.Warn, "What was being decided may still be handed to it, for some seconds."))
	}
	receipt.Lines = append(receipt.Lines, line(act.Plain, "%s", hasNow(r.After.Running, r.After.Unstarted)))
	receipt.Next = "A, then u gives it work again"
	if r.Act == triage.DrainWorker && r.After.Running > 0 {
		receipt.Next = fmt.Sprintf("it is empty when %s; then its process can be stopped", counted(r.After.Running, "execution has ended", "executions have ended"))
	}
	return receipt
}

func sentenceCase(word string) string {
	text := sentence(word)
	return text[:len(text)-1]
}
