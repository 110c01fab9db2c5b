package checkup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
)

func lookTopology(ctx context.Context, v *visit) (Finding, error) {
	want := broker.ExecutorTopology(v.Config.MessageQueue.RabbitMQ.Quorum())
	wrong, missing := []string{}, false
	for _, exchange := range want.Exchanges {
		exists, err := v.Broker.ExchangeExists(ctx, exchange.Name)
		if err != nil {
			return Finding{}, err
		}
		if !exists {
			missing = true
			wrong = append(wrong, "exchange "+exchange.Name+" does not exist")
		}
	}
	for _, queue := range want.Queues {
		state, err := v.Broker.QueueState(ctx, queue.Name)
		if err != nil {
			return Finding{}, err
		}
		if !state.Exists {
			missing = true
			wrong = append(wrong, "queue "+queue.Name+" does not exist")
		}
	}
	unbound := v.wires.unbound(want)
	differences := v.wires.differences(want)
	wrong = append(append(wrong, unbound...), differences...)
	count := fmt.Sprintf("%d exchanges, %d queues", len(want.Exchanges), len(want.Queues))
	if len(wrong) == 0 {
		if v.wires == nil {
			return passed("%s are there",
				count).with("their arguments and bindings are not seen without the management API"), nil
		}
		return passed("%s and %d bindings are as declared", count, len(want.Bindings)), nil
	}
	var fixes []string
	if missing || len(unbound) > 0 {
		fixes = append(fixes, "restart a replica: it declares and binds what is missing")
	}
	if len(differences) > 0 {
		fixes = append(fixes,
			"delete what differs while nothing is in it, and restart a replica, which declares it anew")
	}
	return failed(strings.Join(fixes, "; "), "%s", differ(len(wrong))).with(wrong...), nil
}

func differ(n int) string {
	if n == 1 {
		return "1 thing is not as declared"
	}
	return fmt.Sprintf("%d things are not as declared", n)
}

// unbound lists missing bindings between existing things. A nil receiver has no information.
func (w *wires) unbound(want broker.Topology) (missing []string) {
	if w == nil {
		return nil
	}
	for _, b := range want.Bindings {
		_, queue := w.queues[b.Queue]
		_, exchange := w.Exchanges[b.Source]
		if queue && exchange && !slices.Contains(w.Bindings, b) {
			missing = append(missing,
				fmt.Sprintf("queue %s is not bound to %s with key %s", b.Queue, b.Source, b.RoutingKey))
		}
	}
	return missing
}

// differences lists existing things with other properties.
func (w *wires) differences(want broker.Topology) (wrong []string) {
	if w == nil {
		return nil
	}
	for _, e := range want.Exchanges {
		is, ok := w.Exchanges[e.Name]
		switch {
		case !ok:
		case is.Kind != e.Kind:
			wrong = append(wrong, fmt.Sprintf("exchange %s is of type %s, declared is %s", e.Name, is.Kind, e.Kind))
		case !is.Durable:
			wrong = append(wrong, "exchange "+e.Name+" is not durable")
		default:
			wrong = append(wrong, compare("exchange "+e.Name, is.Arguments, nil)...)
		}
	}
	for _, q := range want.Queues {
		is, ok := w.queues[q.Name]
		switch {
		case !ok:
		case !is.Durable:
			wrong = append(wrong, "queue "+q.Name+" is not durable")
		default:
			wrong = append(wrong, compare("queue "+q.Name, is.Arguments, q.Arguments)...)
		}
	}
	return wrong
}

// compare lists the arguments that differ. Numbers have different types.
func compare(object string, is, want map[string]any) (wrong []string) {
	text := func(value any) string {
		if number, ok := value.(float64); ok {
			return fmt.Sprint(int64(number))
		}
		return fmt.Sprint(value)
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		switch got, ok := is[key]; {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%s has no %s, declared is %s", object, key, text(want[key])))
		case text(got) != text(want[key]):
			wrong = append(wrong, fmt.Sprintf("%s has %s %s, declared is %s", object, key, text(got), text(want[key])))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if _, ok := want[key]; !ok && (key != "x-queue-type" || text(is[key]) != "classic") {
			wrong = append(wrong,
				fmt.Sprintf("%s has %s %s, which Attune does not declare", object, key, text(is[key])))
		}
	}
	return wrong
}

// lookWorkers checks whether dispatches have a consumer.
func lookWorkers(ctx context.Context, v *visit) (Finding, error) {
	workers, err := v.view.Workers(ctx)
	if err != nil {
		return Finding{}, err
	}
	v.workers = workers
	var wrong, notes, unable []string
	live := 0
	for _, w := range workers.List {
		health := w.Health(workers.At, workers.StaleAfter)
		if why := w.Unable(); why != "" {
			unable = append(unable, "worker "+w.Name+" is given nothing: "+why)
		}
		if health == monitor.WorkerInactive || w.Role != "action" {
			continue
		}
		if health == monitor.WorkerStale {
			notes = append(notes, fmt.Sprintf("worker %s is stale: it is given nothing", w.Name))
			continue
		}
		live++
		problems, err := v.queuesOf(ctx, w, health)
		if err != nil {
			return Finding{}, err
		}
		wrong = append(wrong, problems...)
	}
	switch {
	case len(wrong) > 0:
		return failed("restart the worker; where arguments such as x-message-ttl differ, make worker_queue_ttl_ms the same everywhere, "+
			"drain the worker, stop it, delete the queue, and start the worker, which declares the queue anew",
			"%d live, %s", live, differ(len(wrong))).with(wrong...).with(notes...), nil
	case len(unable) > 0:
		return failed("make room for it on its machine, or stop it: it tries by itself whether it can start actions again",
			"%d live, and %d out of service", live, len(unable)).with(unable...).with(notes...), nil
	case live == 0:
		return passed("no worker is alive").with(notes...), nil
	case v.wires == nil:
		notes = append(notes, "the arguments of their queues are not seen without the management API")
	}
	return passed("%d live, each consumes its queue", live).with(notes...), nil
}

func (v *visit) queuesOf(ctx context.Context, w monitor.Worker,
	health monitor.WorkerHealth,
) (wrong []string, err error) {
	mq := v.Config.MessageQueue.RabbitMQ
	want := broker.WorkerTopology(w.ID, mq.WorkerQueueTTL, mq.Quorum())
	for _, queue := range want.Queues {
		state, err := v.Broker.QueueState(ctx, queue.Name)
		switch {
		case err != nil:
			return nil, err
		case !state.Exists:
			wrong = append(wrong, fmt.Sprintf("worker %s: queue %s does not exist", w.Name, queue.Name))
		case state.Consumers == 0 && queue.Name == message.WorkerExecutionsQueue(w.ID) &&
			health != monitor.WorkerDraining:
			wrong = append(wrong, fmt.Sprintf("worker %s: %s has no consumer", w.Name, queue.Name))
		}
	}
	for _, text := range append(v.wires.unbound(want), v.wires.differences(want)...) {
		wrong = append(wrong, "worker "+w.Name+": "+text)
	}
	return wrong, nil
}
