package act

import (
	"cmp"
	"context"
	"fmt"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// RepairQueue corrects the counters of queues.
const RepairQueue Kind = "queue.repair"

var _ = declare(RepairQueue, Act{
	Key: "f", Label: "repair", Help: "recount slots and fix wrong counters",
	Fields: []Field{{Name: FieldAction, HTTP: true}},
	Command: Command{
		Group: "queue", Use: "repair [ACTION]", Takes: TakesAction,
		Short: "Compare the counters of queues with the facts, and correct them",
		Long: "Compare the counters of queues, workers and shared limits with the executions that hold slots or\n" +
			"wait, and correct them. Release the slots of ended and deleted executions. Exits with 0 only if\n" +
			"nothing is wrong any more.",
		Example: "  attune-executor queue repair --dry-run\n  attune-executor queue repair core.echo",
		DryRun:  "show what is wrong and do nothing", Sends: true, Noun: "difference",
	},
	Route: Route{Path: "queues/repair", Plans: true},
	offers: []offer{in("queue", 5, func(q *monitor.Queue, item *Item) {
		item.Touches = "all queues of " + q.ActionRef
	})},
	plan: (*Operator).planRepair,
})

// planRepair plans to correct the counters of the queues of an action, or without one of all.
func (o *Operator) planRepair(ctx context.Context, request Request, plan *Plan) error {
	action := cmp.Or(request.Target.Action, request.value(FieldAction))
	plan.Title = "Repair the queues of " + action
	if action == "" {
		plan.Title = "Repair all queues"
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.RepairReceipt, error) {
		return o.triage.Repair(ctx, action, reason)
	}, func(r *triage.RepairReceipt) *Receipt {
		receipt := &Receipt{
			Text:   fmt.Sprintf("Found %d, repaired %d, %d remain.", len(r.Found), len(r.Repaired), len(r.Remains)),
			Partly: len(r.Remains) > 0, Audits: r.Audits, Sent: r.Sent, Planned: len(r.Found),
			Remaining: len(r.Found) - len(r.Repaired),
		}
		addDrifts(&receipt.Lines, r.Repaired)
		if len(r.Remains) > 0 {
			receipt.Problem = &Problem{
				Kind:    Incomplete,
				Text:    "repaired, except " + phrase.Plural(len(r.Remains), "difference", "differences"),
				Instead: "run it again, and look at the log of the engine if this persists",
			}
		}
		return receipt
	})
	if request.Direct {
		return nil
	}
	found, err := o.triage.PlanRepair(ctx, action)
	if err != nil {
		return err
	}
	plan.Data = found
	addDrifts(&plan.Lines, found.Found)
	if len(found.Found) == 0 {
		return nothing("all counters are correct, and no ended execution holds a slot")
	}
	plan.Wrong = &Problem{
		Kind: Incomplete, Text: phrase.Plural(len(found.Found), "difference", "differences"),
		Instead: "`attune-executor queue repair` corrects the counters",
	}
	plan.Lines.Add(Plain, "")
	plan.Lines.Add(Note, "The counters are counted again under locks and corrected; queues with free slots then admit. "+
		"It is safe while the engine runs.")
	return nil
}

func addDrifts(lines *TextLines, list []triage.Drift) {
	addFirst(lines, list, "… and %d more", func(d triage.Drift) TextLine { return line(Plain, "%s", d.String()) })
}
