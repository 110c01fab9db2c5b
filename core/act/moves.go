package act

import (
	"context"
	"fmt"
	"strconv"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// moves are the acts that move waiting executions.
var moves = map[Kind]triage.MoveAct{
	FrontExecution: triage.MoveFront, LaneExecution: triage.MoveLane, PutBackExecutions: triage.MoveBack,
}

// planMove plans to move waiting executions, or to undo a move, whose audit is then the target.
func (o *Operator) planMove(ctx context.Context, request Request, plan *Plan) error {
	wish, to := triage.MoveRequest{Act: moves[request.Kind]}, "to the front of their lane"
	switch wish.Act {
	case triage.MoveBack:
		wish.Undoes = request.Target.ID
		to = "back to their old places"
		plan.Title = "Put back what audit " + strconv.FormatInt(wish.Undoes, 10) + " moved"
		plan.Lines.Add(Plain, "What still waits goes back to its old place and lane.")
		plan.Lines.Add(Note, "Executions that were moved again since stay where they are.")
	case triage.MoveLane:
		lane, err := triage.ParseLane(request.Values[FieldLane])
		if err != nil {
			return &InvalidError{Problems: map[string]string{FieldLane: err.Error()}}
		}
		wish.Lane, to = lane, "to the lane "+request.Values[FieldLane]
	case triage.MoveFront:
	}
	if wish.Act != triage.MoveBack {
		wish.IDs = request.IDs()
		if len(wish.IDs) > MaxTargets {
			return fmt.Errorf("%d are marked; at most %d at once", len(wish.IDs), MaxTargets)
		}
		waiting, err := o.triage.PlanMove(ctx, wish.IDs)
		if err != nil {
			return err
		}
		plan.Title = fmt.Sprintf("Move %s %s", phrase.Plural(waiting, "execution", "executions"), to)
		plan.Lines.Add(Plain, "%d chosen: %d wait in a queue, %d do not.", len(wish.IDs), waiting,
			len(wish.IDs)-waiting)
		if waiting == 0 {
			return nothing("none of them waits in a queue")
		}
		plan.Lines.Add(Note, "They keep their order among themselves. Admitted executions are not touched.")
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.MoveReceipt, error) {
		wish.Reason = reason
		return o.triage.Move(ctx, wish)
	}, func(r *triage.MoveReceipt) *Receipt {
		receipt := &Receipt{
			Text: outcome(r.Moved, r.Moved+r.Already+r.Gone, "moved "+to,
				other{r.Already, "there already or moved again since"}, other{r.Gone, "not waiting"}),
			Unchanged: r.Moved == 0, Partly: r.Gone > 0 && r.Moved > 0, Audits: audits(r.Audit),
		}
		if r.Moved > 0 && r.Act != triage.MoveBack {
			receipt.Next = "u undoes it"
			receipt.Undo = &Request{
				Kind:   PutBackExecutions,
				Target: Target{Name: "the executions of audit " + strconv.FormatInt(r.Audit, 10), ID: r.Audit},
			}
		}
		if text := delivered(r.Sent); text != "" {
			receipt.Lines.Add(Note, "%s", text)
		}
		return receipt
	})
	return nil
}
