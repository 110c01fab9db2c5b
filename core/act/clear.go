package act

import (
	"context"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// ClearQueue cancels the waiting executions of queues.
const ClearQueue Kind = "queue.clear"

var _ = declare(ClearQueue, Act{
	Key: "c", Label: "clear", Help: "cancel its waiting executions",
	Fields: []Field{
		groupField(),
		{
			Name: FieldOlderThan, Label: "waiting longer than", Type: Age, Hint: "such as 10m or 2h; empty: all",
			Check: checkAge, Usage: "only executions that have waited for this time, such as 1h", HTTP: true,
		},
	},
	Command: Command{
		Group: "queue", Use: "clear ACTION", Takes: TakesQueue, Within: true,
		Short: "Cancel the executions that wait in an action's queues",
		Long: "Cancel the executions that wait in an action's queues when the command begins. Running and later\n" +
			"executions are not touched. If you interrupt it, run the same command again.",
		Example: "  attune-executor queue clear core.echo --dry-run\n" +
			"  attune-executor queue clear core.echo --older-than 1h --yes\n" +
			"  attune-executor queue clear shop.bill -p tenant=t7 --dry-run",
		DryRun: "show how many would be cancelled and do nothing", Yes: "do not ask", Asks: true, Sends: true,
		Noun: "execution",
	},
	Route: Route{Path: "actions/{ref}/queues/clear", Plans: true},
	offers: []offer{in("queue", 6, func(q *monitor.Queue, item *Item) {
		if q.Queued == 0 {
			item.Not = "no execution waits in it"
		}
		item.Touches = "the waiting executions of queue " + q.Name()
	})},
	plan: (*Operator).planClear,
})

// planClear plans to cancel the waiting executions of queues.
func (o *Operator) planClear(ctx context.Context, request Request, plan *Plan) error {
	wish := triage.ClearRequest{
		Target: queueTarget(request), OlderThan: request.age(FieldOlderThan), Only: request.Only,
	}
	planned, err := o.triage.PlanClear(ctx, wish)
	if err != nil {
		return err
	}
	plan.Data, plan.Confirm = planned, planned.Action
	plan.Title = fmt.Sprintf("Clear %s of %s", phrase.Plural(planned.Waiting, "execution", "executions"), planned)
	plan.Run = does(func(ctx context.Context, reason string) (*triage.ClearReceipt, error) {
		planned.Reason = reason
		return o.triage.Clear(ctx, planned)
	}, func(r *triage.ClearReceipt) *Receipt {
		receipt := &Receipt{
			Text: outcome(r.Cancelled, r.Planned, "cancelled", other{r.AlreadyGone, "had left the queue"},
				other{r.Left, "still wait"}),
			Partly: r.Cancelled < r.Planned, Planned: r.Planned, Done: r.Cancelled, Remaining: r.Left,
			Audits: audits(r.Audit), Sent: r.Sent,
		}
		if r.Left > 0 {
			receipt.Next = "the same again goes on where it stopped"
		}
		return receipt
	})
	which := []string{"all waiting executions"}
	if wish.OlderThan > 0 {
		which = []string{"executions waiting longer than " + wish.OlderThan.String()}
	}
	if wish.Only != nil {
		which = append(which, "of those chosen")
	}
	plan.Lines.Add(Plain, "%s are cancelled: %s in %s.", capital(strings.Join(which, " ")),
		phrase.Plural(planned.Waiting, "execution", "executions"),
		phrase.Plural(len(planned.Queues), "queue", "queues"))
	addFirst(&plan.Lines, planned.Queues, "… and %d more", func(q triage.ClearingQueue) TextLine {
		name := planned.Action
		if q.Group != "" {
			name = q.Group
		}
		return line(Plain, "  %s  %d waiting, the oldest since %s", name, q.Waiting, q.Oldest.UTC().Format("15:04:05Z"))
	})
	if planned.Waiting == 0 {
		return nothing("no execution waits")
	}
	plan.Lines.Add(Note,
		"Running executions continue. Later requests are not touched. Executions promoted meanwhile keep their slots.")
	plan.Lines.Add(Plain, "")
	plan.Lines.Add(Danger, "This cannot be undone. A retry makes new executions, at the end of the queue.")
	plan.Word = wordFor(planned.Waiting, "%s", planned.Action)
	return nil
}
