package act

import (
	"context"
	"strconv"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// The acts on workers.
const (
	CordonWorker   Kind = "worker.cordon"
	UncordonWorker Kind = "worker.uncordon"
	DrainWorker    Kind = "worker.drain"
	ForgetWorker   Kind = "worker.forget"
)

var (
	_ = declare(CordonWorker, about{
		key: "c", label: "cordon", help: "give it nothing new", many: "give them nothing new",
		command: "workers cordon", reason: "--reason", plan: (*Operator).planWorker,
	})
	_ = declare(UncordonWorker, about{
		key: "u", label: "uncordon", help: "give it work again", many: "give them work again",
		command: "workers uncordon", reason: "--reason", plan: (*Operator).planWorker,
	})
	_ = declare(DrainWorker, about{
		key: "d", label: "drain", help: "give it nothing new, let it end what it runs",
		many: "give them nothing new, let them end what they run", command: "workers drain", reason: "--reason",
		plan: (*Operator).planWorker,
	})
	_ = declare(ForgetWorker, about{
		key: "f", label: "forget", help: "remove its row and its queues", command: "workers forget",
		reason: "--reason", plan: (*Operator).planWorker,
	})
)

// planWorker plans an act on a worker, by its id, or by its name or id as the operator wrote it.
func (o *Operator) planWorker(ctx context.Context, request Request, plan *Plan) error {
	asked := triage.WorkerRequest{Act: triage.WorkerAct(request.Kind.Verb()), Worker: request.Target.Ref}
	if request.Target.ID != 0 {
		asked.Worker, asked.ByID = strconv.FormatInt(request.Target.ID, 10), true
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.WorkerReceipt, error) {
		asked.Reason = reason
		if asked.Act != triage.ForgetWorker {
			return o.triage.ActOnWorker(ctx, asked)
		}
		return withBroker(ctx, o,
			func(connected *triage.Triage) (*triage.WorkerReceipt, error) { // the worker's queues are deleted
				return connected.ActOnWorker(ctx, asked)
			})
	}, workerReceipt)
	if request.Direct {
		return nil
	}
	asked.Reason = request.Reason
	planned, err := o.triage.PlanWorker(ctx, asked)
	if err != nil {
		return err
	}
	plan.Data = planned
	now := &planned.Now
	plan.Title = capital(request.Kind.Verb()) + " worker " + now.Name
	switch {
	case planned.Refused:
		return refuse(Refused, "worker %s %s", now.Name, planned.Says)
	case !planned.Changes:
		return nothing("it " + planned.Says)
	}
	plan.Lines.Add(Plain, "%s", sentence("it "+planned.Says))
	plan.Lines.Add(Note, "%s", hasNow(now.Running, now.Unstarted))
	for _, effect := range planned.Effects {
		plan.Lines.Add(Plain, "%s", effect)
	}
	addFirst(&plan.Lines, planned.Takers, "… and %d more", func(t triage.Taker) TextLine {
		return line(Note, "  %s can take %d of them", t.Name, t.Executions)
	})
	if planned.Alone > 0 || len(planned.Last) > 0 || asked.Act == triage.ForgetWorker {
		plan.Word = now.Name // executions would wait or fail without this worker, or the act cannot be undone
	}
	if asked.Act == triage.ForgetWorker {
		plan.Lines.Add(Plain, "")
		plan.Lines.Add(Danger, "This cannot be undone. A worker that starts again under this name registers again.")
	}
	return nil
}

func hasNow(running, waiting int64) string {
	text := "It runs nothing"
	if running > 0 {
		text = "It runs " + phrase.Plural(running, "execution", "executions")
	}
	if waiting == 0 {
		return text + "; none waits at it."
	}
	return text + "; " + phrase.Plural(waiting, "waits at it and has not started.", "wait at it and have not started.")
}

func workerReceipt(r *triage.WorkerReceipt) *Receipt {
	receipt := &Receipt{
		Text: sentence("worker " + r.Before.Name + " " + r.Says), Audits: audits(r.Audit), Unchanged: !r.Changed,
	}
	switch {
	case r.Act == triage.ForgetWorker:
		if r.Discarded > 0 {
			receipt.Lines.Add(Note, "%s went with its queues",
				phrase.Plural(r.Discarded, "notice or cancel", "notices and cancels"))
		}
		return receipt
	case r.Act == triage.UncordonWorker:
		return receipt
	case !r.Settled:
		receipt.Lines.Add(Warn, "Executions that are being assigned may still reach it for some seconds.")
	}
	receipt.Lines.Add(Plain, "%s", hasNow(r.After.Running, r.After.Unstarted))
	receipt.Reverse = UncordonWorker
	if r.Act == triage.DrainWorker && r.After.Running > 0 {
		receipt.Next = "it is empty when " +
			phrase.Plural(r.After.Running, "execution has ended", "executions have ended") +
			"; then its process can be stopped"
	}
	return receipt
}
