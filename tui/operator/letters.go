package operator

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

func letters(n int) string { return phrase.Plural(n, "dead letter", "dead letters") }

// ofLetters orders an act on dead letters by their ids.
func ofLetters(kind act.Kind, ids ...int64) *act.Order {
	order := &act.Order{Kind: kind, Target: act.Target{Name: letters(len(ids))}}
	for _, id := range ids {
		order.Targets = append(order.Targets, act.Target{ID: id})
	}
	return order
}

// letter reads a dead letter and begins its plan.
func (o *Operator) letter(ctx context.Context, order act.Order, plan *act.Plan) (*monitor.LedgerDetail, error) {
	letter, err := o.reader.Letter(ctx, order.Target.ID)
	if err != nil {
		return nil, err
	}
	about := letter.What + ", " + letter.Reason
	if letter.Queue != "" {
		about += " in " + letter.Queue
	}
	if letter.ActionRef != "" {
		about += ", " + letter.ActionRef
	}
	if letter.Execution != nil {
		about += ", execution " + strconv.FormatInt(*letter.Execution, 10)
		if letter.StatusNow != "" {
			about += " (" + letter.StatusNow + " now)"
		}
	}
	plan.Letters = order.IDs()
	plan.Lines.Say(act.Plain, "%s", sentence(about))
	return letter, nil
}

// wanted begins the plan of an act on the chosen dead letters that keep selects. It returns their ids in the order in
// which their executions were requested, so that every queue stays FIFO. Dead letters without an execution come last.
func (o *Operator) wanted(
	ctx context.Context, order act.Order, plan *act.Plan, keep func(*monitor.LedgerEntry) bool,
) (ids []int64, err error) {
	found, err := o.reader.Letters(ctx, order.IDs())
	if err != nil {
		return nil, err
	}
	execution := func(e *monitor.LedgerEntry) int64 {
		if e.Execution == nil {
			return math.MaxInt64
		}
		return *e.Execution
	}
	slices.SortFunc(found, func(a, b monitor.LedgerEntry) int {
		return cmp.Or(cmp.Compare(execution(&a), execution(&b)), cmp.Compare(a.ID, b.ID))
	})
	for i := range found {
		if keep(&found[i]) {
			ids = append(ids, found[i].ID)
		}
	}
	verb := order.Kind.Verb()
	plan.Title, plan.Letters = capital(verb)+" "+letters(len(ids)), order.IDs()
	plan.Word = wordFor(len(ids), "%s %d", verb, len(ids))
	return ids, nil
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
func (o *Operator) planRequeue(ctx context.Context, order act.Order, plan *act.Plan) error {
	if len(order.Targets) > 0 {
		return o.planRequeueMany(ctx, order, plan)
	}
	letter, err := o.letter(ctx, order, plan)
	if err != nil {
		return err
	}
	verdict := letter.Verdict
	if verdict.Requeue == monitor.RequeueRefused {
		return nothing(verdict.Why)
	}
	requeue := o.triage.RequeueIfUseful
	if verdict.Advice == monitor.AdviseRequeue {
		plan.Lines.Say(act.Plain, "%s", sentence(verdict.Why))
	} else {
		plan.Lines.Say(act.Warn, "%s", sentence(verdict.Why))
		plan.Lines.Say(act.Warn, "Better: %s.", verdict.Advice)
		plan.Word = "anyway"
		requeue = o.triage.Requeue // the operator confirms that it is not advised
	}
	if verdict.Requeue == monitor.RequeueSends {
		plan.Lines.Say(act.Note, "The message may arrive twice if it was sent already; it cannot be lost.")
	} else {
		plan.Lines.Say(act.Note,
			"The hand-over itself is never sent again, since that could start the execution twice.")
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.RequeueReceipt, error) {
		return requeue(ctx, order.Target.ID, reason)
	}, func(r *triage.RequeueReceipt) *act.Receipt {
		if r.Repeated != nil {
			return &act.Receipt{
				Text: repeated(r.Repeated), Next: "3, then enter shows how it goes", Audits: audits(r.Audit),
			}
		}
		return &act.Receipt{
			Text: fmt.Sprintf("It is sent again to %s with the key %s.", r.Exchange, r.RoutingKey),
			Next: delivered(r.Sent), Audits: audits(r.Audit),
		}
	})
	return nil
}

// insteadOf explains for each advice why dead letters are not requeued.
var insteadOf = []struct{ advice, why string }{
	{monitor.AdviseDiscard, "their executions have ended; discard them"},
	{monitor.AdviseExport, "they are unreadable; export them, then discard them"},
	{monitor.AdviseRetry, "their executions have been repeated; retry the newest"},
	{monitor.AdviseWait, "the engine is about to decide; wait"},
	{monitor.AdviseNothing, "they are decided"},
}

// planRequeueMany plans to requeue marked dead letters. Only those with the advice to requeue are included.
func (o *Operator) planRequeueMany(ctx context.Context, order act.Order, plan *act.Plan) error {
	by, found := map[string]int{}, 0
	ids, err := o.wanted(ctx, order, plan, func(l *monitor.LedgerEntry) bool {
		found++
		by[l.Verdict.Advice]++
		return l.Verdict.Advice == monitor.AdviseRequeue
	})
	if err != nil {
		return err
	}
	plan.Lines.Say(act.Plain, "%d marked: %d will be requeued", len(order.Targets), len(ids))
	for _, instead := range insteadOf {
		if n := by[instead.advice]; n > 0 {
			plan.Lines.Say(act.Note, "  %d cannot usefully be requeued: %s", n, instead.why)
		}
	}
	if gone := len(order.Targets) - found; gone > 0 {
		plan.Lines.Say(act.Note, "  %d are not in the ledger any more", gone)
	}
	if len(ids) == 0 {
		plan.Title = "Requeue marked dead letters"
		return nothing(fmt.Sprintf("none of the %d can usefully be requeued", len(order.Targets)))
	}
	plan.Lines.Say(act.Plain, "order    as first enqueued (FIFO kept); executions join the tails of their queues")
	plan.Lines.Say(act.Plain, "rate     20/s, stop after 3 errors; est. %d s", len(ids)/20+1)
	plan.Lines.Say(act.Note,
		"safety   each is one transaction with its audit; hand-overs are repeated as new executions")
	plan.Run = o.runs(order.Kind, func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
		return o.triage.RequeueMany(ctx, ids, nil, reason)
	})
	return nil
}

// planDiscard plans to discard a dead letter, or the marked ones.
func (o *Operator) planDiscard(ctx context.Context, order act.Order, plan *act.Plan) error {
	if marked := len(order.Targets); marked > 0 {
		planned, err := o.triage.PlanDiscardOf(ctx, order.IDs())
		if err != nil {
			return err
		}
		o.discards(plan, planned)
		plan.Letters = order.IDs()
		plan.Lines.Say(act.Plain, "%d marked: %d wait, %d are decided already", marked, planned.Letters,
			marked-planned.Letters)
		if planned.Letters == 0 {
			return nothing("none of them waits")
		}
		plan.Lines.Say(act.Note, "Nothing is done about them. The ledger keeps everything, and u has them wait again.")
		return nil
	}
	letter, err := o.letter(ctx, order, plan)
	if err != nil {
		return err
	}
	if !letter.Open() {
		return nothing("it is decided: " + letter.Decision)
	}
	plan.Lines.Say(act.Plain, "Nothing is done about it. The ledger keeps everything.")
	if letter.Verdict.Advice != monitor.AdviseDiscard {
		plan.Lines.Say(act.Warn, "Better: %s, since %s.", letter.Verdict.Advice, letter.Verdict.Why)
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.DiscardReceipt, error) {
		return o.triage.Discard(ctx, order.Target.ID, reason)
	}, func(r *triage.DiscardReceipt) *act.Receipt {
		return &act.Receipt{
			Text:   fmt.Sprintf("Dead letter %d is discarded; the ledger keeps it.", r.Letter),
			Audits: audits(r.Audit), Undo: ofLetters(act.UndoLetters, r.Letter),
		}
	})
	return nil
}

func (o *Operator) discards(plan *act.Plan, planned *triage.DiscardPlan) {
	plan.Title, plan.Letters = "Discard "+letters(planned.Letters), planned.IDs()
	plan.Word = wordFor(planned.Letters, "discard %d", planned.Letters)
	plan.Run = does(func(ctx context.Context, reason string) (*triage.DiscardManyReceipt, error) {
		planned.Note = reason
		return o.triage.DiscardMany(ctx, planned)
	}, func(r *triage.DiscardManyReceipt) *act.Receipt {
		receipt := &act.Receipt{
			Text: outcome(r.Discarded, r.Planned, "discarded", other{r.AlreadyDecided, "had been decided by others"},
				other{r.Left, "still wait"}),
			Partly: r.Left > 0, Audits: audits(r.Audit),
		}
		if r.Discarded > 0 {
			receipt.Undo, receipt.Next = ofLetters(act.UndoLetters, planned.IDs()...), "u undoes it"
		}
		if planned.More || r.Left > 0 {
			receipt.Next = "the same again goes on"
		}
		return receipt
	})
}

// planDiscardAll plans to discard all waiting dead letters that match.
func (o *Operator) planDiscardAll(ctx context.Context, order act.Order, plan *act.Plan) error {
	age, err := act.OlderThan(order.Values[act.FieldOlderThan])
	if err != nil {
		return err
	}
	value := func(name string) string { return strings.TrimSpace(order.Values[name]) }
	planned, err := o.triage.PlanDiscard(ctx, triage.DiscardOrder{
		Reason: value(act.FieldReason), Action: value(act.FieldAction), Worker: value(act.FieldWorker), MinAge: age,
	})
	if err != nil {
		return err
	}
	o.discards(plan, planned)
	if planned.Letters == 0 {
		return nothing("none that waits matches")
	}
	plan.Lines.Say(act.Plain, "%s that wait now and match, %d to %d:",
		phrase.Plural(planned.Letters, "letter", "letters"), planned.First, planned.Last)
	sayFirst(&plan.Lines, planned.Groups, "  … and %d more kinds", func(g triage.DiscardGroup) act.Line {
		return line(act.Plain, "  %d  %s  %s, the oldest of %s", g.Count, g.Reason, g.Type,
			g.Oldest.UTC().Format("2006-01-02 15:04Z"))
	})
	if planned.More {
		plan.Lines.Say(act.Note, "More match than one act takes: these are the oldest.")
	}
	plan.Lines.Say(act.Note, "Later dead letters are not touched.")
	plan.Lines.Say(act.Plain, "")
	plan.Lines.Say(act.Danger, "Nothing is done about them. The ledger keeps everything, but they no longer wait.")
	return nil
}

// planUndo plans to reopen discarded dead letters.
func (o *Operator) planUndo(ctx context.Context, order act.Order, plan *act.Plan) error {
	ids, err := o.wanted(ctx, order, plan, func(l *monitor.LedgerEntry) bool {
		return l.IsDiscarded()
	})
	if err != nil {
		return err
	}
	plan.Lines.Say(act.Plain, "%s open again; the history is kept.",
		phrase.Plural(len(ids), "dead letter is", "dead letters are"))
	if len(ids) == 0 {
		return nothing("none of them was discarded")
	}
	plan.Run = o.runs(order.Kind, func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
		return o.triage.Reopen(ctx, ids, reason)
	})
	return nil
}

// open begins the plan of an act on waiting dead letters.
func (o *Operator) open(ctx context.Context, order act.Order, plan *act.Plan) (ids []int64, err error) {
	if ids, err = o.wanted(ctx, order, plan, (*monitor.LedgerEntry).Open); err != nil {
		return nil, err
	}
	chosen := len(order.All())
	plan.Lines.Say(act.Plain, "%d chosen: %d wait, %d are decided or gone", chosen, len(ids), chosen-len(ids))
	if len(ids) == 0 {
		return nil, nothing("none of them waits")
	}
	return ids, nil
}

func (o *Operator) planSend(ctx context.Context, order act.Order, plan *act.Plan) error {
	exchange, key := strings.TrimSpace(order.Values[act.FieldExchange]), strings.TrimSpace(order.Values[act.FieldKey])
	ids, err := o.open(ctx, order, plan)
	if err != nil {
		return err
	}
	to := exchange + " with the key " + key
	if exchange == "" {
		to = "the queue " + key
	}
	plan.Lines.Say(act.Plain, "to       %s", to)
	back, err := o.sayRoute(ctx, plan, exchange, key)
	if err != nil {
		return err
	}
	plan.Lines.Say(act.Note,
		"A hand-over is not sent to a worker, since it could start twice: requeue it, and another worker is chosen.")
	plan.Lines.Say(act.Note, "safety   each is one transaction with its audit and its message in the outbox")
	if back {
		plan.Word = "send back"
	}
	plan.Run = o.runs(order.Kind, func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
		return o.triage.SendLetters(ctx, ids, exchange, key, reason)
	})
	return nil
}

// sayRoute describes where a message would go, or why it must not go there. It reports whether the message can come
// back as a dead letter.
func (o *Operator) sayRoute(ctx context.Context, plan *act.Plan, exchange, key string) (back bool, _ error) {
	route, err := o.reader.Route(ctx, exchange, key)
	switch {
	case err != nil:
		plan.Lines.Say(act.Warn, "▲ where that leads is unknown: %s", err)
		return false, nil
	case !route.Exists:
		return false, nothing("there is no exchange " + exchange)
	case route.Lost:
		return false, nothing("it routes to no queue")
	case slices.Contains(route.Queues, monitor.DeadLetterQueue):
		return false, nothing("it leads back to " + monitor.DeadLetterQueue + "; put back does that")
	case route.Unsure:
		plan.Lines.Say(act.Warn, "▲ whether it routes to a queue cannot be seen")
	}
	if len(route.Queues) > 0 {
		plan.Lines.Say(act.Plain, "reaches  %s", strings.Join(route.Queues, ", "))
	}
	b, err := o.reader.Broker(ctx)
	if err != nil {
		return false, nil //nolint:nilerr // the route is known, only not what happens to a message that dies there
	}
	for _, name := range route.Queues {
		q, ok := b.Queue(name)
		if !ok || q.DeadLetterExchange == nil {
			continue
		}
		again, err := o.reader.Route(ctx, *q.DeadLetterExchange, cmp.Or(q.DeadLetterKey, key))
		if err == nil && slices.Contains(again.Queues, monitor.DeadLetterQueue) {
			back = true
			plan.Lines.Say(act.Warn, "▲ what dies in %s comes back as a dead letter", name)
		}
	}
	return back, nil
}

// planReturn plans to put dead letters back into the queues that they were taken from.
func (o *Operator) planReturn(ctx context.Context, order act.Order, plan *act.Plan) error {
	ids, err := o.open(ctx, order, plan)
	if err != nil {
		return err
	}
	plan.Lines.Say(act.Note,
		"Each message goes to the queue that it was taken from, through the outbox; its row stays, as put_back.")
	plan.Lines.Say(act.Note, "A hand-over goes back to its worker only while its execution is still scheduled by it.")
	plan.Run = o.runs(order.Kind, func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
		return o.triage.ReturnLetters(ctx, ids, reason)
	})
	return nil
}
