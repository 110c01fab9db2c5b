package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/supervise"
)

// hot is the main loop of the engine. One reader receives the messages of the two hot queues,
// decodes them and passes each to the lane of its action; the lanes run concurrent batches
// (lane.go). All messages of an action meet the same lane in the order of their delivery. So queues
// keep their order, and batches of one replica do not wait for each other's queues.
//
// Messages in hand are unacknowledged, and the prefetch of the consumers bounds them. The broker
// delivers them again if the replica ends.
type hot struct {
	supervise.Base
	*shared

	completed *broker.Consumer
	batched   *broker.Consumer // of completions in batches; nil in tests without any
	requested *broker.Consumer
}

// shared holds the parts that all lanes use.
type shared struct {
	lanes []*lane // the first one also takes work without an action

	scheduler *scheduler.Scheduler
	logger    *slog.Logger
	metrics   *Metrics
	gate      *batch.Gate
	config    stepConfig
	handler   deadLetterHandler   // settles dead letters that batches have decided; nil without a handler
	soon      func(time.Duration) // receives the delay of the next retry; may be nil

	spans batchSpans // nil while tracing is off

	workflows workflowRunner // starts and advances workflows; nil in tests without any

	reclaim func(context.Context, []int64) ([]int64, error) // puts stale claims back; may be nil

	unstarted unstartedList

	found             chan recovery.Found
	deadLetterBatches chan []*deadletter.Message
	wake              *alarm       // fires when a queue's waiting time is over
	absents           atomic.Int64 // messages of all lanes that wait for their row
}

func newHot(
	completed, requested *broker.Consumer, lanes int, sched *scheduler.Scheduler, config stepConfig,
	logger *slog.Logger, metrics *Metrics,
) *hot {
	h := &hot{completed: completed, requested: requested, shared: &shared{
		scheduler: sched, config: config, logger: logger, metrics: cmp.Or(metrics, NewMetrics(nil)),
		found: make(chan recovery.Found, 1), deadLetterBatches: make(chan []*deadletter.Message), wake: newAlarm(),
	}}
	for range lanes {
		h.lanes = append(h.lanes, newLane(h.shared, len(h.lanes) == 0))
	}
	return h
}

// Start implements supervise.Service.
func (h *hot) Start(ctx context.Context) error { return h.Launch(ctx, nil, h.run) }

// Submit passes the findings of a sweep to the first lane. It blocks while the lane has not taken
// the previous ones.
func (h *hot) Submit(ctx context.Context, found recovery.Found) error {
	return pass(ctx, h.found, found, "submit findings to the lanes")
}

// pass sends a value to a loop, and waits until the loop takes it.
func pass[T any](ctx context.Context, to chan<- T, value T, what string) error {
	select {
	case to <- value:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
}

// run reads until the engine stops, and waits for the batches in flight.
func (h *hot) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, l := range h.lanes {
		running.Go(func() { l.run(ctx) })
	}
	h.receive(ctx)
	running.Wait()
}

// receive distributes deliveries to the lanes. It waits for none of them: a busy lane delays no
// other.
func (h *hot) receive(ctx context.Context) {
	for h.gate.Enter(ctx) {
		select {
		case <-ctx.Done():
			return
		case batch := <-h.completed.Batches():
			h.spread(h.read(ctx, batch, message.TypeExecutionCompleted),
				func(l *lane) *Box[item] { return l.ended })
		case batch := <-h.batches():
			h.spread(h.read(ctx, batch, message.TypeExecutionCompleted),
				func(l *lane) *Box[item] { return l.ended })
		case batch := <-h.requested.Batches():
			h.spread(h.read(ctx, batch, message.TypeExecutionRequested),
				func(l *lane) *Box[item] { return l.requested })
		}
	}
}

// manyWaiting is the number of waiting messages of one kind from which a lane's stale deliveries
// are dropped. A lane that waits for the database does not drop them itself.
const manyWaiting = 1000

func (h *hot) spread(items []item, box func(*lane) *Box[item]) {
	shares := make(map[*lane][]item, len(h.lanes))
	for _, it := range items {
		l := h.LaneOf(it.action)
		shares[l] = append(shares[l], it)
	}
	for l, share := range shares {
		b := box(l)
		if b.Len() > manyWaiting {
			b.Keep(func(it item) bool { return !it.delivery.Stale() })
		}
		b.Put(share...)
	}
}

func (h *shared) LaneOf(action string) *lane {
	return h.lanes[LaneOf(action, len(h.lanes))]
}

// fill lets the lanes of their actions fill queues with free slots and waiting executions.
func (h *shared) fill(result scheduler.Result) {
	for i, queue := range result.Unfilled {
		h.LaneOf(result.UnfilledOf[i]).unfilled.Put(queue)
	}
}

// underWay describes the oldest running batch: its start, and its number of executions. It is zero
// while no batch runs.
func (h *shared) underWay() (since time.Time, executions int64) {
	oldest := int64(0)
	for _, l := range h.lanes {
		if begun := l.begun.Load(); begun > 0 && (oldest == 0 || begun < oldest) {
			oldest, executions = begun, l.inFlight.Load()
		}
	}
	if oldest == 0 {
		return since, 0
	}
	return time.Unix(0, oldest), executions
}

// inFlight is the number of executions in running batches.
func (h *shared) inFlight() (executions int64) {
	for _, l := range h.lanes {
		executions += l.inFlight.Load()
	}
	return executions
}

// lastDone is the time of the last commit of a batch, zero before the first.
func (h *shared) lastDone() time.Time {
	last := int64(0)
	for _, l := range h.lanes {
		last = max(last, l.lastDone.Load())
	}
	if last == 0 {
		return time.Time{}
	}
	return time.Unix(0, last)
}

// item is one execution of a delivery, or one finding of a sweep, in a batch.
type item struct {
	execution  int64
	action     string         // selects its lane; empty for a finding
	hint       scheduler.Hint // what its message says; empty for a finding
	ended      bool
	said       lifecycle.Status // the reported status
	delivery   *broker.Delivery // nil for a finding
	open       *atomic.Int32    // unsettled items of the delivery; nil for a single item
	deadLetter *deadletter.Message
	alone      bool // the delivery is settled alone, not with its batch
	attempts   int  // failed tries
	blocked    bool // another transaction held its rows when it was tried alone
	left       int  // how often it was left because another batch held its queue
	absent     bool // it waits for its row
}

// settled reports that the item was the last of its delivery, which the caller acknowledges.
func (it *item) settled() bool { return it.open == nil || it.open.Add(-1) == 0 }

// read decodes a batch. It dead-letters unreadable deliveries at once, so that they never block
// others. Each delivery is settled by itself.
func (h *hot) read(ctx context.Context, batch *broker.Batch, kind string) []item {
	items := make([]item, 0, len(batch.Deliveries))
	add := func(d *broker.Delivery, payload json.RawMessage) {
		it := item{delivery: d, alone: true, ended: kind == message.TypeExecutionCompleted}
		if err := it.decode(payload); err != nil {
			h.unreadable(ctx, d, kind, err)
			return
		}
		items = append(items, it)
	}
	for i := range batch.Deliveries {
		d := &batch.Deliveries[i]
		if d.Type != message.TypeExecutionBatchCompleted {
			add(d, nil)
			continue
		}
		singles, err := message.Split(d.Body)
		if err != nil {
			h.unreadable(ctx, d, d.Type, err)
			continue
		}
		for n, part := range d.Split(singles) {
			add(part, singles[n].Payload)
		}
	}
	return items
}

// batches are the completions in batches.
func (h *hot) batches() <-chan *broker.Batch {
	if h.batched == nil {
		return nil
	}
	return h.batched.Batches()
}

// maxHintedConfig bounds the parameters of a request that are kept beside its delivery.
const maxHintedConfig = 4 << 10

// decode reads the subject of the delivery. payload is its message's, nil if only the body exists.
func (it *item) decode(payload json.RawMessage) error {
	if !it.ended {
		envelope, err := message.Decode[message.ExecutionRequested](it.delivery.Body)
		it.execution = envelope.Payload.ExecutionID
		it.action = actionOf(envelope.Payload.ActionRef, envelope.Payload.ActionID)
		it.hint = scheduler.Hint{ActionRef: envelope.Payload.ActionRef}
		if id := envelope.Payload.ActionID; id != nil {
			it.hint.ActionID = *id
		}
		if config := envelope.Payload.Config; len(config) <= maxHintedConfig && string(config) != "null" {
			it.hint.Config = config
		}
		return err
	}
	var report message.ExecutionCompleted
	var err error
	if payload != nil {
		report, err = message.DecodePayload[message.ExecutionCompleted](payload)
	} else {
		var envelope message.Envelope[message.ExecutionCompleted]
		envelope, err = message.Decode[message.ExecutionCompleted](it.delivery.Body)
		report = envelope.Payload
	}
	it.execution = report.ExecutionID
	it.action = actionOf(report.ActionRef, &report.ActionID)
	it.hint = scheduler.Hint{ActionID: report.ActionID, ActionRef: report.ActionRef}
	if said, unknown := lifecycle.ParseStatus(report.Status); unknown == nil {
		it.said = said
	}
	return err
}

// actionOf names the action of a message. All requests and completions carry its reference; the id
// may be absent, or zero if the sender does not know it.
func actionOf(ref string, id *int64) string {
	if ref == "" && id != nil && *id != 0 {
		return strconv.FormatInt(*id, 10)
	}
	return ref
}
