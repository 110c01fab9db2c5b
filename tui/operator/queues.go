package operator

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

func target(order act.Order) triage.Target {
	return triage.Target{Action: order.Target.Action, Group: order.Target.Group}
}

var words = map[act.Kind]triage.Act{
	act.PauseQueue: triage.Pause, act.ResumeQueue: triage.Resume, act.LimitQueue: triage.Limit, act.ResetQueue: triage.Reset,
}

// planWord plans to pause or resume queues, or to set their limit.
func (o *Operator) planWord(ctx context.Context, order act.Order) (*act.Plan, error) {
	asked := triage.Order{Target: target(order), Act: words[order.Kind]}
	if order.Kind == act.LimitQueue {
		limit, err := strconv.Atoi(strings.TrimSpace(order.Values[act.FieldLimit]))
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", order.Values[act.FieldLimit])
		}
		asked.Limit = limit
	}
	planned, err := o.triage.PlanWord(ctx, asked)
	if err != nil {
		return nil, err
	}
	plan := &act.Plan{Title: wordTitle(asked) + " " + asked.String()}
	plan.Lines = wordLines(asked, planned.Queues)
	if planned.AbovePolicy() {
		plan.Lines = append(plan.Lines, line(act.Plain, ""), line(act.Warn,
			"%d is above the policy's limit of %d: it overrides the policy until the limit is reset.", asked.Limit, *planned.PolicyLimit))
	}
	changed := 0
	for _, q := range planned.Queues {
		if q.Changed {
			changed++
		}
	}
	if changed == 0 && len(planned.Queues) > 0 {
		plan.Nothing = "it is so already"
		return plan, nil
	}
	plan.Word = wordFor(changed, asked.Action)
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		asked.Reason = reason
		r, err := o.triage.Say(ctx, asked)
		if err != nil {
			return nil, err
		}
		return wordReceipt(r), nil
	})
	return plan, nil
}

func wordTitle(order triage.Order) string {
	switch order.Act {
	case triage.Limit:
		return "Limit to " + strconv.Itoa(order.Limit)
	case triage.Reset:
		return "Reset the limit of"
	case triage.Pause:
		return "Pause"
	default:
		return "Resume"
	}
}

func wordLines(order triage.Order, queues []triage.QueueWord) []act.Line {
	var lines []act.Line
	waiting, over, unlimited := 0, 0, 0
	if len(queues) > 1 {
		lines = append(lines, line(act.Plain, "All %d queues of %s:", len(queues), order.Action))
	}
	for i, q := range queues {
		waiting += q.Waiting
		if q.After.Limit == nil {
			unlimited += q.Waiting
		}
		if q.After.Limit != nil && q.Active > *q.After.Limit {
			over += q.Active - *q.After.Limit
		}
		if i < maxNamed {
			lines = append(lines, wordLine(order, q))
		}
	}
	if len(queues) > maxNamed {
		lines = append(lines, line(act.Note, "… and %d more", len(queues)-maxNamed))
	}
	switch order.Act {
	case triage.Pause:
		lines = append(lines, line(act.Plain, ""),
			line(act.Warn, "Nothing is admitted until it is resumed: %s. What runs goes on.", counted(waiting, "execution waits", "executions wait")))
	case triage.Resume:
		lines = append(lines, line(act.Plain, ""), line(act.Note, "%s in the order they came.", counted(waiting, "execution goes on", "executions go on")))
		if unlimited > 1 {
			lines = append(lines, line(act.Warn, "There is no limit: %d start at once.", unlimited))
		}
	default:
		if over > 0 {
			lines = append(lines, line(act.Plain, ""),
				line(act.Note, "%s more than the new limit: nobody is evicted, fewer are admitted until they have ended.", counted(over, "runs", "run")))
		}
	}
	if len(queues) == 0 {
		lines = append(lines, line(act.Note, "Nobody has used the queue yet: it is made, so that the word holds for whoever comes."))
	}
	return lines
}

func wordLine(order triage.Order, q triage.QueueWord) act.Line {
	name := order.Action
	if q.Group != "" {
		name = q.Group
	}
	var what string
	switch {
	case !q.Changed:
		return line(act.Note, "%s  stays as it is", name)
	case order.Act == triage.Pause || order.Act == triage.Resume:
		what = stateOf(q.Before.Paused) + " → " + stateOf(q.After.Paused)
	default:
		what = "limit " + limitOf(q.Before.Limit) + " → " + limitOf(q.After.Limit)
	}
	return line(act.Plain, "%s  %s   %d running, %d waiting", name, what, q.Active, q.Waiting)
}

func stateOf(paused bool) string {
	if paused {
		return "paused"
	}
	return "open"
}

func limitOf(limit *int) string {
	if limit == nil {
		return "none"
	}
	return strconv.Itoa(*limit)
}

var wordDone = map[triage.Act]string{
	triage.Pause: "paused", triage.Resume: "resumed", triage.Limit: "limited", triage.Reset: "back to their policy's limit",
}

func wordReceipt(r *triage.WordReceipt) *act.Receipt {
	receipt := &act.Receipt{Audits: audits(r.Audit)}
	if r.Changed == 0 {
		receipt.Text, receipt.Unchanged = "Nothing changed: it was so already.", true
		return receipt
	}
	done := wordDone[r.Act]
	if r.Act == triage.Reset && r.Changed == 1 {
		done = "back to its policy's limit"
	}
	receipt.Text = sentence(counted(r.Changed, "queue is ", "queues are ") + done + ", " + counted(r.Waiting, "execution waits", "executions wait"))
	switch {
	case r.Act == triage.Pause:
		receipt.Next = "A, then u resumes"
	case r.WithRoom > 0:
		receipt.Next = counted(r.WithRoom, "queue has", "queues have") + " room now; the engine fills it within seconds"
	}
	return receipt
}

// planClear plans to cancel those who wait.
func (o *Operator) planClear(ctx context.Context, order act.Order) (*act.Plan, error) {
	age, err := act.OlderThan(order.Values[act.FieldOlderThan])
	if err != nil {
		return nil, err
	}
	planned, err := o.triage.PlanClear(ctx, triage.ClearOrder{Target: target(order), OlderThan: age})
	if err != nil {
		return nil, err
	}
	plan := &act.Plan{Title: "Clear " + planned.String()}
	which := "All that wait"
	if age > 0 {
		which = "Those that wait longer than " + age.String()
	}
	plan.Lines = append(plan.Lines, line(act.Plain, "%s now are cancelled: %s in %s.", which,
		counted(planned.Waiting, "execution", "executions"), counted(len(planned.Queues), "queue", "queues")))
	for i, q := range planned.Queues {
		if i == maxNamed {
			plan.Lines = append(plan.Lines, line(act.Note, "… and %d more", len(planned.Queues)-i))
			break
		}
		name := planned.Action
		if q.Group != "" {
			name = q.Group
		}
		plan.Lines = append(plan.Lines, line(act.Plain, "  %s  %d waiting, the oldest since %s", name, q.Waiting, q.Oldest.UTC().Format("15:04:05Z")))
	}
	if planned.Waiting == 0 {
		plan.Nothing = "nobody waits"
		return plan, nil
	}
	plan.Lines = append(plan.Lines, line(act.Note, "What runs goes on; who comes after this plan is not touched; who is promoted meanwhile keeps its slot."),
		line(act.Plain, ""), line(act.Danger, "It cannot be taken back. A retry makes new executions, at the end of the queue."))
	plan.Word = wordFor(planned.Waiting, planned.Action)
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		planned.Reason = reason
		r, err := o.triage.Clear(ctx, planned)
		return clearReceipt(r), err
	})
	return plan, nil
}

func clearReceipt(r *triage.ClearReceipt) *act.Receipt {
	if r == nil {
		return nil
	}
	receipt := &act.Receipt{
		Text:   outcome(r.Cancelled, r.Planned, "cancelled", other{r.AlreadyGone, "had left the queue"}, other{r.Left, "still wait"}),
		Partly: r.Left > 0, Audits: audits(r.Audit),
	}
	if r.Left > 0 {
		receipt.Next = "the same again goes on where it stopped"
	}
	if text := delivered(r.Sent); text != "" {
		receipt.Lines = append(receipt.Lines, line(act.Note, "%s", text))
	}
	return receipt
}

// planRepair plans to put right what counters claim.
func (o *Operator) planRepair(ctx context.Context, order act.Order) (*act.Plan, error) {
	found, err := o.triage.PlanRepair(ctx, order.Target.Action)
	if err != nil {
		return nil, err
	}
	plan := &act.Plan{Title: "Repair the queues of " + order.Target.Action}
	plan.Lines = append(plan.Lines, driftLines(found.Found)...)
	if len(found.Found) == 0 {
		plan.Nothing = "every counter is what was counted, and nothing is held by what has ended"
		return plan, nil
	}
	plan.Lines = append(plan.Lines, line(act.Plain, ""),
		line(act.Note, "They are counted again under locks and set right; queues that have room then admit. It is safe while the engine runs."))
	plan.Handle = run(func(ctx context.Context, _ string) (*act.Receipt, error) {
		r, err := o.triage.Repair(ctx, order.Target.Action)
		if r == nil {
			return nil, err
		}
		return &act.Receipt{
			Text:   fmt.Sprintf("Found %d, repaired %d, %d remain.", len(r.Found), len(r.Repaired), len(r.Remains)),
			Lines:  driftLines(r.Repaired),
			Partly: len(r.Remains) > 0, Audits: r.Audits,
		}, err
	})
	return plan, nil
}

func driftLines(list []triage.Drift) []act.Line {
	var lines []act.Line
	for i, d := range list {
		if i == maxNamed {
			return append(lines, line(act.Note, "… and %d more", len(list)-i))
		}
		lines = append(lines, line(act.Plain, "%s", d.String()))
	}
	return lines
}
