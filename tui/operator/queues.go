package operator

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

func target(order act.Order) triage.Target {
	return triage.Target{Action: order.Target.Action, Group: order.Target.Group}
}

// overrides are the acts that change overrides of queues, with the title of the plan and the participles of the
// receipt.
var overrides = map[act.Kind]struct {
	act              triage.Act
	title, one, many string
}{
	act.PauseQueue:  {triage.Pause, "Pause", "paused", "paused"},
	act.ResumeQueue: {triage.Resume, "Resume", "resumed", "resumed"},
	act.LimitQueue:  {triage.Limit, "Limit to %d", "limited", "limited"},
	act.ResetQueue:  {triage.Reset, "Reset the limit of", "back to its policy's limit", "back to their policy's limit"},
}

// planOverride plans to pause or resume queues, or to change their limit.
func (o *Operator) planOverride(ctx context.Context, order act.Order, plan *act.Plan) error {
	of := overrides[order.Kind]
	asked, title := triage.Override{Target: target(order), Act: of.act}, of.title
	if order.Kind == act.LimitQueue {
		limit, err := strconv.Atoi(strings.TrimSpace(order.Values[act.FieldLimit]))
		if err != nil {
			return fmt.Errorf("%q is not a number", order.Values[act.FieldLimit])
		}
		asked.Limit, title = limit, fmt.Sprintf(title, limit)
	}
	planned, err := o.triage.PlanOverride(ctx, asked)
	if err != nil {
		return err
	}
	plan.Title = title + " " + asked.String()
	changed := sayOverride(&plan.Lines, asked, planned.Queues)
	if planned.AbovePolicy() {
		plan.Lines.Say(act.Plain, "")
		plan.Lines.Say(act.Warn,
			"%d is above the policy's limit of %d: it overrides the policy until the limit is reset.",
			asked.Limit, *planned.PolicyLimit)
	}
	if changed == 0 && len(planned.Queues) > 0 {
		return nothing("nothing would change")
	}
	plan.Word = wordFor(changed, "%s", asked.Action)
	plan.Run = does(func(ctx context.Context, reason string) (*triage.OverrideReceipt, error) {
		asked.Reason = reason
		return o.triage.Override(ctx, asked)
	}, func(r *triage.OverrideReceipt) *act.Receipt {
		receipt := &act.Receipt{Audits: audits(r.Audit)}
		if r.Changed == 0 {
			receipt.Text, receipt.Unchanged = "Nothing changed: it was so already.", true
			return receipt
		}
		receipt.Text = phrase.Plural(r.Changed, "queue is "+of.one, "queues are "+of.many) + ", " +
			phrase.Plural(r.Waiting, "execution waits", "executions wait") + "."
		switch {
		case r.Act == triage.Pause:
			receipt.Next = "A, then u resumes"
		case r.WithRoom > 0:
			receipt.Next = phrase.Plural(r.WithRoom, "queue has", "queues have") +
				" room now; the engine fills it within seconds"
		}
		return receipt
	})
	return nil
}

// sayOverride describes the change of every queue. It returns how many queues change.
func sayOverride(lines *act.Lines, order triage.Override, queues []triage.QueueChange) (changed int) {
	if len(queues) > 1 {
		lines.Say(act.Plain, "All %d queues of %s:", len(queues), order.Action)
	}
	sayFirst(lines, queues, "… and %d more", func(q triage.QueueChange) act.Line { return overrideLine(order, q) })
	waiting, over, unlimited := 0, 0, 0
	for _, q := range queues {
		waiting += q.Waiting
		if q.After.Limit == nil {
			unlimited += q.Waiting
		} else {
			over += max(q.Active-*q.After.Limit, 0)
		}
		if q.Changed {
			changed++
		}
	}
	switch order.Act {
	case triage.Pause:
		lines.Say(act.Plain, "")
		lines.Say(act.Warn, "Nothing is admitted until it is resumed: %s. Running executions continue.",
			phrase.Plural(waiting, "execution waits", "executions wait"))
	case triage.Resume:
		lines.Say(act.Plain, "")
		lines.Say(act.Note, "%s in the order they came.",
			phrase.Plural(waiting, "execution goes on", "executions go on"))
		if unlimited > 1 {
			lines.Say(act.Warn, "There is no limit: %d start at once.", unlimited)
		}
	default:
		if over > 0 {
			lines.Say(act.Plain, "")
			lines.Say(act.Note, "%s above the new limit: running executions continue, "+
				"and fewer are admitted until they end.",
				phrase.Plural(over, "runs", "run"))
		}
	}
	if len(queues) == 0 {
		lines.Say(act.Note, "The queue does not exist yet: the change creates it and applies to later executions.")
	}
	return changed
}

func overrideLine(order triage.Override, q triage.QueueChange) act.Line {
	name := order.Action
	if q.Group != "" {
		name = q.Group
	}
	var what string
	switch {
	case !q.Changed:
		return line(act.Note, "%s  stays as it is", name)
	case order.Act == triage.Pause || order.Act == triage.Resume:
		state := map[bool]string{true: "paused", false: "open"}
		what = state[q.Before.Paused] + " → " + state[q.After.Paused]
	default:
		limit := func(n *int) string {
			if n == nil {
				return "none"
			}
			return strconv.Itoa(*n)
		}
		what = "limit " + limit(q.Before.Limit) + " → " + limit(q.After.Limit)
	}
	return line(act.Plain, "%s  %s   %d running, %d waiting", name, what, q.Active, q.Waiting)
}

// planClear plans to cancel the waiting executions of queues.
func (o *Operator) planClear(ctx context.Context, order act.Order, plan *act.Plan) error {
	age, err := act.OlderThan(order.Values[act.FieldOlderThan])
	if err != nil {
		return err
	}
	planned, err := o.triage.PlanClear(ctx, triage.ClearOrder{Target: target(order), OlderThan: age})
	if err != nil {
		return err
	}
	plan.Title = "Clear " + planned.String()
	which := "All waiting executions"
	if age > 0 {
		which = "Executions waiting longer than " + age.String()
	}
	plan.Lines.Say(act.Plain, "%s are cancelled: %s in %s.", which,
		phrase.Plural(planned.Waiting, "execution", "executions"),
		phrase.Plural(len(planned.Queues), "queue", "queues"))
	sayFirst(&plan.Lines, planned.Queues, "… and %d more", func(q triage.ClearingQueue) act.Line {
		name := planned.Action
		if q.Group != "" {
			name = q.Group
		}
		return line(act.Plain, "  %s  %d waiting, the oldest since %s", name, q.Waiting,
			q.Oldest.UTC().Format("15:04:05Z"))
	})
	if planned.Waiting == 0 {
		return nothing("no execution waits")
	}
	plan.Lines.Say(act.Note,
		"Running executions continue. Later requests are not touched. Executions promoted meanwhile keep their slots.")
	plan.Lines.Say(act.Plain, "")
	plan.Lines.Say(act.Danger, "This cannot be undone. A retry makes new executions, at the end of the queue.")
	plan.Word = wordFor(planned.Waiting, "%s", planned.Action)
	plan.Run = does(func(ctx context.Context, reason string) (*triage.ClearReceipt, error) {
		planned.Reason = reason
		return o.triage.Clear(ctx, planned)
	}, func(r *triage.ClearReceipt) *act.Receipt {
		receipt := &act.Receipt{
			Text: outcome(r.Cancelled, r.Planned, "cancelled", other{r.AlreadyGone, "had left the queue"},
				other{r.Left, "still wait"}),
			Partly: r.Left > 0, Audits: audits(r.Audit),
		}
		if r.Left > 0 {
			receipt.Next = "the same again goes on where it stopped"
		}
		if text := delivered(r.Sent); text != "" {
			receipt.Lines.Say(act.Note, "%s", text)
		}
		return receipt
	})
	return nil
}

// planRepair plans to correct the counters of queues.
func (o *Operator) planRepair(ctx context.Context, order act.Order, plan *act.Plan) error {
	found, err := o.triage.PlanRepair(ctx, order.Target.Action)
	if err != nil {
		return err
	}
	plan.Title = "Repair the queues of " + order.Target.Action
	sayDrifts(&plan.Lines, found.Found)
	if len(found.Found) == 0 {
		return nothing("all counters are correct, and no ended execution holds a slot")
	}
	plan.Lines.Say(act.Plain, "")
	plan.Lines.Say(act.Note,
		"The counters are counted again under locks and corrected; queues with free slots then admit. "+
			"It is safe while the engine runs.")
	plan.Run = does(func(ctx context.Context, _ string) (*triage.RepairReceipt, error) {
		return o.triage.Repair(ctx, order.Target.Action)
	}, func(r *triage.RepairReceipt) *act.Receipt {
		receipt := &act.Receipt{
			Text:   fmt.Sprintf("Found %d, repaired %d, %d remain.", len(r.Found), len(r.Repaired), len(r.Remains)),
			Partly: len(r.Remains) > 0, Audits: r.Audits,
		}
		sayDrifts(&receipt.Lines, r.Repaired)
		return receipt
	})
	return nil
}

func sayDrifts(lines *act.Lines, list []triage.Drift) {
	sayFirst(lines, list, "… and %d more", func(d triage.Drift) act.Line { return line(act.Plain, "%s", d.String()) })
}
