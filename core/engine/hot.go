package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/gate"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/spread"
	"github.com/attune-go/attune/core/supervise"
)

// hot is where the engine does its work. One reader receives the messages of the two hot
// queues, decodes them and gives each to the lane of its action; the lanes run
// batches at the same time (lane.go). All messages of an action meet the same lane in
// the order of their delivery, so that a queue keeps its order and batches of one replica do
// not wait for each other's queues.
//
// Messages in hand are unacknowledged, and the prefetch of the consumers bounds them. They
// come again if the replica ends.
type hot struct {
	supervise.Base
	*shared

	completed *broker.Consumer
	batched   *broker.Consumer // of completions in batches; nil in tests without any
	requested *broker.Consumer
}

// shared holds the parts that all lanes use.
type shared struct {
	lanes []*lane // the first one also takes work that names no action

	scheduler *scheduler.Scheduler
	logger    *slog.Logger
	metrics   *Metrics
	gate      *gate.Gate
	config    stepConfig
	desk      desk                // takes back the letters that batches have decided; nil when there are none
	soon      func(time.Duration) // is told when a repetition will be due; may be nil

	workflows workflowRunner // starts and advances workflows; nil in tests without any

	reclaim func(context.Context, []int64) ([]int64, error) // puts stale claims back; may be nil

	unstarted unstartedList

	found   chan recovery.Found
	letters chan []*deadletter.Letter
	wake    *alarm       // rings when a moment has come for which a queue waits
	absents atomic.Int64 // messages without a row that wait for it, of all lanes
}

func newHot(
	completed, requested *broker.Consumer, lanes int, rounds *scheduler.Scheduler, config stepConfig,
	logger *slog.Logger, metrics *Metrics,
) *hot {
	h := &hot{completed: completed, requested: requested, shared: &shared{
		scheduler: rounds, config: config, logger: logger, metrics: metrics,
		found: make(chan recovery.Found, 1), letters: make(chan []*deadletter.Letter), wake: newAlarm(),
	}}
	for range lanes {
		h.lanes = append(h.lanes, newLane(h.shared, len(h.lanes) == 0))
	}
	return h
}

// Start implements supervise.Service.
func (h *hot) Start(ctx context.Context) error { return h.Launch(ctx, nil, h.run) }

// Submit hands the finds of a sweep to the first lane. It waits while that one has
// not yet taken the finds before.
func (h *hot) Submit(ctx context.Context, found recovery.Found) error {
	select {
	case h.found <- found:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("hand stranded work to the schedulers: %w", ctx.Err())
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

// receive spreads deliveries over the lanes. It waits for none of them: one that is
// busy, or waits for a queue, holds up no other.
func (h *hot) receive(ctx context.Context) {
	for h.gate.Enter(ctx) {
		select {
		case <-ctx.Done():
			return
		case batch := <-h.completed.Batches():
			h.spread(h.read(ctx, batch, message.TypeExecutionCompleted), func(l *lane) *spread.Box[item] { return l.ended })
		case batch := <-h.batches():
			h.spread(h.read(ctx, batch, message.TypeExecutionCompleted), func(l *lane) *spread.Box[item] { return l.ended })
		case batch := <-h.requested.Batches():
			h.spread(h.read(ctx, batch, message.TypeExecutionRequested), func(l *lane) *spread.Box[item] { return l.requested })
		}
	}
}

// manyWaiting is how many messages of one kind wait for a lane before those are dropped whose
// connection has gone. A lane that waits for the database does not look at them.
const manyWaiting = 1000

func (h *hot) spread(items []item, box func(*lane) *spread.Box[item]) {
	shares := make(map[*lane][]item, len(h.lanes))
	for _, it := range items {
		l := h.laneOf(it.action)
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

// laneOf is the lane to which the messages of an action belong.
func (h *shared) laneOf(action string) *lane {
	return h.lanes[spread.Of(action, len(h.lanes))]
}

// fill has queues with free slots and waiters filled by the lanes of their actions.
func (h *shared) fill(result scheduler.Result) {
	for i, queue := range result.Unfilled {
		h.laneOf(result.UnfilledOf[i]).unfilled.Put(queue)
	}
}

// underWay is the oldest batch in hand: since when, and of how many executions. It is zero
// while no lane has one.
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

// inFlight is how many executions are in the batches that are running.
func (h *shared) inFlight() (executions int64) {
	for _, l := range h.lanes {
		executions += l.inFlight.Load()
	}
	return executions
}

// lastDone is when the last batch was committed, zero before the first.
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

// item is one execution of a delivery, or one find of a sweep, in a batch.
type item struct {
	execution int64
	action    string         // by which its lane is chosen; empty for a find
	hint      scheduler.Hint // what its message says; empty for a find
	ended     bool
	said      attune.Status    // the end that a report tells of
	delivery  *broker.Delivery // nil for a find
	open      *atomic.Int32    // items of the delivery that are not settled; nil if it has no other
	letter    *deadletter.Letter
	alone     bool // the delivery is settled by itself, not with its batch
	attempts  int  // how often it could not be decided
	blocked   bool // somebody held what it is about when it stood alone
	left      int  // how often it was left because another batch held its queue
	absent    bool // it waits for its row
}

// settled reports that the item was the last of its delivery, which is to be acknowledged.
func (it *item) settled() bool { return it.open == nil || it.open.Add(-1) == 0 }

// read decodes a batch. What cannot be read is dead-lettered at once, so that
// it never blocks its neighbours. Each delivery is settled by itself.
func (h *hot) read(ctx context.Context, batch *broker.Batch, kind string) []item {
	items := make([]item, 0, len(batch.Deliveries))
	add := func(d *broker.Delivery, payload json.RawMessage) {
		it := item{delivery: d, alone: true, ended: kind == message.TypeExecutionCompleted}
		if err := it.decode(payload); err != nil {
			poison(ctx, h.logger, h.metrics, it, kind, err)
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
			poison(ctx, h.logger, h.metrics, item{delivery: d, alone: true}, d.Type, err)
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

// decode reads what the delivery is about. payload is that of its message, nil if only the
// body is there.
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
	if said, unknown := attune.ParseStatus(report.Status); unknown == nil {
		it.said = said
	}
	return err
}

// actionOf names the action of a message. All requests and completions carry
// its reference; the id may be absent, or zero where the sender does not know it.
func actionOf(ref string, id *int64) string {
	if ref == "" && id != nil && *id != 0 {
		return strconv.FormatInt(*id, 10)
	}
	return ref
}
