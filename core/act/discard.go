package act

import (
	"context"
	"fmt"
	"strings"

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
	_ = declare(DiscardDeadLetter, about{
		key: "d", label: "discard", help: "nothing is done about it; the ledger keeps it",
		many: "nothing is done about them; the ledger keeps them", command: "dlq discard", reason: "--reason",
		plan: (*Operator).planDiscard, whole: true,
	})
	_ = declare(DiscardAllDeadLetters, about{
		key: "p", label: "discard all", help: "all that wait and match", command: "dlq discard-all", reason: "--note",
		flags: []flag{ // here --reason is the reason of the dead letter
			{name: "--reason", field: FieldReason},
			{name: "--action", field: FieldAction},
			{name: "--worker", field: FieldWorker},
			{name: "--older-than", field: FieldOlderThan},
		},
		plan: (*Operator).planDiscardAll, whole: true,
	})
	_ = declare(UndoDeadLetters, about{
		key: "u", label: "reopen", help: "put it back among the waiting ones",
		many: "put them back among the waiting ones", plan: (*Operator).planUndo, whole: true,
	})
)

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
	wish, read := request.Input.(triage.DiscardRequest)
	if !read {
		age, err := OlderThan(request.Values[FieldOlderThan])
		if err != nil {
			return err
		}
		value := func(name string) string { return strings.TrimSpace(request.Values[name]) }
		wish = triage.DiscardRequest{
			Reason: value(FieldReason), Action: value(FieldAction), Worker: value(FieldWorker), MinAge: age,
		}
	}
	planned, err := o.triage.PlanDiscard(ctx, wish)
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
	if request.Direct {
		plan.Run = o.one(request, "is not discarded, or does not exist",
			func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
				return o.triage.Reopen(ctx, request.IDs(), reason)
			})
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
	plan.Run = o.runs(request.Kind, func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
		return o.triage.Reopen(ctx, ids, reason)
	})
	return nil
}
