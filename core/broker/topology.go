package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/attune-go/attune/core/message"
)

// Names of the exchange and policy that catch dead letters without a binding.
const (
	ExchangeUnrouted = "attune.dlx.unrouted"
	PolicyUnrouted   = "attune-dlx-unrouted"
)

// WorkerQueueTTLDefault is the default time to live of a dispatch in its queue; every participant
// must use the same.
const WorkerQueueTTLDefault = 5 * time.Minute

// toDeadLetters are the arguments of a queue whose dead letters are kept.
func toDeadLetters() Table { return Table{"x-dead-letter-exchange": message.ExchangeDeadLetter} }

// DeclareCommon declares the objects that every participant declares: the exchanges and the
// dead-letter queue. An error does not stop the other declarations; a *TopologyError names an
// object with other properties.
func (b *Broker) DeclareCommon(ctx context.Context) error { return b.declare(ctx, (*Topology).common) }

func (t *Topology) common() {
	t.exchange(message.ExchangeEvents, "topic", false)
	t.exchange(message.ExchangeExecutions, "topic", false)
	t.exchange(message.ExchangeNotifications, "fanout", false)
	t.exchange(message.ExchangeDeadLetter, "direct", false)
	t.queue(message.QueueDeadLetter, nil)
	t.bind(message.QueueDeadLetter, message.ExchangeDeadLetter, "#") // as all participants do; matches nothing
}

// DeclareExecutor declares the common objects, the queues of the executor, and the routes of dead
// letters: a binding for every routing key except those of workers (BindWorkerDeadLetters), and the
// catching exchange with its policy if the management API allows it. Either alone carries every
// dead letter, so a missing policy is no error. Config.NoDeadLetters omits both.
func (b *Broker) DeclareExecutor(ctx context.Context) error {
	err := b.declare(ctx, func(t *Topology) {
		t.common()
		t.executor()
		if !b.cfg.NoDeadLetters {
			t.bind(message.QueueDeadLetter, message.ExchangeDeadLetter, message.DeadLetterKeys()...)
		}
	})
	if err != nil || b.cfg.ManagementURL == "" || b.cfg.NoDeadLetters {
		return err
	}
	if err := b.catchUnrouted(ctx); err != nil {
		b.logger.DebugContext(ctx, "No policy catches dead letters without a binding", "reason", err)
	}
	return nil
}

func (t *Topology) executor() {
	for _, q := range []struct{ queue, exchange, key string }{
		{message.QueueEvents, message.ExchangeEvents, message.KeyEventCreated},
		{message.QueueEnforcements, message.ExchangeExecutions, message.PatternEnforcement},
		{message.QueueExecutionRequests, message.ExchangeExecutions, message.KeyExecutionRequested},
		{message.QueueExecutionStatus, message.ExchangeExecutions, message.KeyExecutionStatusChanged},
		{message.QueueExecutionCompleted, message.ExchangeExecutions, message.KeyExecutionCompleted},
		{message.QueueInquiryResponses, message.ExchangeExecutions, message.KeyInquiryResponded},
	} {
		t.queue(q.queue, toDeadLetters())
		t.bind(q.queue, q.exchange, q.key)
	}
}

// DeclareBatches declares the queue of completions in batches, which existing executors lack. Its
// dead letters carry the routing key of single completions.
func (b *Broker) DeclareBatches(ctx context.Context) error {
	return b.declare(ctx, func(t *Topology) {
		arguments := toDeadLetters()
		arguments["x-dead-letter-routing-key"] = message.KeyExecutionCompleted
		t.queue(message.QueueExecutionBatches, arguments)
	})
}

// DeclareWorker declares the three queues of a worker, as the worker itself does. A ttl of zero is
// WorkerQueueTTLDefault. The exchanges must exist.
func (b *Broker) DeclareWorker(ctx context.Context, id int64, ttl time.Duration) error {
	if ttl <= 0 {
		ttl = WorkerQueueTTLDefault
	}
	err := b.declare(ctx, func(t *Topology) { t.worker(id, ttl) })
	if refused, ok := errors.AsType[*TopologyError](err); ok && strings.Contains(refused.Reason, "x-message-ttl") {
		return fmt.Errorf("%w: this queue has another TTL than the configured %s; drain the worker, stop it, delete "+
			"the queue and start the worker, which declares it anew", err, ttl)
	}
	return err
}

func (t *Topology) worker(id int64, ttl time.Duration) {
	dispatches := toDeadLetters()
	dispatches["x-message-ttl"] = milliseconds(ttl)
	t.queue(message.WorkerExecutionsQueue(id), dispatches)
	t.bind(message.WorkerExecutionsQueue(id), message.ExchangeExecutions, message.DispatchKey(id))
	t.queue(message.WorkerCancelQueue(id), toDeadLetters())
	t.bind(message.WorkerCancelQueue(id), message.ExchangeExecutions, message.CancelKey(id))
	t.queue(message.WorkerPacksQueue(id), toDeadLetters())
	t.bind(message.WorkerPacksQueue(id), message.ExchangeEvents, message.KeyPackRegistered, message.KeyPackDeleted)
}

// milliseconds has the integer width that others declare, if the value fits.
func milliseconds(d time.Duration) any {
	if ms := d.Milliseconds(); ms > math.MaxInt32 {
		return ms
	}
	return int32(d.Milliseconds())
}

// BindWorkerDeadLetters routes the dead letters of a worker's own queues. It must precede the first
// dispatch to the worker. With Config.NoDeadLetters it does nothing.
func (b *Broker) BindWorkerDeadLetters(ctx context.Context, id int64) error {
	if b.cfg.NoDeadLetters {
		return nil
	}
	return b.declare(ctx, func(t *Topology) {
		t.bind(message.QueueDeadLetter, message.ExchangeDeadLetter, message.DispatchKey(id), message.CancelKey(id))
	})
}

// catchUnrouted gives the dead-letter exchange an alternate exchange by a policy, unless another
// policy is in force: only one policy applies to an exchange.
func (b *Broker) catchUnrouted(ctx context.Context) error {
	management, _, err := OpenManagement(b.cfg, b.cfg.CallTimeout)
	if err != nil {
		return err
	}
	defer management.Close()
	policies, err := management.Policies(ctx)
	if err != nil {
		return err
	}
	for _, policy := range policies {
		if policy.Name != PolicyUnrouted && governs(policy, message.ExchangeDeadLetter) {
			return fmt.Errorf("policy %q governs exchange %s already", policy.Name, message.ExchangeDeadLetter)
		}
	}
	err = b.declare(ctx, func(t *Topology) {
		t.exchange(ExchangeUnrouted, "fanout", true)
		t.bind(message.QueueDeadLetter, ExchangeUnrouted, "")
	})
	if err != nil {
		return err
	}
	return management.PutPolicy(ctx, Policy{
		Name: PolicyUnrouted, Pattern: "^" + regexp.QuoteMeta(message.ExchangeDeadLetter) + "$", ApplyTo: "exchanges",
		Definition: map[string]any{"alternate-exchange": ExchangeUnrouted},
	})
}

// governs reports whether a policy applies to an exchange. An unreadable pattern counts as a match,
// because replacing an active policy is worse than lacking ours.
func governs(policy Policy, exchange string) bool {
	if policy.ApplyTo != "exchanges" && policy.ApplyTo != "all" {
		return false
	}
	pattern, err := regexp.Compile(policy.Pattern)
	return err != nil || pattern.MatchString(exchange)
}
