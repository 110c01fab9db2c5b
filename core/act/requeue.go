package act

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// RequeueDeadLetter tries dead letters again.
const RequeueDeadLetter Kind = "dead_letter.requeue"

var _ = declare(RequeueDeadLetter, Act{
	Key: "r", Label: "requeue", Help: "try again what it was about", Many: "try again what they were about",
	Insists: "also useless requeues",
	Command: Command{
		Group: "dlq", Use: "requeue ID...", Takes: TakesIDs,
		Short: "Send dead letters again, or repeat their executions",
		Long: "Try dead letters again, each once. A dispatch to a worker is never sent again, because it could\n" +
			"start the execution twice: its execution is repeated as a new one after it has ended. Every other\n" +
			"message goes to its destination again. A useless requeue is refused with the reason; --yes does it\n" +
			"anyway if it is possible.",
		Example: "  attune-executor dlq requeue 12 --reason 'the worker is back'\n" +
			"  attune-executor dlq requeue 12 13 14 -o json",
		Reason: "the reason, for the audit", Sends: true, Ledger: true, Done: "requeued", Results: "done",
	},
	Route: Route{Path: "dead-letters/{id}/requeue"}, offers: []offer{in[any]("dead letter", 1, nil)},
	plan: (*Operator).planRequeue, whole: true,
})

// planRequeue plans to requeue a dead letter. What is of no use needs a word, or is refused if no plan is shown.
func (o *Operator) planRequeue(ctx context.Context, request Request, plan *Plan) error {
	switch {
	case len(request.Targets) > 0 && request.Named:
		return o.planRequeueNamed(ctx, request, plan)
	case len(request.Targets) > 0:
		return o.planRequeueMany(ctx, request, plan)
	}
	anyway := request.Anyway // the state may change after the plan
	plan.Run = does(func(ctx context.Context, reason string) (*triage.RequeueReceipt, error) {
		return o.triage.Requeue(ctx, request.Target.ID, anyway, reason)
	}, requeueReceipt)
	if request.Direct && request.Anyway {
		return nil
	}
	deadLetter, err := o.deadLetter(ctx, request, plan)
	if err != nil {
		return err
	}
	one := chosen{deadLetter.LedgerEntry}
	verdict := one[0].Verdict
	switch {
	case request.Direct && (verdict.Requeue == monitor.RequeueRefused || verdict.Advice == monitor.AdviseRequeue):
		return nil // triage refuses it with a better reason, or does it
	case request.Direct:
		return &Problem{Kind: Refused, Text: request.subject() + ": " + verdict.Why, Anyway: true}
	case verdict.Requeue == monitor.RequeueRefused:
		return refuse(Refused, "%s", verdict.Why)
	case verdict.Advice == monitor.AdviseRequeue:
		plan.Lines.Add(Plain, "%s", sentence(verdict.Why))
	default:
		plan.Lines.Add(Warn, "%s", sentence(verdict.Why))
		if verdict.Advice != monitor.AdviseFix {
			plan.Lines.Add(Warn, "Better: %s.", verdict.Advice)
		}
		plan.Word = "anyway"
		anyway = true // the operator confirms that it is not advised
	}
	if verdict.Requeue == monitor.RequeueSends {
		if verdict.Unknown != "" {
			plan.Lines.Add(Note, "Whether the broker accepts it there is unknown: %s", verdict.Unknown)
		}
		one.sayNotKept(plan)
		plan.Lines.Add(Note, "The message may arrive twice if it was sent already; it cannot be lost.")
	} else {
		plan.Lines.Add(Note, "The dispatch itself is never sent again, since that could start the execution twice.")
	}
	return nil
}

// planRequeueNamed requeues the dead letters in the order of their executions.
func (o *Operator) planRequeueNamed(ctx context.Context, request Request, plan *Plan) error {
	found, err := o.reader.DeadLettersByID(ctx, request.IDs())
	if err != nil {
		return err
	}
	monitor.SortByExecution(found)
	place := func(t Target) int {
		return slices.IndexFunc(found, func(e monitor.LedgerEntry) bool { return e.ID == t.ID })
	}
	request.Targets = slices.SortedStableFunc(slices.Values(request.Targets),
		func(a, b Target) int { return cmp.Compare(place(a), place(b)) })
	return o.planNamed(ctx, request, plan)
}

func requeueReceipt(r *triage.RequeueReceipt) *Receipt {
	receipt := &Receipt{Audits: audits(r.Audit), Sent: r.Sent}
	if r.Repeated != nil {
		receipt.Text, receipt.Opens = repeated(r.Repeated), r.Repeated.Execution
		return receipt
	}
	receipt.Text = fmt.Sprintf("Dead letter %d is sent again to %s.", r.DeadLetter,
		phrase.Destination(r.Exchange, r.RoutingKey))
	for _, lost := range r.NotKept {
		receipt.Lines.Add(Warn, "▲ lost: %s", lost)
	}
	return receipt
}

// sayProblems describes why a requeue would be in vain.
func (c chosen) sayProblems(plan *Plan) {
	by := map[string]int{}
	for i := range c {
		by[c[i].Verdict.Problem]++
	}
	addFirst(&plan.Lines, slices.Sorted(maps.Keys(by)), "▲ … and %d more", func(problem string) TextLine {
		return line(Warn, "▲ %d of %d: %s", by[problem], len(c), problem)
	})
}

// insteadOf explains for each advice why dead letters are not requeued.
var insteadOf = []struct{ advice, why string }{
	{monitor.AdviseFix, "they would end here again; mend the cause, or mark only these and type the word"},
	{monitor.AdviseDiscard, "their executions have ended; discard them"},
	{monitor.AdviseExport, "they are unreadable; export them, then discard them"},
	{monitor.AdviseSend, "the broker refuses them where they were sent to; send them elsewhere"},
	{monitor.AdviseRetry, "their executions have been repeated; retry the newest"},
	{monitor.AdviseWait, "the engine is about to decide; wait"},
	{monitor.AdviseNothing, "they are decided"},
}

// planRequeueMany plans to requeue marked dead letters. Only those with the advice to requeue are included, or if all
// would end here again, all of them with a word.
func (o *Operator) planRequeueMany(ctx context.Context, request Request, plan *Plan) error {
	by, found, unknown := map[string]int{}, 0, map[string]int{}
	all, err := o.wanted(ctx, request, plan, func(l *monitor.LedgerEntry) bool {
		found++
		by[l.Verdict.Advice]++
		if l.Verdict.Unknown != "" {
			unknown[l.Verdict.Unknown]++
		}
		return l.Verdict.Possible()
	})
	if err != nil {
		return err
	}
	again := found > 0 && by[monitor.AdviseFix] == found
	var twins int
	repeats := map[int64]bool{}
	kept := slices.DeleteFunc(all, func(l monitor.LedgerEntry) bool {
		if l.Verdict.Advice == monitor.AdviseFix && !again {
			return true
		}
		if l.Verdict.Requeue != monitor.RequeueRepeats {
			return false
		}
		twin := repeats[*l.Execution]
		if repeats[*l.Execution] = true; twin {
			twins++
		}
		return twin
	})
	ids := kept.ids()
	plan.Title, plan.Word = "Requeue "+deadLetters(len(ids)), wordFor(len(ids), "requeue %d", len(ids))
	plan.Lines.Add(Plain, "%d marked: %d will be requeued", len(request.Targets), len(ids))
	if again {
		plan.Word, by = fmt.Sprintf("anyway %d", len(ids)), nil
		kept.sayProblems(plan)
	}
	for _, instead := range insteadOf {
		if n := by[instead.advice]; n > 0 {
			plan.Lines.Add(Note, "  %d cannot usefully be requeued: %s", n, instead.why)
		}
	}
	if twins > 0 {
		plan.Lines.Add(Note, "  %d are about executions that others of them repeat: discard them afterwards", twins)
	}
	if gone := len(request.Targets) - found; gone > 0 {
		plan.Lines.Add(Note, "  %d are not in the ledger any more", gone)
	}
	if len(ids) == 0 {
		plan.Title = "Requeue marked dead letters"
		return nothing(fmt.Sprintf("none of the %d can usefully be requeued", len(request.Targets)))
	}
	plan.Lines.Add(Plain, "order    as first enqueued (FIFO kept); executions join the tails of their queues")
	plan.Lines.Add(Plain, "rate     20/s, stop after 3 errors; est. %d s", len(ids)/20+1)
	for _, why := range slices.Sorted(maps.Keys(unknown)) {
		plan.Lines.Add(Note, "Whether the broker accepts %d of them is unknown: %s", unknown[why], why)
	}
	slices.DeleteFunc(slices.Clone(kept), func(l monitor.LedgerEntry) bool {
		return l.Verdict.Requeue != monitor.RequeueSends
	}).sayNotKept(plan)
	plan.Lines.Add(Note,
		"safety   each is one transaction with its audit; dispatches are repeated as new executions")
	plan.Run = o.eachDeadLetter(request.Kind, ids, func(ctx context.Context, id int64, reason string) (int64, error) {
		r, err := o.triage.Requeue(ctx, id, again, reason)
		if err != nil {
			return 0, err
		}
		return r.Audit, nil
	})
	return nil
}
