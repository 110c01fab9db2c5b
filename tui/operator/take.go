package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

// withBroker runs an act that needs the broker.
func (o *Operator) withBroker(ctx context.Context, do func(*triage.Triage) error) error {
	if o.cfg.WithBroker == nil {
		return triage.ErrNoBroker
	}
	desk, end, err := o.cfg.WithBroker(ctx)
	if err != nil {
		return err
	}
	defer end()
	return do(desk)
}

// planTake plans to take messages from a queue of the broker into the ledger.
func (o *Operator) planTake(ctx context.Context, order act.Order) (*act.Plan, error) {
	wish := triage.TakeOrder{Queue: strings.TrimSpace(order.Values[act.FieldQueue])}
	if text := strings.TrimSpace(order.Values[act.FieldFirst]); text != "" {
		first, err := strconv.Atoi(text)
		if err != nil || first < 1 {
			return nil, &act.InvalidError{Problems: map[string]string{act.FieldFirst: "a number, 1 or more"}}
		}
		wish.First = first
	}
	var planned *triage.TakePlan
	err := o.withBroker(ctx, func(desk *triage.Triage) (err error) {
		planned, err = desk.PlanTake(ctx, wish)
		return err
	})
	if err != nil {
		return nil, err
	}
	plan := &act.Plan{Title: "Take " + counted(planned.Bound, "dead letter", "dead letters")}
	plan.Lines = []act.Line{line(act.Plain, "%s ready in %s, %s; the first %d are taken into the ledger.",
		counted(planned.Ready, "message is", "messages are"), planned.Queue, counted(planned.Consumers, "consumer", "consumers"), planned.Bound)}
	if planned.Bound == 0 {
		plan.Nothing = "nothing lies there"
		return plan, nil
	}
	if planned.Consumers > 0 {
		plan.Lines = append(plan.Lines, line(act.Warn, "▲ Others consume this queue: each message goes to one of you."))
	}
	plan.Lines = append(plan.Lines,
		line(act.Plain, "limit    the first %d messages there now; later ones stay", planned.Bound),
		line(act.Plain, "rate     %.0f/s, in the order of the queue; est. %d s", planned.Rate, planned.Bound/int(planned.Rate)+1),
		line(act.Note, "safety   each row is committed before its message is acknowledged; no message is returned on purpose"))
	plan.Lines = append(plan.Lines, o.limitLines(ctx, planned)...)
	plan.Word = wordFor(planned.Bound, fmt.Sprintf("take %d", planned.Bound))
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		planned.Note = reason
		var r *triage.TakeReceipt
		err := o.withBroker(ctx, func(desk *triage.Triage) (err error) {
			r, err = desk.Take(ctx, planned)
			return err
		})
		if r == nil {
			return nil, err
		}
		return takeReceipt(r), nil // an error is what stopped it
	})
	return plan, nil
}

// limitLines say what a run that is cut costs in a queue that counts deliveries.
func (o *Operator) limitLines(ctx context.Context, planned *triage.TakePlan) []act.Line {
	at := fmt.Sprintf("A run that is cut returns at most %d messages", triage.TakePrefetch)
	b, err := o.reader.Broker(ctx)
	if err != nil {
		return []act.Line{line(act.Note, "cut      %s; whether the queue limits deliveries is unknown.", at)}
	}
	q, ok := b.Queue(planned.Queue)
	switch {
	case !ok || q.Type != "quorum":
		return []act.Line{line(act.Note, "cut      %s.", at)}
	case q.DeliveryLimit == nil:
		return []act.Line{line(act.Warn, "▲ %s, one delivery more for each. RabbitMQ 4 drops a message after 20 unless the queue says otherwise.", at)}
	case *q.DeliveryLimit < 0:
		return []act.Line{line(act.Note, "cut      %s; the queue has no delivery limit.", at)}
	default:
		return []act.Line{line(act.Warn, "▲ %s, one delivery more for each: the queue drops a message after %d.", at, *q.DeliveryLimit)}
	}
}

func takeReceipt(r *triage.TakeReceipt) *act.Receipt {
	receipt := &act.Receipt{
		Text:   outcome(r.Taken, r.Planned, "taken", other{r.Absent, "gone"}, other{r.Left, "left"}),
		Partly: r.Left > 0, Audits: audits(r.Audit),
	}
	after := "unknown"
	if r.After >= 0 {
		after = strconv.Itoa(r.After)
	}
	receipt.Lines = append(receipt.Lines, line(act.Plain, "%d new rows, %d known, %d probes; %s %d → %s", r.New, r.Known, r.Probes, r.Queue, r.Before, after))
	if r.Stopped != "" {
		receipt.Lines = append(receipt.Lines, line(act.Warn, "%s", sentence("stopped: "+r.Stopped)))
		receipt.Next = "the same again goes on"
	}
	if r.New > 0 && r.New == len(r.Matched) {
		receipt.Undo = &act.Order{Kind: act.ReturnLetters, Target: act.Target{Name: counted(r.New, "dead letter", "dead letters")}, Targets: targetsOf(r.Matched)}
		if receipt.Next == "" {
			receipt.Next = "u puts them back"
		}
	}
	return receipt
}

func targetsOf(ids []int64) []act.Target {
	targets := make([]act.Target, len(ids))
	for i, id := range ids {
		targets[i] = act.Target{ID: id}
	}
	return targets
}

// planSend plans to send the messages of dead letters elsewhere.
func (o *Operator) planSend(ctx context.Context, order act.Order) (*act.Plan, error) {
	exchange, key := strings.TrimSpace(order.Values[act.FieldExchange]), strings.TrimSpace(order.Values[act.FieldKey])
	plan, ids, err := o.planOpen(ctx, order, "Send")
	if err != nil || plan.Nothing != "" {
		return plan, err
	}
	to := exchange + " with the key " + key
	if exchange == "" {
		to = "the queue " + key
	}
	plan.Lines = append(plan.Lines, line(act.Plain, "to       %s", to))
	checks, refused, back := o.checkRoute(ctx, exchange, key)
	plan.Lines = append(plan.Lines, checks...)
	if refused != "" {
		plan.Nothing = refused
		return plan, nil
	}
	plan.Lines = append(plan.Lines,
		line(act.Note, "A hand-over is not sent to a worker, since it could start twice: requeue it, and another worker is chosen."),
		line(act.Note, "safety   each is one transaction with its audit and its message in the outbox"))
	plan.Word = wordFor(len(ids), fmt.Sprintf("send %d", len(ids)))
	if back {
		plan.Word = "send back"
	}
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		r, err := o.triage.SendLetters(ctx, ids, exchange, key, reason)
		if err != nil {
			return nil, err
		}
		return manyReceipt("Send", r), nil
	})
	return plan, nil
}

// checkRoute says where a message would go, why it must not, and whether it comes back as
// a dead letter when it dies there.
func (o *Operator) checkRoute(ctx context.Context, exchange, key string) (lines []act.Line, refused string, back bool) {
	route, err := o.reader.Route(ctx, exchange, key)
	switch {
	case err != nil:
		return []act.Line{line(act.Warn, "▲ where that leads is unknown: %s", err)}, "", false
	case !route.Exists:
		return nil, "there is no exchange " + exchange, false
	case route.Lost:
		return nil, "it routes to no queue", false
	case slices.Contains(route.Queues, monitor.DeadLetterQueue):
		return nil, "it leads back to " + monitor.DeadLetterQueue + "; put back does that", false
	case route.Unsure:
		lines = append(lines, line(act.Warn, "▲ whether it routes to a queue cannot be seen"))
	}
	if len(route.Queues) > 0 {
		lines = append(lines, line(act.Plain, "reaches  %s", strings.Join(route.Queues, ", ")))
	}
	b, err := o.reader.Broker(ctx)
	if err != nil {
		return lines, "", false
	}
	for _, name := range route.Queues {
		q, ok := b.Queue(name)
		if !ok || q.DeadLetterExchange == nil {
			continue
		}
		dead := key
		if q.DeadLetterKey != "" {
			dead = q.DeadLetterKey
		}
		if again, err := o.reader.Route(ctx, *q.DeadLetterExchange, dead); err == nil && slices.Contains(again.Queues, monitor.DeadLetterQueue) {
			back = true
			lines = append(lines, line(act.Warn, "▲ what dies in %s comes back as a dead letter", name))
		}
	}
	return lines, "", back
}

// planReturn plans to put taken dead letters back to their queues.
func (o *Operator) planReturn(ctx context.Context, order act.Order) (*act.Plan, error) {
	plan, ids, err := o.planOpen(ctx, order, "Put back")
	if err != nil || plan.Nothing != "" {
		return plan, err
	}
	plan.Lines = append(plan.Lines,
		line(act.Note, "Each message goes to the queue that it was taken from, through the outbox; its row stays, as put_back."),
		line(act.Note, "A hand-over goes back to its worker only while its execution is still scheduled by it."))
	plan.Word = wordFor(len(ids), fmt.Sprintf("put back %d", len(ids)))
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		r, err := o.triage.ReturnLetters(ctx, ids, reason)
		if err != nil {
			return nil, err
		}
		return manyReceipt("Put back", r), nil
	})
	return plan, nil
}

// planOpen begins the plan of an act on dead letters that wait, in the order in which
// their executions were requested.
func (o *Operator) planOpen(ctx context.Context, order act.Order, verb string) (*act.Plan, []int64, error) {
	targets := lettersOf(order)
	letters, err := o.reader.Letters(ctx, idsOf(targets))
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(letters, asEnqueued)
	var ids []int64
	for i := range letters {
		if letters[i].Open() {
			ids = append(ids, letters[i].ID)
		}
	}
	plan := &act.Plan{
		Title: verb + " " + counted(len(ids), "dead letter", "dead letters"),
		Lines: []act.Line{line(act.Plain, "%d chosen: %d wait, %d are decided or gone", len(targets), len(ids), len(targets)-len(ids))},
	}
	if len(ids) == 0 {
		plan.Nothing = "none of them waits"
	}
	return plan, ids, nil
}

// planPurgeBroker plans to have the broker delete what lies in the queue.
func (o *Operator) planPurgeBroker(ctx context.Context, _ act.Order) (*act.Plan, error) {
	var planned *triage.TakePlan
	err := o.withBroker(ctx, func(desk *triage.Triage) (err error) {
		planned, err = desk.PlanTake(ctx, triage.TakeOrder{})
		return err
	})
	if err != nil {
		return nil, err
	}
	plan := &act.Plan{Title: fmt.Sprintf("Purge %s by the broker", planned.Queue), Word: "purge for good", Lines: []act.Line{
		line(act.Danger, "The broker deletes all that is ready, %d messages now, and what arrives meanwhile.", planned.Ready),
		line(act.Danger, "No row is written. Nothing brings them back."),
		line(act.Plain, "S takes them into the ledger instead, in about %d s.", planned.Ready/int(planned.Rate)+1),
	}}
	if planned.Ready <= triage.PurgeOffered {
		plan.Nothing = fmt.Sprintf("%d messages lie there; the broker purges only more than %d: S takes them", planned.Ready, triage.PurgeOffered)
		return plan, nil
	}
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		var r *triage.BrokerPurge
		err := o.withBroker(ctx, func(desk *triage.Triage) (err error) {
			r, err = desk.PurgeBroker(ctx, planned.Queue, reason)
			return err
		})
		if err != nil {
			return nil, errors.Join(err, errPurgeUnknown)
		}
		return &act.Receipt{
			Text:   fmt.Sprintf("The broker deleted %d messages; before %d, after %d.", r.Removed, r.Before, r.After),
			Audits: audits(r.Audit),
		}, nil
	})
	return plan, nil
}

// errPurgeUnknown goes with an error of a purge.
var errPurgeUnknown = errors.New("whether the broker has purged is unknown: look at the depth")
