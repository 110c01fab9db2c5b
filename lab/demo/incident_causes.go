package demo

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
)

// annexName is the worker that consumes nothing.
const annexName = "annex-worker"

// annexTTL is how long a dispatch waits in the queue of the annex.
const annexTTL = 6 * time.Second

// annexKnown is how long the replicas may take to notice a new worker.
const annexKnown = 2 * time.Second

// annexCapabilities attracts the actions of the pack ops and no others.
const annexCapabilities = `{"runtimes": ["native", "python", "shell"], "max_concurrent_executions": 200,
	"labels": {"site": "annex"}, "taints": [{"key": "annex", "effect": "no_schedule"}]}`

// annex is a worker that sends heartbeats and consumes nothing.
type annex struct {
	demo *Demo
	id   int64
	stop context.CancelFunc
	done sync.WaitGroup
}

func (i *incident) openAnnex(ctx context.Context) error {
	d, a := i.demo, &annex{demo: i.demo}
	err := d.queryRow(ctx, "register "+annexName, sql.Annex, args{annexName, annexCapabilities}, &a.id)
	if err != nil {
		return err
	}
	if err := d.broker.DeclareWorker(ctx, a.id, annexTTL); err != nil {
		return fmt.Errorf("declare the queues of %s: %w", annexName, err)
	}
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	a.done.Go(func() {
		for supervise.Sleep(beating, time.Second) {
			_, err := d.store.Pool().Exec(beating, "UPDATE worker SET last_heartbeat = now() WHERE id = $1", a.id)
			if err != nil && beating.Err() == nil {
				d.logger.WarnContext(beating, "Failed to write a heartbeat", "worker", annexName, "error", err)
			}
		}
	})
	i.annex = a
	return nil
}

// close sets the annex inactive and deletes its queues.
func (a *annex) close(ctx context.Context) error {
	a.stop()
	a.done.Wait()
	_, err := a.demo.store.Pool().Exec(ctx, "UPDATE worker SET status = 'inactive' WHERE id = $1", a.id)
	if err != nil {
		return fmt.Errorf("stop %s: %w", annexName, err)
	}
	// Dispatches expire into the ledger; nothing consumes cancel requests and pack messages.
	err = until(ctx, "wait for the dispatches in the queue of "+annexName, func(ctx context.Context) (bool, error) {
		deleted, _, err := a.demo.broker.DeleteQueueIfIdle(ctx, message.WorkerExecutionsQueue(a.id))
		return deleted, err
	})
	for _, queue := range []string{message.WorkerCancelQueue(a.id), message.WorkerPacksQueue(a.id)} {
		_, _, _, deleting := a.demo.broker.DeleteQueueIfUnused(ctx, queue)
		err = errors.Join(err, deleting)
	}
	return err
}

// The mirror is a service beside the engine that consumes every event.
const (
	mirrorQueue = "mirror.events"
	mirrorTTL   = 5 * time.Second
)

// mirror is that service. It keeps the ids of the consumed events.
type mirror struct {
	demo *Demo

	mu       sync.Mutex
	consumer *broker.Consumer // nil while it is closed; guarded by mu
	stop     context.CancelFunc
	seen     map[int64]bool // guarded by mu
	done     sync.WaitGroup
}

// startMirror declares the queue of the mirror and consumes it.
func (d *Demo) startMirror(ctx context.Context) error {
	arguments := broker.Table{
		"x-dead-letter-exchange": message.ExchangeDeadLetter, "x-message-ttl": int32(mirrorTTL.Milliseconds()),
	}
	if err := d.broker.DeclareQueue(ctx, mirrorQueue, arguments); err != nil {
		return fmt.Errorf("declare the queue of the mirror: %w", err)
	}
	binding := broker.Binding{Source: message.ExchangeEvents, Queue: mirrorQueue, RoutingKey: message.KeyEventCreated}
	if err := d.broker.BindQueues(ctx, []broker.Binding{binding}); err != nil {
		return fmt.Errorf("bind the queue of the mirror: %w", err)
	}
	d.mirror = &mirror{demo: d, seen: map[int64]bool{}}
	return d.mirror.open(ctx)
}

// open starts consuming. An open mirror continues.
func (m *mirror) open(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.consumer != nil {
		return nil
	}
	consumer := m.demo.broker.Consume(broker.ConsumerConfig{Queue: mirrorQueue, Tag: "mirror"})
	if err := consumer.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start the mirror: %w", err)
	}
	consuming, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.consumer, m.stop = consumer, stop
	m.done.Go(func() { m.consume(consuming, consumer) })
	return nil
}

// close stops consuming.
func (m *mirror) close() {
	m.mu.Lock()
	consumer := m.consumer
	m.consumer = nil
	m.mu.Unlock()
	if consumer != nil {
		consumer.Stop()
		m.stop()
	}
	m.done.Wait()
}

// stopMirror ends the mirror and deletes its queue, in which events would expire.
func (d *Demo) stopMirror(ctx context.Context) {
	if d.mirror == nil {
		return
	}
	d.mirror.close()
	if _, _, _, err := d.broker.DeleteQueueIfUnused(ctx, mirrorQueue); err != nil {
		d.logger.WarnContext(ctx, "Failed to delete the queue of the mirror", "error", err)
	}
}

func (m *mirror) consume(ctx context.Context, consumer *broker.Consumer) {
	for {
		var batch *broker.Batch
		select {
		case batch = <-consumer.Batches():
		case <-ctx.Done():
			return
		}
		m.mu.Lock()
		for _, delivery := range batch.Deliveries {
			if event, err := message.Decode[message.EventCreated](delivery.Body); err == nil {
				m.seen[event.Payload.EventID] = true
			}
		}
		m.mu.Unlock()
		_ = batch.Ack() // after a lost connection the broker redelivers the events
	}
}

// events returns the ids of the consumed events.
func (m *mirror) events() []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.AppendSeq([]int64{}, maps.Keys(m.seen))
}

// closeMirror closes the mirror after it has consumed every event so far. No order is placed until it
// opens again: it misses only the parcels of the incident.
func (i *incident) closeMirror(ctx context.Context) error {
	i.demo.holdOrders(true)
	err := until(ctx, "wait for the mirror to consume all events", func(ctx context.Context) (bool, error) {
		_, missed, err := i.mirrored(ctx)
		return err == nil && missed == 0, err
	})
	i.demo.mirror.close()
	return err
}

// bringMirrorBack opens the mirror and resumes the orders.
func (d *Demo) bringMirrorBack(ctx context.Context) error {
	defer d.holdOrders(false)
	return d.mirror.open(ctx)
}

// openMirror brings the mirror back after the missed events have expired.
func (i *incident) openMirror(ctx context.Context) error {
	err := until(ctx, "wait for the events to expire", func(ctx context.Context) (bool, error) {
		list, err := i.deadLetters(ctx)
		return err == nil && waiting(list)[groupMirror] >= i.size(), err
	})
	if err := errors.Join(err, i.demo.bringMirrorBack(ctx)); err != nil {
		return err
	}
	management, err := broker.NewManagement(i.demo.stack.ManagementURL(), "/", 10*time.Second)
	if err != nil {
		return err
	}
	defer management.Close()
	// The commands refuse what would be sent to a queue without a consumer, by what the management API counts.
	return until(ctx, "wait for the broker to count the mirror", func(ctx context.Context) (bool, error) {
		list, err := management.Queues(ctx)
		return slices.ContainsFunc(list, func(q broker.QueueInfo) bool {
			return q.Name == mirrorQueue && q.Consumers != nil && *q.Consumers > 0
		}), err
	})
}

// encode makes a message for a publication without the outbox.
func encode[P any](kind string, payload P, source string) (broker.Message, error) {
	m, err := outbox.Encode(kind, payload, time.Now(), source)
	return broker.Message{ID: m.ID, Exchange: m.Exchange, RoutingKey: m.RoutingKey, Type: m.Type, Body: m.Body}, err
}

// sendBroken publishes unreadable requests.
func (i *incident) sendBroken(ctx context.Context) error {
	body := []byte(`{"message_type": "ExecutionRequested", "payload": {"execution_id": `)
	var messages []broker.Message
	for n := range i.size() {
		id := fmt.Sprintf("sick-%d-%d", time.Now().UnixNano(), n)
		i.broken = append(i.broken, id)
		messages = append(messages, broker.Message{
			ID: id, Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionRequested, Body: body,
		})
	}
	return i.publish(ctx, messages)
}

// publish retries until the broker has confirmed all messages.
func (i *incident) publish(ctx context.Context, messages []broker.Message) error {
	return until(ctx, "publish", func(ctx context.Context) (bool, error) {
		var left []broker.Message
		var problem error
		for n, outcome := range i.demo.broker.Publisher().Publish(ctx, messages) {
			if outcome.Err != nil {
				left, problem = append(left, messages[n]), outcome.Err
			}
		}
		messages = left
		return len(left) == 0, problem
	})
}

// countries are the countries of the invoices. The bad release supports two of them.
var countries = []string{"france", "japan", "spain", "norway", "iceland"}

func (i *incident) requestPrints(ctx context.Context) (err error) {
	supervise.Sleep(ctx, annexKnown)
	i.prints, err = i.submit(ctx, numbered("ops.print", i.size()))
	return err
}

func (i *incident) requestFaxes(ctx context.Context) (err error) {
	i.faxes, err = i.submit(ctx, numbered("ops.fax", i.size()))
	return err
}

// invoices is the number of invoices requested during the bad release.
const invoices = 25

func (i *incident) requestInvoices(ctx context.Context) (err error) {
	var requests []submit.Request
	for n := range invoices {
		params := fmt.Sprintf(`{"number": %d, "country": %q}`, n, countries[n%len(countries)])
		requests = append(requests, submit.Request{ActionRef: "ops.invoice", Params: json.RawMessage(params)})
	}
	i.invoices, err = i.submit(ctx, requests)
	return err
}

// scanParcels emits events while the mirror is away.
func (i *incident) scanParcels(ctx context.Context) error {
	var events []submit.Event
	for n := range i.size() {
		events = append(events,
			submit.Event{TriggerRef: "ops.parcel_scanned", Payload: fmt.Appendf(nil, `{"parcel": %d}`, n)})
	}
	if _, err := submit.New(i.demo.store, i.demo.relay).EmitEvents(ctx, events); err != nil {
		return fmt.Errorf("scan parcels: %w", err)
	}
	return nil
}

// numbered returns n requests of one action.
func numbered(ref string, n int) []submit.Request {
	requests := make([]submit.Request, n)
	for k := range requests {
		requests[k] = submit.Request{ActionRef: ref, Params: fmt.Appendf(nil, `{"number": %d}`, k)}
	}
	return requests
}

// copyMessages publishes copies of the messages of the annex to another worker, like a script that
// ignores that a dispatch names its worker. Each copy becomes a dead letter there and waits for the
// user. The originals expire in the queue of the annex, and the engine decides them.
func (i *incident) copyMessages(ctx context.Context) error {
	name := workerName(0)
	err := i.demo.queryRow(ctx, "find "+name, "SELECT id FROM worker WHERE name = $1", args{name}, &i.target)
	if err != nil {
		return err
	}
	asked := slices.Concat(i.prints, i.faxes)
	copied := map[int64]bool{}
	var handed []int64
	err = until(ctx, "copy the dispatches of "+annexName, func(ctx context.Context) (bool, error) {
		if err := i.copySome(ctx, len(asked), copied); err != nil {
			return false, err
		}
		var here []int64
		waiting := 0
		err := i.demo.queryRow(ctx, "read the dispatches of "+annexName, sql.AnnexWork, args{i.annex.id, asked},
			&handed, &here, &waiting)
		missed := slices.ContainsFunc(here, func(id int64) bool { return !copied[id] })
		return err == nil && waiting == 0 && !missed, err
	})
	// On a slow machine some expire before they are copied, or run at other workers.
	rest := func(id int64) bool { return !copied[id] }
	for _, id := range slices.DeleteFunc(asked, func(id int64) bool { return copied[id] }) {
		switch {
		case !slices.Contains(handed, id):
			i.elsewhere = append(i.elsewhere, id)
		case slices.Contains(i.faxes, id):
			i.expired = append(i.expired, id)
		}
	}
	i.prints, i.faxes = slices.DeleteFunc(i.prints, rest), slices.DeleteFunc(i.faxes, rest)
	return err
}

// copySome copies the waiting messages and records their executions. The messages return to their queue
// when the drain closes.
func (i *incident) copySome(ctx context.Context, most int, copied map[int64]bool) (err error) {
	drain, err := i.demo.broker.Drain(ctx, message.WorkerExecutionsQueue(i.annex.id), most, most)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drain.Close(ctx)) }()
	page, err := drain.Next(ctx, 200*time.Millisecond)
	if err != nil {
		return err
	}
	var messages []broker.Message
	var executions []int64
	for _, delivery := range page {
		dispatch, err := message.Decode[message.Dispatch](delivery.Body)
		if err != nil || copied[dispatch.Payload.ExecutionID] {
			continue
		}
		executions = append(executions, dispatch.Payload.ExecutionID)
		messages = append(messages, broker.Message{
			ID: delivery.MessageID, Type: delivery.Type, Body: delivery.Body,
			Exchange: message.ExchangeExecutions, RoutingKey: message.DispatchKey(i.target),
		})
	}
	if len(messages) == 0 {
		return nil
	}
	if err := i.publish(ctx, messages); err != nil {
		return err
	}
	for _, id := range executions {
		copied[id] = true
	}
	return nil
}

// release replaces files of the pack ops with the next release.
func (i *incident) release(ctx context.Context) error {
	return errors.Join(i.placeRelease(releaseFiles, "release"), i.demo.applyOps(ctx))
}

// rollBack restores the earlier release after the invoices have ended.
func (i *incident) rollBack(ctx context.Context) error {
	err := until(ctx, "wait for the ends of the invoices", func(ctx context.Context) (bool, error) {
		list, err := i.lastOf(ctx, i.invoices)
		return err == nil && all(list, "completed", "failed"), err
	})
	return errors.Join(err, i.placeRelease(packs, "packs/ops"), i.demo.applyOps(ctx))
}

// placeRelease writes the files that differ between the releases of the pack ops.
func (i *incident) placeRelease(files embed.FS, folder string) error {
	for _, name := range []string{"pack.yaml", "actions/invoice.sh"} {
		content, err := files.ReadFile(folder + "/" + name)
		if err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(i.demo.opsDir(), filepath.FromSlash(name)), content); err != nil {
			return fmt.Errorf("write a release of the pack ops: %w", err)
		}
	}
	return nil
}

// deleteFax deletes the file of an action, and requests the action like a service that still knows it.
func (i *incident) deleteFax(ctx context.Context) error {
	if err := os.Remove(filepath.Join(i.demo.opsDir(), "actions", "fax.yaml")); err != nil {
		return fmt.Errorf("delete ops.fax: %w", err)
	}
	if err := i.demo.applyOps(ctx); err != nil {
		return err
	}
	var messages []broker.Message
	for range 3 {
		var id int64
		err := i.demo.queryRow(ctx, "request the deleted action", sql.Stray, args{"ops.fax", `{"number": 200}`}, &id)
		if err != nil {
			return err
		}
		i.strays = append(i.strays, id)
		m, err := encode(message.TypeExecutionRequested,
			message.ExecutionRequested{ExecutionID: id, ActionRef: "ops.fax"}, "sensor")
		if err != nil {
			return err
		}
		messages = append(messages, m)
	}
	return i.publish(ctx, messages)
}

// opsDir is the folder of the pack ops.
func (d *Demo) opsDir() string { return filepath.Join(d.packsDir(), "ops") }

// applyOps applies the pack ops and deletes everything that its folder does not contain.
func (d *Demo) applyOps(ctx context.Context) error {
	return d.applyPacks(ctx, d.opsDir(), catalog.Request{Prune: true, Actor: "release"})
}

// restoreOps restores the pack ops.
func (d *Demo) restoreOps(ctx context.Context) error {
	if err := d.writePacks(); err != nil {
		return err
	}
	return d.applyOps(ctx)
}
