package act

import (
	"cmp"
	"context"
	"math"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// The overrides of queues.
const (
	PauseQueue  Kind = "queue.pause"
	ResumeQueue Kind = "queue.resume"
	LimitQueue  Kind = "queue.limit"
	ResetQueue  Kind = "queue.reset"
)

var (
	_ = declare(PauseQueue, Act{
		Key: "p", Label: "pause", Help: "admit nothing until it is resumed", Many: "admit nothing until they are resumed",
		Fields: []Field{groupField()},
		Command: Command{
			Group: "queue", Use: "pause ACTION", Takes: TakesQueue,
			Short: "Pause an action's queues: they admit nothing until they are resumed",
			Long: "Pause an action's queues: they admit nothing until they are resumed. Running executions go on,\n" +
				"waiting executions keep their places, and new ones wait behind them. If a queue is paused already, only the\n" +
				"reason changes.",
			Example: "  attune-executor queue pause core.echo --reason 'the service behind it is down'\n" +
				"  attune-executor queue pause deploy.rollout --group '{\"region\":\"eu\"}'",
			Reason: "the reason, shown with the queue", Sends: true,
		},
		Route: Route{Path: "actions/{ref}/queues/pause"},
		offers: []offer{in("queue", 1, func(q *monitor.Queue, item *Item) {
			if q.Paused {
				item.Not = "it is paused"
			}
		})},
		plan: (*Operator).planOverride,
	})
	_ = declare(ResumeQueue, Act{
		Key: "u", Label: "resume", Help: "admit again, in the same order", Many: "admit again, in the same order",
		Fields: []Field{groupField()},
		Command: Command{
			Group: "queue", Use: "resume ACTION", Takes: TakesQueue,
			Short:   "Resume an action's queues, which keep the order of their executions",
			Example: "  attune-executor queue resume core.echo", Sends: true,
		},
		Route: Route{Path: "actions/{ref}/queues/resume"},
		offers: []offer{in("queue", 2, func(q *monitor.Queue, item *Item) {
			if !q.Paused {
				item.Not = "it is not paused"
			}
		})},
		plan: (*Operator).planOverride,
	})
	_ = declare(LimitQueue, Act{
		Key: "l", Label: "limit", Help: "another limit than the policy's",
		Fields: []Field{groupField(), {
			Name: FieldLimit, Label: "at most at once", Type: Number, Argument: true, HTTP: true, Required: true,
			// The database stores 32 bits, and the largest value means no limit.
			Check: numbered("a limit", math.MaxInt32-1, false),
		}},
		Command: Command{
			Group: "queue", Use: "limit ACTION N | limit ACTION --reset", Takes: TakesQueue,
			Subject: "the ref of an action and a number, or --reset",
			Short:   "Override the limit of an action's policy",
			Long: "Override how many executions of an action may run at once, in each of its queues, until --reset. A\n" +
				"lower limit ends no running execution; a higher one is filled at once.",
			Example: "  attune-executor queue limit core.echo 2\n  attune-executor queue limit core.echo --reset",
			Sends:   true,
		},
		Route: Route{Path: "actions/{ref}/queues/limit"},
		offers: []offer{in("queue", 3, func(q *monitor.Queue, item *Item) {
			field := &item.Fields[0]
			if field.Hint = "a number, 1 or more"; q.Limit != nil {
				field.Value = strconv.FormatInt(*q.Limit, 10)
			}
			if from := q.LimitFrom; from.Threshold != nil {
				field.Hint += "; the policy " + from.Policy + " says " + strconv.FormatInt(*from.Threshold, 10)
			}
		})},
		plan: (*Operator).planOverride,
	})
	_ = declare(ResetQueue, Act{
		Key: "o", Label: "reset limit", Help: "the policy's limit again", Fields: []Field{groupField()},
		Command: Command{
			Of: []Kind{LimitQueue}, Switch: "reset", SwitchHelp: "return to the policy's limit",
			Subject: "the ref of an action",
		},
		Route: Route{Path: "actions/{ref}/queues/reset"},
		offers: []offer{in("queue", 4, func(q *monitor.Queue, item *Item) {
			if q.LimitFrom.Kind != monitor.LimitOverride {
				item.Not = "its limit was not set by hand"
			}
		})},
		plan: (*Operator).planOverride,
	})
)

// groupField is the group of an act on queues, which the row of a menu says itself.
func groupField() Field {
	return Field{
		Name: FieldGroup, HTTP: true,
		Usage: `only the queue of this group, such as '{"tenant":"a"}'; default all queues of the action`,
	}
}

// overrides are the acts that change overrides of queues, with the participles of the receipt.
var overrides = map[Kind]struct {
	act       triage.Act
	one, many string
}{
	PauseQueue:  {triage.Pause, "paused", "paused"},
	ResumeQueue: {triage.Resume, "resumed", "resumed"},
	LimitQueue:  {triage.Limit, "limited", "limited"},
	ResetQueue:  {triage.Reset, "back to its policy's limit", "back to their policy's limit"},
}

// queueTarget is the target of an act on queues.
func queueTarget(request Request) triage.Target {
	return triage.Target{
		Action: request.Target.Action, Group: cmp.Or(request.Target.Group, request.value(FieldGroup)),
	}
}

// planOverride plans to pause or resume queues, or to change their limit.
func (o *Operator) planOverride(ctx context.Context, request Request, plan *Plan) error {
	asked, title := triage.Override{Target: queueTarget(request), Act: overrides[request.Kind].act}, request.Kind.Verb()
	switch request.Kind {
	case LimitQueue:
		asked.Limit, title = int(request.number(FieldLimit)), "limit to "+request.value(FieldLimit)
	case ResetQueue:
		title = "reset the limit of"
	}
	plan.Title = capital(title) + " " + asked.String()
	plan.Run = does(func(ctx context.Context, reason string) (*triage.OverrideReceipt, error) {
		asked.Reason = reason
		return o.triage.Override(ctx, asked)
	}, func(r *triage.OverrideReceipt) *Receipt { return overrideReceipt(request.Kind, r) })
	if request.Direct {
		return nil
	}
	planned, err := o.triage.PlanOverride(ctx, asked)
	if err != nil {
		return err
	}
	changed := addOverride(&plan.Lines, asked, planned.Queues)
	if planned.AbovePolicy() {
		plan.Lines.Add(Plain, "")
		plan.Lines.Add(Warn, "%d is above the policy's limit of %d: it overrides the policy until the limit is reset.",
			asked.Limit, *planned.PolicyLimit)
	}
	if changed == 0 && len(planned.Queues) > 0 {
		return nothing("nothing would change")
	}
	plan.Word = wordFor(changed, "%s", asked.Action)
	return nil
}

func overrideReceipt(kind Kind, r *triage.OverrideReceipt) *Receipt {
	receipt, of := &Receipt{Audits: audits(r.Audit), Sent: r.Sent}, overrides[kind]
	switch {
	case len(r.Queues) == 0:
		receipt.Text, receipt.Unchanged = "Nothing changed: "+r.Target.String()+" has no queue yet.", true
		return receipt
	case r.Changed == 0:
		receipt.Text, receipt.Unchanged = "Nothing changed: it was so already.", true
		return receipt
	}
	receipt.Text = phrase.Plural(r.Changed, "queue is "+of.one, "queues are "+of.many) + ", " +
		phrase.Plural(r.Waiting, "execution waits", "executions wait") + "."
	if r.ReasonChanged > 0 {
		receipt.Lines.Add(Note, "%s before: only the reason changed.",
			phrase.Plural(r.ReasonChanged, "queue was paused", "queues were paused"))
	}
	switch {
	case r.Act == triage.Pause:
		receipt.Reverse = ResumeQueue
	case r.WithRoom > 0:
		receipt.Next = phrase.Plural(r.WithRoom, "queue has", "queues have") +
			" room now; the engine fills it within seconds"
	}
	return receipt
}

// addOverride describes the change of every queue. It returns how many queues change.
func addOverride(lines *TextLines, override triage.Override, queues []triage.QueueChange) (changed int) {
	if len(queues) > 1 {
		lines.Add(Plain, "All %d queues of %s:", len(queues), override.Action)
	}
	addFirst(lines, queues, "… and %d more", func(q triage.QueueChange) TextLine { return overrideLine(override, q) })
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
			lines.Add(Note, "%s above the new limit: running executions continue, and fewer are admitted until they end.",
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
