package act

import (
	"context"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

// The acts that send the messages of dead letters: elsewhere, or back.
const (
	SendDeadLetters   Kind = "dead_letter.send"
	ReturnDeadLetters Kind = "dead_letter.return"
)

var (
	_ = declare(SendDeadLetters, Act{
		Key: "m", Label: "send", Help: "its message to another exchange or queue",
		Many: "their messages to another exchange or queue",
		Fields: []Field{
			{Name: FieldExchange, Label: "exchange", Hint: "empty: straight to a queue"},
			{Name: FieldKey, Label: "key or queue", Hint: "the routing key, or the queue's name", Check: checkGiven},
		},
		offers: []offer{in("dead letter", 3, openFits)}, plan: (*Operator).planSend, whole: true,
	})
	_ = declare(ReturnDeadLetters, Act{
		Key: "b", Label: "put back", Help: "its message to the queue it was taken from",
		Many:  "their messages to the queues they were taken from",
		Route: Route{Path: "dead-letters/{id}/return"},
		offers: []offer{in("dead letter", 5, func(l *monitor.LedgerEntry, item *Item) {
			if openFits(l, item); item.Not == "" && l.TakenFrom == "" {
				item.Not = "no operator took it from a queue"
			}
		})},
		plan: (*Operator).planReturn, whole: true,
	})
)

func (o *Operator) planSend(ctx context.Context, request Request, plan *Plan) error {
	exchange, key := request.value(FieldExchange), request.value(FieldKey)
	open, err := o.open(ctx, request, plan)
	if err != nil {
		return err
	}
	plan.Lines.Add(Plain, "to       %s", phrase.Destination(exchange, key))
	back, err := o.sayRoute(ctx, plan, exchange, key)
	if err != nil {
		return err
	}
	open.sayNotKept(plan)
	plan.Lines.Add(Note,
		"A dispatch is not sent to a worker, since it could start twice: requeue it, and another worker is chosen.")
	plan.Lines.Add(Note, "safety   each is one transaction with its audit and its message in the outbox")
	if back {
		plan.Word = "send back"
	}
	run := o.eachDeadLetter(request.Kind, open.ids(),
		func(ctx context.Context, id int64, reason string) (int64, error) {
			return o.triage.SendDeadLetter(ctx, id, exchange, key, reason)
		})
	plan.Run = func(ctx context.Context, reason string) (*Receipt, error) {
		if err := o.triage.Accepts(ctx, exchange, key); err != nil {
			return nil, err
		}
		return run(ctx, reason)
	}
	return nil
}

// sayRoute describes where a message would go, or why it must not go there. It reports whether the message can come
// back as a dead letter.
func (o *Operator) sayRoute(ctx context.Context, plan *Plan, exchange, key string) (back bool, _ error) {
	route, err := o.reader.Route(ctx, exchange, key)
	switch {
	case err != nil:
		plan.Lines.Add(Warn, "▲ where that leads is unknown: %s", err)
		return false, nil
	case route.Refuses() != "":
		return false, nothing(route.Refuses())
	case exchange == monitor.DeadLetterExchange, slices.Contains(route.Queues, monitor.DeadLetterQueue):
		return false, nothing("it leads back to " + monitor.DeadLetterQueue + "; put back does that")
	case route.Unsure:
		plan.Lines.Add(Warn, "▲ no queue is bound with this key: whether a pattern leads to one, only the broker knows")
	}
	if len(route.Queues) > 0 {
		plan.Lines.Add(Plain, "reaches  %s", strings.Join(route.Queues, ", "))
	}
	b, err := o.reader.Broker(ctx)
	if err != nil {
		return false, nil //nolint:nilerr // the route is known, only not what happens to a message that dies there
	}
	for _, name := range route.Queues {
		q, ok := b.Queue(name)
		if ok && q.DeadLetterExchange != nil && *q.DeadLetterExchange == monitor.DeadLetterExchange {
			back = true
			plan.Lines.Add(Warn, "▲ what dies in %s comes back as a dead letter", name)
		}
	}
	return back, nil
}

// planReturn plans to put dead letters back into the queues that they were taken from.
func (o *Operator) planReturn(ctx context.Context, request Request, plan *Plan) error {
	if request.Direct {
		plan.Run = one(&request, "stays as it is",
			o.eachDeadLetter(request.Kind, request.IDs(), o.triage.ReturnDeadLetter))
		return nil
	}
	open, err := o.open(ctx, request, plan)
	if err != nil {
		return err
	}
	open.sayNotKept(plan)
	plan.Lines.Add(Note,
		"Each message goes to the queue that it was taken from, through the outbox; its row stays, as put_back.")
	plan.Lines.Add(Note, "A dispatch goes back to its worker only while its execution is still scheduled by it.")
	plan.Run = o.eachDeadLetter(request.Kind, open.ids(), o.triage.ReturnDeadLetter)
	return nil
}
