package act

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

func target(request Request) triage.Target {
	return triage.Target{Action: request.Target.Action, Group: request.Target.Group}
}

// overrides are the acts that change overrides of queues, with the title of the plan and the participles of the
// receipt.
var overrides = map[Kind]struct {
	act              triage.Act
	title, one, many string
}{
	PauseQueue:  {triage.Pause, "Pause", "paused", "paused"},
	ResumeQueue: {triage.Resume, "Resume", "resumed", "resumed"},
	LimitQueue:  {triage.Limit, "Limit to %d", "limited", "limited"},
	ResetQueue:  {triage.Reset, "Reset the limit of", "back to its policy's limit", "back to their policy's limit"},
}

// planOverride plans to pause or resume queues, or to change their limit.
func (o *Operator) planOverride(ctx context.Context, request Request, plan *Plan) error {
	of := overrides[request.Kind]
	asked, title := triage.Override{Target: target(request), Act: of.act}, of.title
	if request.Kind == LimitQueue {
		limit, err := strconv.Atoi(strings.TrimSpace(request.Values[FieldLimit]))
		if err != nil {
			return fmt.Errorf("%q is not a number", request.Values[FieldLimit])
		}
		asked.Limit, title = limit, fmt.Sprintf(title, limit)
	}
	planned, err := o.triage.PlanOverride(ctx, asked)
	if err != nil {
		return err
	}
	plan.Title = title + " " + asked.String()
	changed := addOverride(&plan.Lines, asked, planned.Queues)
	if planned.AbovePolicy() {
		plan.Lines.Add(Plain, "")
		plan.Lines.Add(Warn,
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
	}, func(r *triage.OverrideReceipt) *Receipt {
		receipt := &Receipt{Audits: audits(r.Audit)}
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

// addOverride describes the change of every queue. It returns how many queues change.
func addOverride(lines *TextLines, override triage.Override, queues []triage.QueueChange) (changed int) {
	if len(queues) > 1 {
		lines.Add(Plain, "All %d queues of %s:", len(queues), override.Action)
	}
	addFirst(lines, queues, "… and %d more",
		func(q triage.QueueChange) TextLine { return overrideLine(override, q) })
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
	switch override.Act {
	case triage.Pause:
		lines.Add(Plain, "")
		lines.Add(Warn, "Nothing is admitted until it is resumed: %s. Running executions continue.",
			phrase.Plural(waiting, "execution waits", "executions wait"))
	case triage.Resume:
		lines.Add(Plain, "")
		lines.Add(Note, "%s in the order they came.",
			phrase.Plural(waiting, "execution goes on", "executions go on"))
		if unlimited > 1 {
			lines.Add(Warn, "There is no limit: %d start at once.", unlimited)
		}
	default:
		if over > 0 {
			lines.Add(Plain, "")
			lines.Add(Note, "%s above the new limit: running executions continue, "+
				"and fewer are admitted until they end.",
				phrase.Plural(over, "runs", "run"))
		}
	}
	if len(queues) == 0 {
		lines.Add(Note, "The queue does not exist yet: the change creates it and applies to later executions.")
	}
	return changed
}

func overrideLine(override triage.Override, q triage.QueueChange) TextLine {
	name := override.Action
	if q.Group != "" {
		name = q.Group
	}
	var what string
	switch {
	case !q.Changed:
		return line(Note, "%s  stays as it is", name)
	case override.Act == triage.Pause || override.Act == triage.Resume:
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
	return line(Plain, "%s  %s   %d running, %d waiting", name, what, q.Active, q.Waiting)
}

// planClear plans to cancel the waiting executions of queues.
func (o *Operator) planClear(ctx context.Context, request Request, plan *Plan) error {
	age, err := OlderThan(request.Values[FieldOlderThan])
	if err != nil {
		return err
	}
	planned, err := o.triage.PlanClear(ctx, triage.ClearRequest{Target: target(request), OlderThan: age})
	if err != nil {
		return err
	}
	plan.Title = "Clear " + planned.String()
	which := "All waiting executions"
	if age > 0 {
		which = "Executions waiting longer than " + age.String()
	}
	plan.Lines.Add(Plain, "%s are cancelled: %s in %s.", which,
		phrase.Plural(planned.Waiting, "execution", "executions"),
		phrase.Plural(len(planned.Queues), "queue", "queues"))
	addFirst(&plan.Lines, planned.Queues, "… and %d more", func(q triage.ClearingQueue) TextLine {
		name := planned.Action
		if q.Group != "" {
			name = q.Group
		}
		return line(Plain, "  %s  %d waiting, the oldest since %s", name, q.Waiting,
			q.Oldest.UTC().Format("15:04:05Z"))
	})
	if planned.Waiting == 0 {
		return nothing("no execution waits")
	}
	plan.Lines.Add(Note,
		"Running executions continue. Later requests are not touched. Executions promoted meanwhile keep their slots.")
	plan.Lines.Add(Plain, "")
	plan.Lines.Add(Danger, "This cannot be undone. A retry makes new executions, at the end of the queue.")
	plan.Word = wordFor(planned.Waiting, "%s", planned.Action)
	plan.Run = does(func(ctx context.Context, reason string) (*triage.ClearReceipt, error) {
		planned.Reason = reason
		return o.triage.Clear(ctx, planned)
	}, func(r *triage.ClearReceipt) *Receipt {
		receipt := &Receipt{
			Text: outcome(r.Cancelled, r.Planned, "cancelled", other{r.AlreadyGone, "had left the queue"},
				other{r.Left, "still wait"}),
			Partly: r.Cancelled < r.Planned, Audits: audits(r.Audit),
		}
		if r.Left > 0 {
			receipt.Next = "the same again goes on where it stopped"
		}
		if text := delivered(r.Sent); text != "" {
			receipt.Lines.Add(Note, "%s", text)
		}
		return receipt
	})
	return nil
}

// planRepair plans to correct the counters of queues.
func (o *Operator) planRepair(ctx context.Context, request Request, plan *Plan) error {
	found, err := o.triage.PlanRepair(ctx, request.Target.Action)
	if err != nil {
		return err
	}
	plan.Title = "Repair the queues of " + request.Target.Action
	addDrifts(&plan.Lines, found.Found)
	if len(found.Found) == 0 {
		return nothing("all counters are correct, and no ended execution holds a slot")
	}
	plan.Lines.Add(Plain, "")
	plan.Lines.Add(Note,
		"The counters are counted again under locks and corrected; queues with free slots then admit. "+
			"It is safe while the engine runs.")
	plan.Run = does(func(ctx context.Context, reason string) (*triage.RepairReceipt, error) {
		return o.triage.Repair(ctx, request.Target.Action, reason)
	}, func(r *triage.RepairReceipt) *Receipt {
		receipt := &Receipt{
			Text:   fmt.Sprintf("Found %d, repaired %d, %d remain.", len(r.Found), len(r.Repaired), len(r.Remains)),
			Partly: len(r.Remains) > 0, Audits: r.Audits,
		}
		addDrifts(&receipt.Lines, r.Repaired)
		return receipt
	})
	return nil
}

func addDrifts(lines *TextLines, list []triage.Drift) {
	addFirst(lines, list, "… and %d more", func(d triage.Drift) TextLine {
		return line(Plain, "%s", d.String())
	})
}
