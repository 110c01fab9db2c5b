package act

import (
	"context"
	"fmt"
	"strconv"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// The acts that move waiting executions.
const (
	FrontExecution    Kind = "execution.front"
	LaneExecution     Kind = "execution.lane"
	PutBackExecutions Kind = "execution.put-back"
)

var (
	_ = declare(FrontExecution, about{
		key: "f", label: "front", help: "before the others of its lane that wait",
		many: "before the others of their lane that wait", command: "execution front", reason: "--reason",
		plan: (*Operator).planMove, whole: true,
	})
	_ = declare(LaneExecution, about{
		key: "l", label: "lane", help: "another lane of its queue", many: "another lane of their queues",
		command: "execution lane", reason: "--reason", flags: []flag{{name: "--to", field: FieldLane}},
		plan: (*Operator).planMove, whole: true,
	})
	_ = declare(PutBackExecutions, about{
		key: "u", label: "put back", help: "moved executions to their old places", command: "execution front --undo",
		reason: "--reason", plan: (*Operator).planMove, whole: true,
	})
)

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
			return &InvalidError{Problems: map[string]string{FieldLane: err.Error()}}
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
