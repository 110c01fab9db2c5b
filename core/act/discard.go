package act

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// The acts that close dead letters, and open them again.
const (
	DiscardDeadLetter     Kind = "dead_letter.discard"
	DiscardAllDeadLetters Kind = "dead_letter.discard-all"
	UndoDeadLetters       Kind = "dead_letter.undo"
)

var (
	_ = declare(DiscardDeadLetter, Act{
		Key: "d", Label: "discard", Help: "nothing is done about it; the ledger keeps it",
		Many: "nothing is done about them; the ledger keeps them",
		Command: Command{
			Group: "dlq", Use: "discard ID...", Takes: TakesIDs,
			Short:   "Discard dead letters: nothing is done about them",
			Long:    "Discard waiting dead letters: nothing is done about them. The rows keep everything.",
			Example: "  attune-executor dlq discard 12 --reason 'a test of ours'",
			Reason:  "the reason, for the audit", Done: "discarded", Results: "done",
		},
		Route: Route{Path: "dead-letters/{id}/discard"}, offers: []offer{in("dead letter", 2, openFits)},
		plan: (*Operator).planDiscard, whole: true,
	})
	_ = declare(DiscardAllDeadLetters, Act{
		Key: "p", Label: "discard all", Help: "all that wait and match", Fields: discardFields,
		Command: Command{
			Group: "dlq", Use: "discard-all", Aliases: []string{"purge"},
			Short: "Discard all waiting dead letters that match",
			Long: "Discard the dead letters that wait when the command begins and match, at most 10000 at once; without\n" +
				"a filter all of them. Decided ones stay as they are, later ones wait, and the rows keep everything\n" +
				"until they are pruned. If you interrupt it, run the same command again.",
			Example: "  attune-executor dlq discard-all --type EventCreated --older-than 7d --dry-run\n" +
				"  attune-executor dlq discard-all --reason rejected --note 'tests of last week' --yes",
			Note:   "the reason, for the audit", // --reason is that of the dead letters
			DryRun: "show what would be discarded and do nothing", Yes: "do not ask", Asks: true,
		},
		Route: Route{Path: "dead-letters/discard-all", Plans: true},
		offers: []offer{in("dead letter", 6, func(l *monitor.LedgerEntry, item *Item) {
			item.Touches, item.Fields[0].Value = "waiting dead letters that match", l.Reason
		})},
		plan: (*Operator).planDiscardAll, whole: true,
	})
	_ = declare(UndoDeadLetters, Act{
		Key: "u", Label: "reopen", Help: "put it back among the waiting ones",
		Many: "put them back among the waiting ones", Route: Route{Path: "dead-letters/{id}/reopen"},
		offers: []offer{in("dead letter", 4, func(l *monitor.LedgerEntry, item *Item) {
			if !l.IsDiscarded() {
				item.Not = "it was not discarded"
			}
		})},
		plan: (*Operator).planUndo, whole: true,
	})
)

// discardFields choose waiting dead letters.
var discardFields = []Field{
	{
		Name: FieldReason, Label: "died because", Hint: "expired, rejected …; empty: any", HTTP: true,
		Usage: "only dead letters with this reason: expired, rejected, maxlen, delivery_limit, poison, unknown",
	},
	{
		Name: FieldAction, Label: "action", Hint: "a star stands for anything; empty: any", HTTP: true,
		Usage: "only dead letters about actions whose ref matches; * stands for anything",
	},
	{
		Name: FieldWorker, Label: "worker", Hint: "its id or name; empty: any", HTTP: true,
		Usage: "only dead letters to this worker, by id or name",
	},
	{
		Name: FieldMessage, HTTP: true,
		Usage: "only dead letters of this message type, such as ExecutionRequested",
	},
	{
		Name: FieldExecution, Type: Number, Check: numbered("the id of an execution", maxID, true), HTTP: true,
		Usage: "only dead letters about this execution",
	},
	{
		Name: FieldSince, Type: Age, Check: checkAge, HTTP: true,
		Usage: "only dead letters stored within this time, such as 12h or 7d",
	},
	{
		Name: FieldOlderThan, Label: "older than", Type: Age, Hint: "such as 10m or 2h; empty: any", Check: checkAge,
		HTTP: true, Usage: "only dead letters stored longer ago than this",
	},
}

// openFits says why an act does not apply to a decided dead letter.
func openFits(l *monitor.LedgerEntry, item *Item) {
	if !l.Open() {
		item.Not = "it is decided: " + l.Decision
	}
}

// planDiscard plans to discard a dead letter, or the marked ones.
func (o *Operator) planDiscard(ctx context.Context, request Request, plan *Plan) error {
	if marked := len(request.Targets); marked > 0 {
		if request.Named {
			return o.planNamed(ctx, request, plan)
		}
		planned, err := o.triage.PlanDiscardOf(ctx, request.IDs())
		if err != nil {
			return err
		}
		o.discards(plan, planned)
		plan.DeadLetters = request.IDs()
		plan.Lines.Add(Plain, "%d marked: %d wait, %d are decided already", marked, planned.DeadLetters,
			marked-planned.DeadLetters)
		if planned.DeadLetters == 0 {
			return nothing("none of them waits")
		}
		plan.Lines.Add(Note, "Nothing is repeated or sent. The ledger keeps them, and reopen makes them undecided again.")
		return nil
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.DiscardReceipt, error) {
		return o.triage.Discard(ctx, request.Target.ID, reason)
	}, func(r *triage.DiscardReceipt) *Receipt {
		return &Receipt{
			Text:   fmt.Sprintf("Dead letter %d is discarded; the ledger keeps it.", r.DeadLetter),
			Audits: audits(r.Audit), Undo: ofIDs(UndoDeadLetters, r.DeadLetter),
		}
	})
	if request.Direct {
		return nil
	}
	deadLetter, err := o.deadLetter(ctx, request, plan)
	if err != nil {
		return err
	}
	if !deadLetter.Open() {
		return refuse(Refused, "it is decided: %s", deadLetter.Decision)
	}
	plan.Lines.Add(Plain, "Nothing is done about it. The ledger keeps everything.")
	if advice := deadLetter.Verdict.Advice; advice != monitor.AdviseDiscard && advice != monitor.AdviseFix {
		plan.Lines.Add(Warn, "Better: %s, since %s.", deadLetter.Verdict.Advice, deadLetter.Verdict.Why)
	}
	return nil
}

func (o *Operator) discards(plan *Plan, planned *triage.DiscardPlan) {
	plan.Data, plan.Confirm = planned, fmt.Sprintf("discard %d", planned.DeadLetters)
	plan.Title, plan.DeadLetters = "Discard "+deadLetters(planned.DeadLetters), planned.IDs()
	plan.Word = wordFor(planned.DeadLetters, "discard %d", planned.DeadLetters)
	plan.Run = does(func(ctx context.Context, reason string) (*triage.DiscardManyReceipt, error) {
		planned.Note = reason
		return o.triage.DiscardMany(ctx, planned)
	}, func(r *triage.DiscardManyReceipt) *Receipt {
		receipt := &Receipt{
			Text: outcome(r.Discarded, r.Planned, "discarded", other{r.AlreadyDecided, "had been decided by others"},
				other{r.Left, "still wait"}),
			Partly: r.Discarded < r.Planned, Planned: r.Planned, Done: r.Discarded, Remaining: r.Left,
			Audits: audits(r.Audit),
		}
		if r.Discarded > 0 {
			receipt.Undo = ofIDs(UndoDeadLetters, planned.IDs()...)
		}
		if planned.More || r.Left > 0 {
			receipt.Next = "the same again goes on"
		}
		return receipt
	})
}

// planDiscardAll plans to discard all waiting dead letters that match.
func (o *Operator) planDiscardAll(ctx context.Context, request Request, plan *Plan) error {
	planned, err := o.triage.PlanDiscard(ctx, triage.DiscardRequest{
		Reason: request.value(FieldReason), Action: request.value(FieldAction), Worker: request.value(FieldWorker),
		Type: request.value(FieldMessage), Execution: request.number(FieldExecution), MaxAge: request.age(FieldSince),
		MinAge: request.age(FieldOlderThan), Note: request.Reason,
	})
	if err != nil {
		return err
	}
	o.discards(plan, planned)
	if planned.DeadLetters == 0 {
		return nothing("none that waits matches")
	}
	plan.Lines.Add(Plain, "%s that wait now and match, %d to %d:",
		phrase.Plural(planned.DeadLetters, "dead letter", "dead letters"), planned.First, planned.Last)
	addFirst(&plan.Lines, planned.Groups, "  … and %d more kinds", func(g triage.DiscardGroup) TextLine {
		return line(Plain, "  %d  %s  %s, the oldest of %s", g.Count, g.Reason, g.Type,
			g.Oldest.UTC().Format("2006-01-02 15:04Z"))
	})
	if planned.More {
		plan.Lines.Add(Note, "More match than one act takes: these are the oldest.")
	}
	plan.Lines.Add(Note, "Later dead letters are not touched.")
	plan.Lines.Add(Plain, "")
	plan.Lines.Add(Danger, "Nothing is done about them. The ledger keeps everything, but they no longer wait.")
	return nil
}

// planUndo plans to reopen discarded dead letters.
func (o *Operator) planUndo(ctx context.Context, request Request, plan *Plan) error {
	reopen := func(ids []int64) Run {
		return o.runs(request.Kind, func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
			return o.triage.Reopen(ctx, ids, reason)
		})
	}
	if request.Direct {
		plan.Run = one(&request, "is not discarded, or does not exist", reopen(request.IDs()))
		return nil
	}
	kept, err := o.wanted(ctx, request, plan, func(l *monitor.LedgerEntry) bool {
		return l.IsDiscarded()
	})
	if err != nil {
		return err
	}
	ids := kept.ids()
	plan.Lines.Add(Plain, "%s open again; the history is kept.",
		phrase.Plural(len(ids), "dead letter is", "dead letters are"))
	if len(ids) == 0 {
		return nothing("none of them was discarded")
	}
	plan.Run = reopen(ids)
	return nil
}
