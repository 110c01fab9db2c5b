package act

import (
	"context"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
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
	_ = declare(CordonWorker, Act{
		Key: "c", Label: "cordon", Help: "give it nothing new", Many: "give them nothing new",
		Command: Command{
			Group: "workers", Use: "cordon WORKER", Takes: TakesRef, Subject: oneWorker,
			Short: "Cordon a worker: it gets no new executions, and keeps the ones it has",
			Long: "Cordon a worker: until it is uncordoned, it gets no new executions. It keeps the executions that it\n" +
				"has, started or not. A restart of the worker does not end the cordon. After exit code 0, no\n" +
				"execution is dispatched to the worker.",
			Example: "  attune-executor workers cordon worker-node-01 --reason 'its disk is full'",
			Reason:  workerReason, DryRun: dryAct,
		},
		Route: Route{Path: "workers/{id}/cordon"},
		offers: []offer{in("worker", 1, func(w workerRow, item *Item) {
			switch {
			case w.Draining:
				item.Not = "it drains"
			case w.Cordoned:
				item.Not = "it is cordoned"
			}
		})},
		plan: (*Operator).planWorker,
	})
	_ = declare(UncordonWorker, Act{
		Key: "u", Label: "uncordon", Help: "give it work again", Many: "give them work again",
		Command: Command{
			Group: "workers", Use: "uncordon WORKER", Takes: TakesRef, Subject: oneWorker,
			Short:   "Dispatch to a worker again, after a cordon or a drain",
			Example: "  attune-executor workers uncordon worker-node-01",
			Reason:  workerReason, DryRun: dryAct,
		},
		Route: Route{Path: "workers/{id}/uncordon"},
		offers: []offer{in("worker", 2, func(w workerRow, item *Item) {
			if !w.Cordoned && !w.Draining {
				item.Not = "it is not cordoned"
			}
		})},
		plan: (*Operator).planWorker,
	})
	_ = declare(DrainWorker, Act{
		Key: "d", Label: "drain", Help: "give it nothing new, let it end what it runs",
		Many: "give them nothing new, let them end what they run",
		Command: Command{
			Group: "workers", Use: "drain WORKER", Takes: TakesRef, Subject: oneWorker,
			Short: "Drain a worker: it gets no new executions, and unstarted ones move to others",
			Long: "Drain a worker: it gets no new executions, its unstarted executions move to other workers, and running\n" +
				"ones go on to their ends. Nothing moves away from a worker that does not refuse outdated\n" +
				"dispatches. Asks first, unless --yes is given.",
			Example: "  attune-executor workers drain worker-node-01 --yes --wait --timeout 10m\n" +
				"  attune-executor workers drain worker-node-01 --dry-run",
			Reason: workerReason, DryRun: dryAct, Yes: "do not ask", Asks: true,
			Wait: "wait until the worker has no executions",
		},
		Route: Route{Path: "workers/{id}/drain"},
		offers: []offer{in("worker", 3, func(w workerRow, item *Item) {
			switch {
			case w.Draining:
				item.Not = "it drains"
			case w.health == monitor.WorkerInactive:
				item.Not = "it is inactive: cordon keeps work from it when it comes back"
			}
		})},
		plan: (*Operator).planWorker,
	})
	_ = declare(ForgetWorker, Act{
		Key: "f", Label: "forget", Help: "remove its row and its queues",
		Command: Command{
			Group: "workers", Use: "forget WORKER", Takes: TakesRef, Subject: oneWorker,
			Short: "Remove a lost worker, with its queues",
			Long: "Remove the row of a worker that is inactive or sends no heartbeats, its queues and the routes of its\n" +
				"dead letters. It is refused while the worker has executions, or messages in its queue of\n" +
				"dispatches. A worker that starts again later under its name is a new one. Asks first, unless --yes\n" +
				"is given.",
			Example: "  attune-executor workers forget worker-node-01 --yes",
			Reason:  workerReason, DryRun: dryAct, Yes: "do not ask", Asks: true, Connects: true,
		},
		Route: Route{Path: "workers/{id}/forget"},
		offers: []offer{in("worker", 4, func(w workerRow, item *Item) {
			if w.health != monitor.WorkerInactive && w.health != monitor.WorkerStale {
				item.Not = "it is " + string(w.health) + ": only stale and inactive workers can be forgotten"
			}
		})},
		plan: (*Operator).planWorker,
	})
)

const (
	oneWorker    = "the id or name of a worker"
	workerReason = "the reason, shown with the worker"
	dryAct       = "show what would happen and do nothing"
)

// workerRow is a worker with its health.
type workerRow struct {
	*monitor.Worker

	health monitor.WorkerHealth
}

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
