package act

import (
	"context"
	"fmt"
	"strconv"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// The acts that move waiting executions.
const (
	FrontExecution    Kind = "execution.front"
	LaneExecution     Kind = "execution.lane"
	PutBackExecutions Kind = "execution.put-back"
)

// moveChoice ends the texts of commands that move executions.
const moveChoice = "\n\nWithout ids the flags choose: all waiting executions that match, at most 10000 at once, of the newest\n" +
	"50000. The command asks first; --dry-run counts them."

var (
	_ = declare(FrontExecution, Act{
		Key: "f", Label: "front", Help: "before the others of its lane that wait",
		Many: "before the others of their lane that wait",
		Command: Command{
			Group: "execution", Use: "front ID... | front --param NAME=VALUE...", Takes: TakesIDs,
			Short: "Let waiting executions start before the others of their lane",
			Long: "Move waiting executions before all others of their lane, in their present order. Executions that were\n" +
				"admitted are not touched. Other queues lose nothing: at a shared limit the queue keeps its turns." + moveChoice,
			Example: "  attune-executor execution front 42 43 --reason 'acme waits'\n" +
				"  attune-executor execution front --action shop.bill -p tenant=acme --dry-run\n" +
				"  attune-executor execution front --undo 17",
			Chooses: []lifecycle.Status{lifecycle.StatusRequested},
			Reason:  "the reason, for the audit", DryRun: dryChoice, Yes: yesChoice, Counts: true, Sends: true,
		},
		Route:  Route{Path: "executions/front", IDs: "ids"},
		offers: []offer{in("execution", 2, moveFits), in("task", 2, moveFits)}, plan: (*Operator).planMove, whole: true,
	})
	_ = declare(LaneExecution, Act{
		Key: "l", Label: "lane", Help: "another lane of its queue", Many: "another lane of their queues",
		Fields: []Field{{
			Name: FieldLane, Label: "lane", Value: "high", Choices: []string{"high", "normal", "low"}, Check: checkLane,
			Usage: "the lane: high, normal or low", Named: "to", HTTP: true, Required: true,
		}},
		Command: Command{
			Group: "execution", Use: "lane --to LANE ID... | lane --to LANE --param NAME=VALUE...", Takes: TakesIDs,
			Short: "Move waiting executions to another lane of their queues",
			Long: "Give waiting executions another priority. In its new lane each has the place of its arrival. Executions\n" +
				"that were admitted are not touched." + moveChoice,
			Example: "  attune-executor execution lane --to high 42 43\n" +
				"  attune-executor execution lane --to low --action shop.bill -p tenant=acme --yes\n" +
				"  attune-executor execution lane --undo 17",
			Chooses: []lifecycle.Status{lifecycle.StatusRequested},
			Reason:  "the reason, for the audit", DryRun: dryChoice, Yes: yesChoice, Counts: true, Sends: true,
		},
		Route:  Route{Path: "executions/lane", IDs: "ids"},
		offers: []offer{in("execution", 3, moveFits), in("task", 3, moveFits)}, plan: (*Operator).planMove, whole: true,
	})
	_ = declare(PutBackExecutions, Act{
		Key: "u", Label: "put back", Help: "moved executions to their old places",
		Command: Command{
			Of: []Kind{FrontExecution, LaneExecution}, Switch: "undo", Number: true,
			SwitchHelp: "put back what the move with this audit moved, as far as it still waits",
			Subject:    "the number of an audit",
		},
		Route: Route{Path: "executions/put-back", ID: "audit_id"}, plan: (*Operator).planMove, whole: true,
	})
)

func moveFits(x *monitor.Execution, item *Item) {
	if item.Not = ended(x.Status); item.Not == "" && lifecycle.Status(x.Status) != lifecycle.StatusRequested {
		item.Not = "it does not wait: " + x.Status
	}
}

func checkLane(value string) error {
	_, err := triage.ParseLane(value)
	return err
}

// planMove plans to move waiting executions, or to undo a move, whose audit is then the target.
func (o *Operator) planMove(ctx context.Context, request Request, plan *Plan) error {
	wish, to := triage.MoveRequest{Act: triage.MoveFront}, "to the front of their lane"
	switch request.Kind {
	case PutBackExecutions:
		wish.Act, wish.Undoes, to = triage.MoveBack, request.Target.ID, "back to their old places"
		plan.Title = "Put back what audit " + strconv.FormatInt(wish.Undoes, 10) + " moved"
		plan.Lines.Add(Plain, "What still waits goes back to its old place and lane.")
		plan.Lines.Add(Note, "Executions that were moved again since stay where they are.")
	case LaneExecution:
		lane, err := triage.ParseLane(request.Values[FieldLane])
		if err != nil {
			return err
		}
		wish.Act, wish.Lane, to = triage.MoveLane, lane, "to the lane "+request.Values[FieldLane]
	}
	if wish.Act != triage.MoveBack {
		wish.IDs = request.IDs()
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.MoveReceipt, error) {
		wish.Reason = reason
		return o.triage.Move(ctx, wish)
	}, func(r *triage.MoveReceipt) *Receipt { return moveReceipt(r, to) })
	if request.Direct || wish.Act == triage.MoveBack {
		return nil
	}
	if len(wish.IDs) > MaxTargets {
		return fmt.Errorf("%d are marked; at most %d at once", len(wish.IDs), MaxTargets)
	}
	waiting, err := o.triage.PlanMove(ctx, wish.IDs)
	if err != nil {
		return err
	}
	plan.Title = fmt.Sprintf("Move %s %s", phrase.Plural(waiting, "execution", "executions"), to)
	plan.Lines.Add(Plain, "%d chosen: %d wait in a queue, %d do not.", len(wish.IDs), waiting, len(wish.IDs)-waiting)
	if waiting == 0 {
		return nothing("none of them waits in a queue")
	}
	plan.Lines.Add(Note, "They keep their order among themselves. Admitted executions are not touched.")
	return nil
}

func moveReceipt(r *triage.MoveReceipt, to string) *Receipt {
	receipt := &Receipt{
		Text: outcome(r.Moved, r.Moved+r.Already+r.Gone, "moved "+to,
			other{r.Already, "there already or moved again since"}, other{r.Gone, "not waiting"}),
		Unchanged: r.Moved == 0, Partly: r.Gone > 0 && r.Moved > 0, Audits: audits(r.Audit), Sent: r.Sent,
	}
	if r.Moved > 0 && r.Act != triage.MoveBack {
		receipt.Undo = &Request{
			Kind:   PutBackExecutions,
			Target: Target{Name: "the executions of audit " + strconv.FormatInt(r.Audit, 10), ID: r.Audit},
		}
	}
	if r.Moved+r.Already == 0 {
		receipt.Problem = nothing("nothing was moved: none of them waits in a queue")
	}
	return receipt
}
