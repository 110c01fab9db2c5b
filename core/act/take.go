package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// The acts on the broker's queue of dead letters.
const (
	TakeDeadLetters Kind = "dead_letter.take"
	PurgeBroker     Kind = "dead_letter.purge-broker"
)

var (
	_ = declare(TakeDeadLetters, Act{
		Key: "s", Label: "take", Help: "messages from the broker into the ledger",
		Fields: []Field{
			{
				Name: FieldQueue, Label: "from the queue", Value: monitor.DeadLetterQueue,
				Hint: "or another, such as worker.7.executions", HTTP: true,
				Usage: "take from this queue, such as that of a lost worker",
			},
			{
				Name: FieldFirst, Label: "the first", Type: Number, Hint: "how many; empty: all that lie there now",
				Check: numbered("a number of messages", maxTake, true), HTTP: true,
				Usage: "how many to take at most, 0 for all",
			},
			{
				Name: FieldRate, Type: Decimal, Value: fmt.Sprint(triage.TakeRate), Check: checkRate,
				Usage: "how many to take in a second",
			},
			{Name: FieldReason, Usage: "name the rows with this reason"},
			{Name: FieldAction, Usage: "name the rows about actions whose ref matches; * stands for anything"},
			{Name: FieldWorker, Usage: "name the rows of messages to the worker with this id"},
			{Name: FieldMessage, Usage: "name the rows of this message type"},
			{Name: FieldExecution, Type: Number, Usage: "name the rows about this execution"},
		},
		Command: Command{
			Group: "dlq", Use: "take",
			Short: "Take messages from the broker's queue of dead letters into the ledger",
			Long: "Take messages from the broker's queue of dead letters into the ledger, in their order, as rows that\n" +
				"wait for a person. An engine does that by itself while message_queue.rabbitmq.dead_letter.enabled is\n" +
				"true. It takes no more messages than are ready when it begins. Each row is committed before its\n" +
				"message is acknowledged, and no message is returned on purpose: filters do not choose messages, they\n" +
				"choose the rows that the last line names for the next command. If you interrupt it, run the same\n" +
				"command again.",
			Example: "  attune-executor dlq take --dry-run\n  attune-executor dlq take --first 100 --yes\n" +
				"  attune-executor dlq take --queue worker.7.executions --note 'worker 7 is gone'\n" +
				"  attune-executor dlq take --action 'core.http*' --yes",
			Note: "the reason, for the audit", DryRun: "show what would be taken and do nothing", Yes: "do not ask",
			Asks: true, Connects: true, Noun: "message",
		},
		Route:  Route{Path: "dead-letters/take", Plans: true},
		offers: []offer{in[any]("broker", 1, nil)}, plan: (*Operator).planTake,
	})
	_ = declare(PurgeBroker, Act{
		Key: "x", Label: "purge", Help: "the broker deletes all messages of the queue; nothing brings them back",
		Route: Route{Path: "dead-letters/purge", Confirms: true},
		offers: []offer{in("broker", 2, func(depth int64, item *Item) {
			if item.Touches = "all messages of " + monitor.DeadLetterQueue; depth <= triage.PurgeOffered {
				item.Not = fmt.Sprintf("only above %d messages; S takes them", triage.PurgeOffered)
			}
		})},
		plan: (*Operator).planPurgeBroker,
	})
)

// maxTake bounds the messages that one act takes.
const maxTake = math.MaxInt32

func checkRate(value string) error {
	if rate, err := strconv.ParseFloat(value, 64); value != "" && (err != nil || rate <= 0) {
		return fmt.Errorf("%q is not a rate: it is a number above 0", value)
	}
	return nil
}

func (o *Operator) readTake(ctx context.Context, wish triage.TakeRequest) (*triage.TakePlan, error) {
	return withBroker(ctx, o,
		func(connected *triage.Triage) (*triage.TakePlan, error) { return connected.PlanTake(ctx, wish) })
}

// planTake plans to take messages from a queue of the broker into the ledger.
func (o *Operator) planTake(ctx context.Context, request Request, plan *Plan) error {
	rate, _ := strconv.ParseFloat(request.value(FieldRate), 64) // it has been checked
	wish := triage.TakeRequest{
		Queue: request.value(FieldQueue), First: int(request.number(FieldFirst)), Rate: rate, Note: request.Reason,
		Match: triage.DeadLetterMatch{
			Reason: request.value(FieldReason), Action: request.value(FieldAction), Worker: request.value(FieldWorker),
			Type: request.value(FieldMessage), Execution: request.number(FieldExecution),
		},
	}
	planned, err := o.readTake(ctx, wish)
	if err != nil {
		return err
	}
	plan.Data = planned
	plan.Run = does(func(ctx context.Context, reason string) (*triage.TakeReceipt, error) {
		planned.Note = reason
		r, err := withBroker(ctx, o,
			func(connected *triage.Triage) (*triage.TakeReceipt, error) { return connected.Take(ctx, planned) })
		if r != nil {
			err = nil // the receipt says why it stopped
		}
		return r, err
	}, func(r *triage.TakeReceipt) *Receipt { return takeReceipt(r, wish.Match) })
	plan.Title, plan.Word = "Take "+deadLetters(planned.Bound), wordFor(planned.Bound, "take %d", planned.Bound)
	plan.Lines.Add(Plain, "%s ready in %s, %s; the first %d are taken into the ledger.",
		phrase.Plural(planned.Ready, "message is", "messages are"), planned.Queue,
		phrase.Plural(planned.Consumers, "consumer", "consumers"), planned.Bound)
	if planned.Bound == 0 {
		return nothing("nothing lies there")
	}
	if planned.Consumers > 0 {
		plan.Lines.Add(Warn, "▲ This queue has other consumers: each message goes to one of them or to you.")
	}
	plan.Lines.Add(Plain, "limit    the first %s there now; later ones stay",
		phrase.Plural(planned.Bound, "message", "messages"))
	plan.Lines.Add(Plain, "rate     %.0f/s, in the order of the queue; est. %d s", planned.Rate,
		planned.Bound/int(planned.Rate)+1)
	plan.Lines.Add(Note,
		"safety   each row is committed before its message is acknowledged; no message is returned on purpose")
	plan.Lines = append(plan.Lines, o.limitLine(ctx, planned))
	return nil
}

// limitLine warns of messages that an interrupted run returns to a queue with a delivery limit.
func (o *Operator) limitLine(ctx context.Context, planned *triage.TakePlan) TextLine {
	at := fmt.Sprintf("A run that is cut returns at most %d messages", triage.TakePrefetch)
	b, err := o.reader.Broker(ctx)
	if err != nil {
		return line(Note, "cut      %s; whether the queue limits deliveries is unknown.", at)
	}
	q, ok := b.Queue(planned.Queue)
	switch {
	case !ok || q.Type != "quorum":
		return line(Note, "cut      %s.", at)
	case q.DeliveryLimit == nil:
		return line(Warn, "▲ %s, one delivery more for each. "+
			"RabbitMQ 4 drops a message after 20 unless the queue says otherwise.", at)
	case *q.DeliveryLimit < 0:
		return line(Note, "cut      %s; the queue has no delivery limit.", at)
	default:
		return line(Warn, "▲ %s, one delivery more for each: the queue drops a message after %d.", at,
			*q.DeliveryLimit)
	}
}

func takeReceipt(r *triage.TakeReceipt, match triage.DeadLetterMatch) *Receipt {
	receipt := &Receipt{
		Text:   outcome(r.Taken, r.Planned, "taken", other{r.Absent, "gone"}, other{r.Left, "left"}),
		Partly: r.Left > 0 || r.Absent > 0, Audits: audits(r.Audit), Planned: r.Planned, Done: r.Taken,
		Remaining: r.Left,
	}
	switch {
	case r.Lost != "":
		receipt.Lines.Add(Warn, "▲ %d had left the queue; %s", r.Absent, r.Lost)
	case r.Absent > 0:
		receipt.Lines.Add(Note, "%d had left the queue, which has other consumers", r.Absent)
	}
	after := "unknown"
	if r.After >= 0 {
		after = strconv.Itoa(r.After)
	}
	receipt.Lines.Add(Plain, "%s, %d known, %s; %s %d → %s",
		phrase.Plural(r.New, "new row", "new rows"), r.Known, phrase.Plural(r.Probes, "probe", "probes"),
		r.Queue, r.Before, after)
	if match != (triage.DeadLetterMatch{}) {
		ids := strings.Trim(fmt.Sprint(r.Matched), "[]")
		if r.Matching > len(r.Matched) {
			ids += " …"
		}
		receipt.Lines.Add(Plain, "%s: %s", phrase.Plural(r.Matching, "matching row", "matching rows"),
			cmp.Or(ids, "none"))
	}
	switch messages := phrase.Plural(r.Planned, "message", "messages"); {
	case r.Stopped != "":
		receipt.Lines.Add(Warn, "%s", sentence("stopped: "+r.Stopped))
		receipt.Next = "the same again goes on"
		receipt.Problem = &Problem{
			Kind: Stopped, Text: fmt.Sprintf("stopped with %d of %s left: %s", r.Left, messages, r.Stopped),
			Instead: "run the same command again",
		}
	case r.Lost != "":
		receipt.Problem = refuse(Incomplete, "%d of %s had left %s before they were taken: %s", r.Absent, messages,
			r.Queue, r.Lost)
	}
	if r.New > 0 && r.New == len(r.Matched) {
		receipt.Undo = ofIDs(ReturnDeadLetters, r.Matched...)
	}
	return receipt
}

// planPurgeBroker plans to purge the queue of dead letters on the broker.
func (o *Operator) planPurgeBroker(ctx context.Context, _ Request, plan *Plan) error {
	planned, err := o.readTake(ctx, triage.TakeRequest{})
	if err != nil {
		return err
	}
	plan.Title = fmt.Sprintf("Purge %s by the broker", planned.Queue)
	plan.Word, plan.Confirm = "purge for good", "purge for good"
	plan.Lines.Add(Danger, "The broker deletes all that is ready, %s now, and what arrives meanwhile.",
		phrase.Plural(planned.Ready, "message", "messages"))
	plan.Lines.Add(Danger, "No row is written. Nothing brings them back.")
	plan.Lines.Add(Plain, "A take moves them into the ledger instead, in about %d s.",
		planned.Ready/int(planned.Rate)+1)
	if planned.Ready <= triage.PurgeOffered {
		return refuse(Refused, "%d messages lie in %s; the broker purges only more than %d: take them", planned.Ready,
			planned.Queue, triage.PurgeOffered)
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.BrokerPurge, error) {
		r, err := withBroker(ctx, o, func(connected *triage.Triage) (*triage.BrokerPurge, error) {
			return connected.PurgeBroker(ctx, planned.Queue, reason)
		})
		if err != nil && !errors.Is(err, triage.ErrFewMessages) {
			err = errors.Join(err, errPurgeUnknown)
		}
		if err != nil {
			return nil, err
		}
		return r, nil
	}, func(r *triage.BrokerPurge) *Receipt {
		return &Receipt{
			Text: fmt.Sprintf("The broker deleted %s; before %d, after %d.",
				phrase.Plural(r.Removed, "message", "messages"), r.Before, r.After),
			// Others left the queue in another way.
			Partly: r.After >= 0 && r.Before-r.After > r.Removed, Audits: audits(r.Audit),
		}
	})
	return nil
}

// errPurgeUnknown is joined to the error of a purge.
var errPurgeUnknown = errors.New("whether the broker has purged is unknown: look at the depth")
