package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

func deadLetters(n int) string { return phrase.Plural(n, "dead letter", "dead letters") }

// ofDeadLetters requests an act on dead letters by their ids.
func ofDeadLetters(kind act.Kind, ids ...int64) *act.Request {
	request := &act.Request{Kind: kind, Target: act.Target{Name: deadLetters(len(ids))}}
	for _, id := range ids {
		request.Targets = append(request.Targets, act.Target{ID: id})
	}
	return request
}

// deadLetter reads a dead letter and begins its plan.
func (o *Operator) deadLetter(ctx context.Context, request act.Request, plan *act.Plan) (*monitor.LedgerDetail, error) {
	deadLetter, err := o.reader.DeadLetter(ctx, request.Target.ID)
	if err != nil {
		return nil, err
	}
	about := deadLetter.What + ", " + deadLetter.Reason
	if deadLetter.Queue != "" {
		about += " in " + deadLetter.Queue
	}
	if deadLetter.ActionRef != "" {
		about += ", " + deadLetter.ActionRef
	}
	if deadLetter.Execution != nil {
		about += ", execution " + strconv.FormatInt(*deadLetter.Execution, 10)
		if deadLetter.StatusNow != "" {
			about += " (" + deadLetter.StatusNow + " now)"
		}
	}
	plan.DeadLetters = request.IDs()
	plan.Lines.Add(act.Plain, "%s", sentence(about))
	return deadLetter, nil
}

// wanted begins the plan of an act on the chosen dead letters that keep selects. It returns them in the order in
// which their executions were requested, so that every queue stays FIFO. Dead letters without an execution come last.
func (o *Operator) wanted(
	ctx context.Context, request act.Request, plan *act.Plan, keep func(*monitor.LedgerEntry) bool,
) (kept chosen, err error) {
	found, err := o.reader.DeadLettersByID(ctx, request.IDs())
	if err != nil {
		return nil, err
	}
	monitor.SortByExecution(found)
	for i := range found {
		if keep(&found[i]) {
			kept = append(kept, found[i])
		}
	}
	verb := request.Kind.Verb()
	plan.Title, plan.DeadLetters = capital(verb)+" "+deadLetters(len(kept)), request.IDs()
	plan.Word = wordFor(len(kept), "%s %d", verb, len(kept))
	return kept, nil
}

// chosen are dead letters of a plan.
type chosen []monitor.LedgerEntry

func (c chosen) ids() (ids []int64) {
	for i := range c {
		ids = append(ids, c[i].ID)
	}
	return ids
}

// sayNotKept describes what messages lose when they are sent again.
func (c chosen) sayNotKept(plan *act.Plan) {
	lost := map[string]int{}
	for i := range c {
		for _, text := range c[i].NotKept {
			lost[text]++
		}
	}
	addFirst(&plan.Lines, slices.Sorted(maps.Keys(lost)), "▲ … and %d more", func(text string) act.TextLine {
		if len(c) > 1 {
			text = fmt.Sprintf("%s (%d of %d)", text, lost[text], len(c))
		}
		return line(act.Warn, "▲ lost: %s", text)
	})
}

// sayProblems describes why a requeue would be in vain.
func (c chosen) sayProblems(plan *act.Plan) {
	by := map[string]int{}
	for i := range c {
		by[c[i].Verdict.Problem]++
	}
	addFirst(&plan.Lines, slices.Sorted(maps.Keys(by)), "▲ … and %d more", func(problem string) act.TextLine {
		return line(act.Warn, "▲ %d of %d: %s", by[problem], len(c), problem)
	})
}

func (o *Operator) runs(
	kind act.Kind, do func(ctx context.Context, reason string) (*triage.RunReceipt, error),
) act.Run {
	return does(do, func(r *triage.RunReceipt) *act.Receipt {
		receipt := o.runReceipt(r)
		receipt.Text = capital(kind.Verb()) + ": " + receipt.Text
		return receipt
	})
}

// planRequeue plans to requeue a dead letter.
func (o *Operator) planRequeue(ctx context.Context, request act.Request, plan *act.Plan) error {
	if len(request.Targets) > 0 {
		return o.planRequeueMany(ctx, request, plan)
	}
	deadLetter, err := o.deadLetter(ctx, request, plan)
	if err != nil {
		return err
	}
	one := chosen{deadLetter.LedgerEntry}
	verdict := one[0].Verdict
	if verdict.Requeue == monitor.RequeueRefused {
		return nothing(verdict.Why)
	}
	requeue := o.triage.RequeueIfUseful
	if verdict.Advice == monitor.AdviseRequeue {
		plan.Lines.Add(act.Plain, "%s", sentence(verdict.Why))
	} else {
		plan.Lines.Add(act.Warn, "%s", sentence(verdict.Why))
		if verdict.Advice != monitor.AdviseFix {
			plan.Lines.Add(act.Warn, "Better: %s.", verdict.Advice)
		}
		plan.Word = "anyway"
		requeue = o.triage.Requeue // the operator confirms that it is not advised
	}
	if verdict.Requeue == monitor.RequeueSends {
		if verdict.Unknown != "" {
			plan.Lines.Add(act.Note, "Whether the broker accepts it there is unknown: %s", verdict.Unknown)
		}
		one.sayNotKept(plan)
		plan.Lines.Add(act.Note, "The message may arrive twice if it was sent already; it cannot be lost.")
	} else {
		plan.Lines.Add(act.Note,
			"The dispatch itself is never sent again, since that could start the execution twice.")
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.RequeueReceipt, error) {
		return requeue(ctx, request.Target.ID, reason)
	}, func(r *triage.RequeueReceipt) *act.Receipt {
		if r.Repeated != nil {
			return &act.Receipt{
				Text: repeated(r.Repeated), Next: "3, then enter shows how it goes", Audits: audits(r.Audit),
			}
		}
		return &act.Receipt{
			Text: "It is sent again to " + phrase.Destination(r.Exchange, r.RoutingKey) + ".",
			Next: delivered(r.Sent), Audits: audits(r.Audit),
		}
	})
	return nil
}

// insteadOf explains for each advice why dead letters are not requeued.
var insteadOf = []struct{ advice, why string }{
	{monitor.AdviseFix, "they would end here again; mend the cause, or mark only these and type the word"},
	{monitor.AdviseDiscard, "their executions have ended; discard them"},
	{monitor.AdviseExport, "they are unreadable; export them, then discard them"},
	{monitor.AdviseSend, "the broker refuses them where they were sent to; send them elsewhere (M)"},
	{monitor.AdviseRetry, "their executions have been repeated; retry the newest"},
	{monitor.AdviseWait, "the engine is about to decide; wait"},
	{monitor.AdviseNothing, "they are decided"},
}

// planRequeueMany plans to requeue marked dead letters. Only those with the advice to requeue are included, or if all
// would end here again, all of them with a word.
func (o *Operator) planRequeueMany(ctx context.Context, request act.Request, plan *act.Plan) error {
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
	plan.Lines.Add(act.Plain, "%d marked: %d will be requeued", len(request.Targets), len(ids))
	var anyway []int64
	if again {
		anyway, plan.Word, by = ids, fmt.Sprintf("anyway %d", len(ids)), nil
		kept.sayProblems(plan)
	}
	for _, instead := range insteadOf {
		if n := by[instead.advice]; n > 0 {
			plan.Lines.Add(act.Note, "  %d cannot usefully be requeued: %s", n, instead.why)
		}
	}
	if twins > 0 {
		plan.Lines.Add(act.Note, "  %d are about executions that others of them repeat: discard them afterwards", twins)
	}
	if gone := len(request.Targets) - found; gone > 0 {
		plan.Lines.Add(act.Note, "  %d are not in the ledger any more", gone)
	}
	if len(ids) == 0 {
		plan.Title = "Requeue marked dead letters"
		return nothing(fmt.Sprintf("none of the %d can usefully be requeued", len(request.Targets)))
	}
	plan.Lines.Add(act.Plain, "order    as first enqueued (FIFO kept); executions join the tails of their queues")
	plan.Lines.Add(act.Plain, "rate     20/s, stop after 3 errors; est. %d s", len(ids)/20+1)
	for _, why := range slices.Sorted(maps.Keys(unknown)) {
		plan.Lines.Add(act.Note, "Whether the broker accepts %d of them is unknown: %s", unknown[why], why)
	}
	slices.DeleteFunc(slices.Clone(kept), func(l monitor.LedgerEntry) bool {
		return l.Verdict.Requeue != monitor.RequeueSends
	}).sayNotKept(plan)
	plan.Lines.Add(act.Note,
		"safety   each is one transaction with its audit; dispatches are repeated as new executions")
	plan.Run = o.runs(request.Kind, func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
		return o.triage.RequeueMany(ctx, ids, anyway, reason)
	})
	return nil
}

// planDiscard plans to discard a dead letter, or the marked ones.
func (o *Operator) planDiscard(ctx context.Context, request act.Request, plan *act.Plan) error {
	if marked := len(request.Targets); marked > 0 {
		planned, err := o.triage.PlanDiscardOf(ctx, request.IDs())
		if err != nil {
			return err
		}
		o.discards(plan, planned)
		plan.DeadLetters = request.IDs()
		plan.Lines.Add(act.Plain, "%d marked: %d wait, %d are decided already", marked, planned.DeadLetters,
			marked-planned.DeadLetters)
		if planned.DeadLetters == 0 {
			return nothing("none of them waits")
		}
		plan.Lines.Add(act.Note, "Nothing is repeated or sent. The ledger keeps them, and u makes them undecided again.")
		return nil
	}
	deadLetter, err := o.deadLetter(ctx, request, plan)
	if err != nil {
		return err
	}
	if !deadLetter.Open() {
		return nothing("it is decided: " + deadLetter.Decision)
	}
	plan.Lines.Add(act.Plain, "Nothing is done about it. The ledger keeps everything.")
	if advice := deadLetter.Verdict.Advice; advice != monitor.AdviseDiscard && advice != monitor.AdviseFix {
		plan.Lines.Add(act.Warn, "Better: %s, since %s.", deadLetter.Verdict.Advice, deadLetter.Verdict.Why)
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.DiscardReceipt, error) {
		return o.triage.Discard(ctx, request.Target.ID, reason)
	}, func(r *triage.DiscardReceipt) *act.Receipt {
		return &act.Receipt{
			Text:   fmt.Sprintf("Dead letter %d is discarded; the ledger keeps it.", r.DeadLetter),
			Audits: audits(r.Audit), Undo: ofDeadLetters(act.UndoDeadLetters, r.DeadLetter),
		}
	})
	return nil
}

func (o *Operator) discards(plan *act.Plan, planned *triage.DiscardPlan) {
	plan.Title, plan.DeadLetters = "Discard "+deadLetters(planned.DeadLetters), planned.IDs()
	plan.Word = wordFor(planned.DeadLetters, "discard %d", planned.DeadLetters)
	plan.Run = does(func(ctx context.Context, reason string) (*triage.DiscardManyReceipt, error) {
		planned.Note = reason
		return o.triage.DiscardMany(ctx, planned)
	}, func(r *triage.DiscardManyReceipt) *act.Receipt {
		receipt := &act.Receipt{
			Text: outcome(r.Discarded, r.Planned, "discarded", other{r.AlreadyDecided, "had been decided by others"},
				other{r.Left, "still wait"}),
			Partly: r.Discarded < r.Planned, Audits: audits(r.Audit),
		}
		if r.Discarded > 0 {
			receipt.Undo, receipt.Next = ofDeadLetters(act.UndoDeadLetters, planned.IDs()...), "u undoes it"
		}
		if planned.More || r.Left > 0 {
			receipt.Next = "the same again goes on"
		}
		return receipt
	})
}

// planDiscardAll plans to discard all waiting dead letters that match.
func (o *Operator) planDiscardAll(ctx context.Context, request act.Request, plan *act.Plan) error {
	age, err := act.OlderThan(request.Values[act.FieldOlderThan])
	if err != nil {
		return err
	}
	value := func(name string) string { return strings.TrimSpace(request.Values[name]) }
	planned, err := o.triage.PlanDiscard(ctx, triage.DiscardRequest{
		Reason: value(act.FieldReason), Action: value(act.FieldAction), Worker: value(act.FieldWorker), MinAge: age,
	})
	if err != nil {
		return err
	}
	o.discards(plan, planned)
	if planned.DeadLetters == 0 {
		return nothing("none that waits matches")
	}
	plan.Lines.Add(act.Plain, "%s that wait now and match, %d to %d:",
		phrase.Plural(planned.DeadLetters, "dead letter", "dead letters"), planned.First, planned.Last)
	addFirst(&plan.Lines, planned.Groups, "  … and %d more kinds", func(g triage.DiscardGroup) act.TextLine {
		return line(act.Plain, "  %d  %s  %s, the oldest of %s", g.Count, g.Reason, g.Type,
			g.Oldest.UTC().Format("2006-01-02 15:04Z"))
	})
	if planned.More {
		plan.Lines.Add(act.Note, "More match than one act takes: these are the oldest.")
	}
	plan.Lines.Add(act.Note, "Later dead letters are not touched.")
	plan.Lines.Add(act.Plain, "")
	plan.Lines.Add(act.Danger, "Nothing is done about them. The ledger keeps everything, but they no longer wait.")
	return nil
}

// planUndo plans to reopen discarded dead letters.
func (o *Operator) planUndo(ctx context.Context, request act.Request, plan *act.Plan) error {
	kept, err := o.wanted(ctx, request, plan, func(l *monitor.LedgerEntry) bool {
		return l.IsDiscarded()
	})
	if err != nil {
		return err
	}
	ids := kept.ids()
	plan.Lines.Add(act.Plain, "%s open again; the history is kept.",
		phrase.Plural(len(ids), "dead letter is", "dead letters are"))
	if len(ids) == 0 {
		return nothing("none of them was discarded")
	}
	plan.Run = o.runs(request.Kind, func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
		return o.triage.Reopen(ctx, ids, reason)
	})
	return nil
}

// open begins the plan of an act on waiting dead letters.
func (o *Operator) open(ctx context.Context, request act.Request, plan *act.Plan) (open chosen, err error) {
	if open, err = o.wanted(ctx, request, plan, (*monitor.LedgerEntry).Open); err != nil {
		return nil, err
	}
	all := len(request.All())
	plan.Lines.Add(act.Plain, "%d chosen: %d wait, %d are decided or gone", all, len(open), all-len(open))
	if len(open) == 0 {
		return nil, nothing("none of them waits")
	}
	return open, nil
}

func (o *Operator) planSend(ctx context.Context, request act.Request, plan *act.Plan) error {
	exchange, key := strings.TrimSpace(request.Values[act.FieldExchange]),
		strings.TrimSpace(request.Values[act.FieldKey])
	open, err := o.open(ctx, request, plan)
	if err != nil {
		return err
	}
	plan.Lines.Add(act.Plain, "to       %s", phrase.Destination(exchange, key))
	back, err := o.sayRoute(ctx, plan, exchange, key)
	if err != nil {
		return err
	}
	open.sayNotKept(plan)
	plan.Lines.Add(act.Note,
		"A dispatch is not sent to a worker, since it could start twice: requeue it, and another worker is chosen.")
	plan.Lines.Add(act.Note, "safety   each is one transaction with its audit and its message in the outbox")
	if back {
		plan.Word = "send back"
	}
	plan.Run = o.runs(request.Kind, func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
		return o.triage.SendDeadLetters(ctx, open.ids(), exchange, key, reason)
	})
	return nil
}

// sayRoute describes where a message would go, or why it must not go there. It reports whether the message can come
// back as a dead letter.
func (o *Operator) sayRoute(ctx context.Context, plan *act.Plan, exchange, key string) (back bool, _ error) {
	route, err := o.reader.Route(ctx, exchange, key)
	switch {
	case err != nil:
		plan.Lines.Add(act.Warn, "▲ where that leads is unknown: %s", err)
		return false, nil
	case route.Refuses() != "":
		return false, nothing(route.Refuses())
	case exchange == monitor.DeadLetterExchange, slices.Contains(route.Queues, monitor.DeadLetterQueue):
		return false, nothing("it leads back to " + monitor.DeadLetterQueue + "; put back does that")
	case route.Unsure:
		plan.Lines.Add(act.Warn, "▲ no queue is bound with this key: whether a pattern leads to one, only the broker knows")
	}
	if len(route.Queues) > 0 {
		plan.Lines.Add(act.Plain, "reaches  %s", strings.Join(route.Queues, ", "))
	}
	b, err := o.reader.Broker(ctx)
	if err != nil {
		return false, nil //nolint:nilerr // the route is known, only not what happens to a message that dies there
	}
	for _, name := range route.Queues {
		q, ok := b.Queue(name)
		if ok && q.DeadLetterExchange != nil && *q.DeadLetterExchange == monitor.DeadLetterExchange {
			back = true
			plan.Lines.Add(act.Warn, "▲ what dies in %s comes back as a dead letter", name)
		}
	}
	return back, nil
}

// planReturn plans to put dead letters back into the queues that they were taken from.
func (o *Operator) planReturn(ctx context.Context, request act.Request, plan *act.Plan) error {
	open, err := o.open(ctx, request, plan)
	if err != nil {
		return err
	}
	open.sayNotKept(plan)
	plan.Lines.Add(act.Note,
		"Each message goes to the queue that it was taken from, through the outbox; its row stays, as put_back.")
	plan.Lines.Add(act.Note, "A dispatch goes back to its worker only while its execution is still scheduled by it.")
	plan.Run = o.runs(request.Kind, func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
		return o.triage.ReturnDeadLetters(ctx, open.ids(), reason)
	})
	return nil
}
