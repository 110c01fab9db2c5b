package operator

import (
	"context"
	"errors"
	"fmt"
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

// redriveTell tells of a run on the broker, with the depths that it changes.
func redriveTell(progress *act.Progress) redrive.Tell {
	return func(p redrive.Progress) {
		progress.Set(p.Settled(), p.Total)
		c := act.Counts{Done: p.Done, Changed: p.Changed + p.Absent, Failed: p.Failed}
		if p.Out {
			c.Depths = fmt.Sprintf("dlq %d → %d", p.Before, max(0, p.Before-p.Done))
		}
		if p.Target != "" {
			c.Depths = strings.TrimSpace(fmt.Sprintf("%s   %s %d → %d", c.Depths, p.Target, p.TargetBefore, p.TargetBefore+p.Done))
		}
		progress.Count(c)
	}
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
