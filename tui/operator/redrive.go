package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/tui/act"
)

// Desk acts on the dead-letter queue of the broker; *redrive.Desk is one.
type Desk interface {
	Queue() string
	Look(ctx context.Context) (*redrive.Queue, error)
	Snapshot(ctx context.Context, beside bool) (*redrive.Snapshot, error)
	Spool() ([]*redrive.Spooled, error)
	SpoolState() redrive.SpoolState
	SetSpool(on bool)
	Plan(ctx context.Context, order redrive.Order) (*redrive.Plan, error)
	Run(ctx context.Context, plan *redrive.Plan, reason string, tell redrive.Tell) (*redrive.Receipt, error)
}

// errNoDesk says that the broker's queue cannot be acted on from here.
var errNoDesk = errors.New("message_queue.url is not configured, so the broker's queue cannot be looked into")

// planSnapshot plans a look into the broker's queue. Where nobody takes from it, it
// runs at once.
func (o *Operator) planSnapshot(ctx context.Context, _ act.Order) (*act.Plan, error) {
	if o.cfg.Desk == nil {
		return nil, errNoDesk
	}
	q, err := o.cfg.Desk.Look(ctx)
	if err != nil {
		return nil, err
	}
	plan := &act.Plan{Title: "Snapshot of " + o.cfg.Desk.Queue(), AtOnce: q.Consumers == 0}
	way, err := redrive.Strategy(q)
	if err != nil {
		plan.Nothing, plan.AtOnce = err.Error(), false
		return plan, nil //nolint:nilerr // it is said
	}
	plan.Lines = []act.Line{
		line(act.Plain, "%s ready, %s; the first 500 are read and returned.", counted(q.Ready, "message is", "messages are"),
			counted(q.Consumers, "consumer", "consumers")),
		line(act.Note, "Each look %s.", way.Cost),
	}
	if q.Consumers > 0 {
		plan.Lines = append(plan.Lines, line(act.Warn, "A handler takes them: what is held for the look reaches it late and out of order. Read beside it?"))
	}
	plan.Handle = run(func(ctx context.Context, _ string) (*act.Receipt, error) {
		snap, err := o.cfg.Desk.Snapshot(ctx, q.Consumers > 0)
		if err != nil {
			return nil, err
		}
		text := fmt.Sprintf("%s read of %d ready.", counted(len(snap.Letters), "letter", "letters"), snap.Queue.Ready)
		if snap.Cut != "" {
			text += " " + sentence(snap.Cut)
		}
		return &act.Receipt{Text: text, Result: snap}, nil
	})
	return plan, nil
}

// redriveDo names what the desk does for a kind of act.
var redriveDo = map[act.Kind]string{
	act.RequeueLetter: redrive.DoRequeue, act.DiscardLetter: redrive.DoDiscard, act.PurgeLetters: redrive.DoPurge, act.MoveLetters: redrive.DoMove,
	act.UndoLetters: redrive.DoUndo,
}

// planRedrive plans an act on letters that lie on the broker.
func (o *Operator) planRedrive(ctx context.Context, order act.Order) (*act.Plan, error) {
	if o.cfg.Desk == nil {
		return nil, errNoDesk
	}
	value := func(name string) string { return strings.TrimSpace(order.Values[name]) }
	planned, err := o.cfg.Desk.Plan(ctx, redrive.Order{
		Do: redriveDo[order.Kind], Letters: order.Letters, Rows: order.Rows, Exchange: value(act.FieldExchange), Key: value(act.FieldKey),
		Override: value(act.FieldOverride), Real: value(act.FieldReal) == "yes", Op: order.Target.Ref,
	})
	if err != nil {
		return nil, err
	}
	plan := &act.Plan{
		Title: fmt.Sprintf("%s %s  op %.8s", redriveTitle[planned.Do], counted(planned.Work(), "letter", "letters"), planned.Op), Nothing: planned.Nothing,
		Lines: redriveLines(planned), Word: redriveWord(planned),
	}
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		r, err := o.cfg.Desk.Run(ctx, planned, reason, progressOf(ctx))
		if err != nil {
			return nil, err
		}
		return redriveReceipt(r), nil
	})
	return plan, nil
}

var redriveTitle = map[string]string{
	redrive.DoRequeue: "Requeue", redrive.DoDiscard: "Discard", redrive.DoPurge: "Purge", redrive.DoMove: "Move", redrive.DoUndo: "Put back",
}

// redriveWord is what has to be typed: above many, and where it cannot be undone.
func redriveWord(p *redrive.Plan) string {
	switch {
	case p.Nothing != "":
		return ""
	case p.Real:
		return "purge for good"
	case p.Back:
		return "move back"
	case p.Override != "":
		return "override"
	case p.Gone():
		return p.Do + " for good"
	}
	return wordFor(p.Work(), fmt.Sprintf("%s %d", p.Do, p.Work()))
}

func redriveLines(p *redrive.Plan) []act.Line {
	lines := goneLines(p)
	switch p.Do {
	case redrive.DoRequeue:
		lines = append(lines, requeueLines(p)...)
	case redrive.DoPurge:
		if p.Real {
			lines = append(lines, line(act.Danger, "The broker deletes all that is ready, %d now, and also what arrives meanwhile. No copy is kept: there is no undo.", p.Bound))
			break
		}
		lines = append(lines, line(act.Plain, "%s lying there now are %sremoved; what comes later stays.", counted(p.Bound, "message", "messages"), copied(p)))
		if p.Bound > redrive.PurgeOffered {
			lines = append(lines, line(act.Warn, "That takes about %d s. The broker purges at once (esc, then yes): it also deletes what arrives meanwhile and gives no undo.",
				max(1, p.Bound/redrive.DrainRate)))
		}
	case redrive.DoMove:
		lines = append(lines, line(act.Plain, "to       %s  key %s", orDefault(p.Target), p.TargetKey))
	case redrive.DoDiscard:
		lines = append(lines, line(act.Plain, "They are %sremoved; the others go back to their places.", copied(p)))
	case redrive.DoUndo:
		lines = append(lines, line(act.Plain, "They are published to %s again, with all that they had.", p.TargetKey))
	}
	for _, check := range p.Checks {
		tone, sign := act.Good, "✓"
		if !check.OK {
			tone, sign = act.Warn, "▲"
		}
		lines = append(lines, line(tone, "%s %s", sign, check.Text))
	}
	lines = append(lines, line(act.Plain, "bound    %d in the queue now, %s", p.Bound, counted(p.Queue.Consumers, "consumer", "consumers")))
	if p.Do == redrive.DoRequeue || p.Do == redrive.DoMove || p.Do == redrive.DoDiscard {
		lines = append(lines, line(act.Plain, "rate     %.0f/s, stop after 3 errors; est. %.0f s", p.Rate, float64(p.Work())/p.Rate))
	}
	if p.Ledger {
		kept := "the ledger has each of them, as " + map[string]string{redrive.DoDiscard: "discarded", redrive.DoPurge: "purged"}[p.Do] + ", before it leaves"
		if !p.Spool {
			kept += "; the spool is off, so they come back to the queue from there only"
		}
		lines = append(lines, line(act.Plain, "ledger   %s", kept))
	}
	return append(lines, safetyLines(p)...)
}

// copied says in passing that what is removed is copied first, where it is.
func copied(p *redrive.Plan) string {
	if p.Spool {
		return "copied and "
	}
	return ""
}

// goneLines say before all else that nothing brings back what a plan removes. A purge
// by the broker says so by itself.
func goneLines(p *redrive.Plan) []act.Line {
	switch {
	case p.Real || !p.Gone():
		return nil
	case p.Do == redrive.DoMove:
		return []act.Line{line(act.Danger, "The spool is off: no copy is kept, and nothing takes this back.")}
	default:
		return []act.Line{line(act.Danger, "The spool is off and there is no ledger: no copy is kept, nothing can be put back.")}
	}
}

// safetyLines say what cannot go wrong, and what can.
func safetyLines(p *redrive.Plan) []act.Line {
	switch {
	case p.Gone():
		return nil
	case p.Sealed:
		return []act.Line{line(act.Note, "safety   copied, sealed, before anything, confirmed before it leaves; duplicates are possible, losses are not")}
	case p.Spool || p.Do == redrive.DoUndo:
		return []act.Line{line(act.Note, "safety   copied before anything, confirmed before it leaves; duplicates are possible, losses are not")}
	default:
		return []act.Line{line(act.Note, "safety   confirmed before it leaves; duplicates are possible, losses are not")}
	}
}

func orDefault(exchange string) string {
	if exchange == "" {
		return "the queue itself"
	}
	return exchange
}

// requeueLines counts what would be done and what is left alone, with reasons.
func requeueLines(p *redrive.Plan) []act.Line {
	does := map[string]int{}
	skips := map[string][]string{}
	for _, item := range p.Items {
		if item.Skip == "" {
			does[item.Verdict.Do]++
			continue
		}
		skips[item.Verdict.Do] = append(skips[item.Verdict.Do], item.Verdict.Why)
	}
	var lines []act.Line
	for _, each := range []struct{ do, text string }{
		{redrive.Requeue, "rows back to requested, then a fresh request is published"},
		{redrive.Publish, "rows are requested already; their request is published"},
		{redrive.Replay, "messages go to where they had been sent"},
		{redrive.Blocked, "blocked ones are requeued all the same"},
	} {
		if n := does[each.do]; n > 0 {
			lines = append(lines, line(act.Plain, "%5d  %s: %s", n, each.do, each.text))
		}
	}
	for _, do := range []string{redrive.Stale, redrive.Blocked, redrive.Export, redrive.Engine, redrive.Replay, redrive.Unknown} {
		if why := skips[do]; len(why) > 0 {
			slices.Sort(why)
			why = slices.Compact(why)
			lines = append(lines, line(act.Note, "%5d  skipped, %s: %s", len(skips[do]), do, strings.Join(why[:min(len(why), 3)], "; ")))
		}
	}
	lines = append(lines, againLines(p)...)
	if p.Target != "" {
		lines = append(lines, line(act.Plain, "to       %s  key %s", p.Target, p.TargetKey), line(act.Plain, "order    as first requested; they join the tails of their queues"))
	}
	return lines
}

// againLines warn of what was sent again before and died again.
func againLines(p *redrive.Plan) []act.Line {
	n, most := 0, int64(0)
	for _, item := range p.Items {
		if item.Skip == "" && item.Letter != nil && item.Letter.Requeues > 0 {
			n, most = n+1, max(most, item.Letter.Requeues)
		}
	}
	if n == 0 {
		return nil
	}
	return []act.Line{line(act.Warn, "%5d  sent again before and dead again: up to the %s time now", n, act.Ordinal(most+1))}
}

func redriveReceipt(r *redrive.Receipt) *act.Receipt {
	after := "unknown"
	if r.After >= 0 {
		after = fmt.Sprint(r.After)
	}
	unknown := ""
	if r.Unknown > 0 {
		unknown = fmt.Sprintf(", unknown %d", r.Unknown)
	}
	receipt := &act.Receipt{
		Text: fmt.Sprintf("%s: planned %d, done %d, changed %d, gone %d, failed %d%s, left %d.",
			redriveTitle[r.Do], r.Planned, r.Done, r.Changed, r.Absent, r.Failed, unknown, r.Left),
		Partly: r.Done < r.Planned,
		Lines:  []act.Line{line(act.Plain, "queue %d → %s, expected %d; op %s", r.Before, after, r.Expected, r.Op)},
	}
	if r.After >= 0 && r.After != r.Expected {
		receipt.Lines = append(receipt.Lines, line(act.Warn, "The depth is not the expected one: others put in or took out meanwhile, or some are still on their way back."))
	}
	if r.Stopped != "" {
		receipt.Lines = append(receipt.Lines, line(act.Warn, "%s", sentence("stopped: "+r.Stopped)))
	}
	if r.Unknown > 0 {
		receipt.Lines = append(receipt.Lines, line(act.Warn, "%s", unknownText(r)))
	}
	for _, text := range r.Errors {
		receipt.Lines = append(receipt.Lines, line(act.Danger, "%s", text))
	}
	if r.Audit != 0 {
		receipt.Audits = []int64{r.Audit}
	}
	if r.Undoable {
		receipt.Undo = &act.Order{Kind: act.UndoLetters, Target: act.Target{Name: "operation " + r.Op, Ref: r.Op}}
		receipt.Next = "u puts them back"
	}
	return receipt
}

// unknownText says of what was in hand when a server went away what it may have become.
func unknownText(r *redrive.Receipt) string {
	switch r.Do {
	case redrive.DoRequeue:
		return fmt.Sprintf("Of %d nobody knows whether the request was sent. S shows what still lies there; the same again is safe.", r.Unknown)
	case redrive.DoMove:
		return fmt.Sprintf("Of %d nobody knows whether the target has them; they may be in both queues. Look at both before the same again.", r.Unknown)
	case redrive.DoUndo:
		return fmt.Sprintf("Of %d nobody knows whether the queue has them. S shows it.", r.Unknown)
	default:
		return fmt.Sprintf("Of %d nobody knows whether they have left. S shows what still lies there.", r.Unknown)
	}
}
