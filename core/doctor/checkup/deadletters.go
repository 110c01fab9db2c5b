package checkup

import (
	"context"
	"errors"
	"regexp"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

// lookDeadLetters checks whether a dead letter of each routing key would be kept. A probe through an
// empty queue vanishes; behind waiting dead letters it would be counted, so then the last probe of a replica
// counts.
func lookDeadLetters(ctx context.Context, v *visit) (Finding, error) {
	queue, err := v.Broker.QueueState(ctx, message.QueueDeadLetter)
	if err != nil {
		return Finding{}, err
	}
	exchange, err := v.Broker.ExchangeExists(ctx, message.ExchangeDeadLetter)
	if err != nil {
		return Finding{}, err
	}
	if !queue.Exists || !exchange {
		return failed("restart a replica, which declares and binds them",
			"%s or %s does not exist: dead letters are lost",
			message.ExchangeDeadLetter, message.QueueDeadLetter), nil
	}
	var found Finding
	report, age := v.replicas.Routes()
	switch {
	case !v.NoProbe && v.alarm == "" && queue.Ready == 0:
		found, err = v.probeDeadLetters(ctx, v.deadLetterKeys())
	case report != nil:
		found = routes(report.Routed+len(report.Lost), report.Lost, "probed by a replica "+phrase.Span(age)+" ago")
	case v.NoProbe:
		found = skipped("no replica has probed the routes")
	case v.alarm != "":
		err = errors.New("the broker takes no probes: " + v.alarm)
	default:
		found = Finding{
			Status: Unchecked, Found: "dead letters wait, and a probe would be counted with them; no replica has probed the routes",
			Fix: "decide about the dead letters, or start a replica, which probes them",
		}
	}
	if err != nil {
		return Finding{}, err
	}
	if !v.Config.MessageQueue.RabbitMQ.DeadLetter.Enabled {
		found = found.with("no replica handles them: message_queue.rabbitmq.dead_letter.enabled is false")
	}
	if queue.Ready > 0 {
		found = found.with(phrase.Plural(queue.Ready, "dead letter waits", "dead letters wait") + " in " +
			message.QueueDeadLetter + ", " +
			phrase.Plural(queue.Consumers, "consumer", "consumers"))
	}
	return found, nil
}

// deadLetterKeys are all routing keys of possible dead letters.
func (v *visit) deadLetterKeys() []string {
	keys := message.DeadLetterKeys()
	if v.workers == nil {
		return keys
	}
	for _, w := range v.workers.List {
		if w.Role == "action" && w.Health(v.workers.At, v.workers.StaleAfter) != monitor.WorkerInactive {
			keys = append(keys, message.DispatchKey(w.ID), message.CancelKey(w.ID))
		}
	}
	return keys
}

func (v *visit) probeDeadLetters(ctx context.Context, keys []string) (Finding, error) {
	var lost []string
	for _, probe := range v.Broker.ProbeDeadLetters(ctx, keys) {
		switch {
		case probe.Err != nil:
			return Finding{}, probe.Err
		case !probe.Routed:
			lost = append(lost, probe.Key)
		}
	}
	return routes(len(keys), lost, "probed"), nil
}

func routes(n int, lost []string, how string) Finding {
	if len(lost) == 0 {
		return passed("all %d routes lead to a queue (%s)", n, how)
	}
	f := failed("restart a replica, which binds "+message.QueueDeadLetter+" to "+message.ExchangeDeadLetter+
		" with each key, or bind it yourself",
		"%d of %d routes lead nowhere (%s): dead letters with these keys are lost", len(lost), n, how)
	for _, key := range lost {
		f = f.with("key " + key)
	}
	return f
}

// lookDeaths checks whether the broker dead-letters expired and rejected messages.
func lookDeaths(ctx context.Context, v *visit) (Finding, error) {
	direct := v.wires != nil && v.wires.Exchanges[message.ExchangeDeadLetter].Kind == "direct"
	switch {
	case v.NoProbe:
		return skipped("shows by a probe only"), nil
	case v.alarm != "":
		return Finding{}, errors.New("the broker takes no probes: " + v.alarm)
	case !direct:
		// Through another type of exchange the probe would arrive with the dead letters.
		return skipped("is probed only where the management API shows that %s is of type direct",
			message.ExchangeDeadLetter), nil
	}
	switch err := v.Broker.ProbeDeath(ctx); {
	case errors.Is(err, broker.ErrDeathLost):
		return failed("look into the log of the broker", "%s", err), nil
	case err != nil && refusedAccess.MatchString(err.Error()):
		return skipped("this login may not make the private queues of the probe (%s)", lastLine(err)), nil
	case err != nil:
		return Finding{}, err
	}
	return passed("one of each arrived by way of %s (probed)", message.ExchangeDeadLetter), nil
}

var refusedAccess = regexp.MustCompile(`ACCESS_REFUSED|Exception \(403\)`)
