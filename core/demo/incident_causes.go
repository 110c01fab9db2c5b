package demo

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
)

//go:embed annex.sql
var annexSQL string

//go:embed annex_work.sql
var annexWorkSQL string

//go:embed stray.sql
var straySQL string

// annexName is the worker that consumes nothing.
const annexName = "annex-worker"

// annexTTL is how long a hand-over waits in the queue of the annex.
const annexTTL = 6 * time.Second

// annexKnown is how long the replicas may take to hear of a new worker.
const annexKnown = 2 * time.Second

// annexCapabilities attract the actions of the pack ops and keep all others away.
const annexCapabilities = `{"runtimes": ["native", "python", "shell"], "max_concurrent_executions": 200,
	"labels": {"site": "annex"}, "taints": [{"key": "annex", "effect": "no_schedule"}]}`

// annex is a worker of another make that sends heartbeats and consumes nothing.
type annex struct {
	demo *Demo
	id   int64
	stop context.CancelFunc
	done sync.WaitGroup
}

func (i *incident) openAnnex(ctx context.Context) error {
	d, a := i.demo, &annex{demo: i.demo}
	if err := d.store.Pool().QueryRow(ctx, annexSQL, annexName, annexCapabilities).Scan(&a.id); err != nil {
		return fmt.Errorf("register %s: %w", annexName, err)
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
				d.logger.WarnContext(beating, "A heartbeat could not be written", "worker", annexName, "error", err)
			}
		}
	})
	i.annex = a
	return nil
}

// close has the annex leave: it is inactive, and its queues are deleted.
func (a *annex) close(ctx context.Context) error {
	a.stop()
	a.done.Wait()
	_, err := a.demo.store.Pool().Exec(ctx, "UPDATE worker SET status = 'inactive' WHERE id = $1", a.id)
	if err != nil {
		return fmt.Errorf("let %s leave: %w", annexName, err)
	}
	// Hand-overs expire into the ledger; requests to cancel and news of packs have no taker.
	err = until(ctx, "await the hand-overs in the queue of "+annexName, func(ctx context.Context) (bool, error) {
		deleted, _, err := a.demo.broker.DeleteQueueIfIdle(ctx, message.WorkerExecutionsQueue(a.id))
		return deleted, err
	})
	for _, queue := range []string{message.WorkerCancelQueue(a.id), message.WorkerPacksQueue(a.id)} {
		_, _, _, deleting := a.demo.broker.DeleteQueueIfUnused(ctx, queue)
		err = errors.Join(err, deleting)
	}
	return err
}

// The mirror consumes every event, as a service beside the engine may.
const (
	mirrorQueue = "mirror.events"
	mirrorTTL   = 5 * time.Second
)

// mirror is that service: it keeps the ids of the events that it took.
type mirror struct {
	demo *Demo

	mu       sync.Mutex
	consumer *broker.Consumer // nil while it is away; guarded by mu
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

// open consumes; a mirror that does so already goes on.
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
	taking, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.consumer, m.stop = consumer, stop
	m.done.Go(func() { m.take(taking, consumer) })
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
		d.logger.WarnContext(ctx, "The queue of the mirror could not be deleted", "error", err)
	}
}

func (m *mirror) take(ctx context.Context, consumer *broker.Consumer) {
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
		_ = batch.Ack() // a lost connection brings the events again
	}
}

// events are the ids that the mirror took.
func (m *mirror) events() []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := make([]int64, 0, len(m.seen))
	for id := range m.seen {
		ids = append(ids, id)
	}
	return ids
}

// closeMirror has the mirror go away once it has taken every event so far. No order is
// placed until it is back: it misses the parcels of the incident and no other event.
func (i *incident) closeMirror(ctx context.Context) error {
	i.demo.holdOrders(true)
	err := until(ctx, "await the events that the mirror takes", func(ctx context.Context) (bool, error) {
		_, missed, err := i.mirrored(ctx)
		return err == nil && missed == 0, err
	})
	i.demo.mirror.close()
	return err
}

// bringMirrorBack has the mirror consume again, and orders be placed.
func (d *Demo) bringMirrorBack(ctx context.Context) error {
	defer d.holdOrders(false)
	return d.mirror.open(ctx)
}

// openMirror brings the mirror back once the events have expired that it missed.
func (i *incident) openMirror(ctx context.Context) error {
	err := until(ctx, "await the events that expire", func(ctx context.Context) (bool, error) {
		list, err := i.letters(ctx)
		return err == nil && waiting(list)[groupMirror] >= i.size(), err
	})
	return errors.Join(err, i.demo.bringMirrorBack(ctx))
}

// sendBroken publishes requests that no program can read.
func (i *incident) sendBroken(ctx context.Context) error {
	body := []byte(`{"message_type": "ExecutionRequested", "payload": {"execution_id": `)
	var messages []broker.Message
	for n := range i.size() {
		id := fmt.Sprintf("%s-%d-%d", "sick", time.Now().UnixNano(), n)
		i.broken = append(i.broken, id)
		messages = append(messages, broker.Message{
			ID: id, Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionRequested,
			Body: body,
		})
	}
	return i.publish(ctx, messages)
}

// publish sends messages until the broker has all of them.
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

// countries are those of the invoices; the bad release knows two of them.
var countries = []string{"france", "japan", "spain", "norway", "iceland"}

// request asks for what the annex is to run, for invoices, and scans parcels.
func (i *incident) request(ctx context.Context) error {
	for _, ask := range []func(context.Context) error{i.requestPrints, i.requestFaxes, i.requestInvoices,
		i.scanParcels} {
		if err := ask(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (i *incident) requestPrints(ctx context.Context) (err error) {
	supervise.Sleep(ctx, annexKnown)
	i.prints, err = i.ask(ctx, numbered("ops.print", i.size()))
	return err
}

func (i *incident) requestFaxes(ctx context.Context) (err error) {
	i.faxes, err = i.ask(ctx, numbered("ops.fax", i.size()))
	return err
}

// invoices is how many invoices are requested while the bad release is there.
const invoices = 25

func (i *incident) requestInvoices(ctx context.Context) (err error) {
	var requests []submit.Request
	for n := range invoices {
		params := fmt.Sprintf(`{"number": %d, "country": %q}`, n, countries[n%len(countries)])
		requests = append(requests, submit.Request{ActionRef: "ops.invoice", Params: json.RawMessage(params)})
	}
	i.invoices, err = i.ask(ctx, requests)
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

// numbered are so many requests of one action.
func numbered(ref string, n int) []submit.Request {
	requests := make([]submit.Request, n)
	for k := range requests {
		requests[k] = submit.Request{ActionRef: ref, Params: fmt.Appendf(nil, `{"number": %d}`, k)}
	}
	return requests
}

// copyMessages publishes copies of the messages of the annex for another worker, as a
// script of a colleague does who does not know that a hand-over names its worker. Each
// copy dies there and waits for a person. The messages themselves expire in the queue of
// the annex, and the engine decides about them alone.
func (i *incident) copyMessages(ctx context.Context) error {
	name := workerName(0)
	err := i.demo.store.Pool().QueryRow(ctx, "SELECT id FROM worker WHERE name = $1", name).Scan(&i.target)
	if err != nil {
		return fmt.Errorf("look for %s: %w", name, err)
	}
	asked := slices.Concat(i.prints, i.faxes)
	copied := map[int64]bool{}
	var handed []int64
	err = until(ctx, "copy the hand-overs of "+annexName, func(ctx context.Context) (bool, error) {
		if err := i.copySome(ctx, len(asked), copied); err != nil {
			return false, err
		}
		var here []int64
		waiting := 0
		err := i.demo.store.Pool().QueryRow(ctx, annexWorkSQL, i.annex.id, asked).Scan(&handed, &here, &waiting)
		missed := slices.ContainsFunc(here, func(id int64) bool { return !copied[id] })
		return err == nil && waiting == 0 && !missed, err
	})
	// On a slow machine some expire before they are copied, or are handed elsewhere.
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

// copySome copies what waits now, and notes the executions. The messages return to their
// queue when the connection ends.
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

// release replaces files of the pack ops by those of the next release.
func (i *incident) release(ctx context.Context) error {
	for _, name := range []string{"pack.yaml", "actions/invoice.sh"} {
		content, err := releaseFiles.ReadFile("release/" + name)
		if err != nil {
			return err
		}
		if err := place(filepath.Join(i.demo.opsDir(), filepath.FromSlash(name)), content); err != nil {
			return fmt.Errorf("write the release: %w", err)
		}
	}
	return i.demo.applyOps(ctx)
}

// rollBack brings the earlier release back, once the invoices have ended.
func (i *incident) rollBack(ctx context.Context) error {
	err := until(ctx, "await the ends of the invoices", func(ctx context.Context) (bool, error) {
		list, err := i.lastOf(ctx, i.invoices)
		if err != nil {
			return false, err
		}
		for _, l := range list {
			if l.status != "completed" && l.status != "failed" {
				return false, nil
			}
		}
		return true, nil
	})
	for _, name := range []string{"pack.yaml", "actions/invoice.sh"} {
		err = errors.Join(err, i.demo.restore(filepath.Join("packs", "ops", filepath.FromSlash(name))))
	}
	return errors.Join(err, i.demo.applyOps(ctx))
}

// deleteFax deletes an action, by its file, and requests it as a service does that has
// not heard of it.
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
		if err := i.demo.store.Pool().QueryRow(ctx, straySQL, "ops.fax", `{"number": 200}`).Scan(&id); err != nil {
			return fmt.Errorf("request the deleted action: %w", err)
		}
		i.strays = append(i.strays, id)
		envelope := message.New(message.TypeExecutionRequested,
			message.ExecutionRequested{ExecutionID: id, ActionRef: "ops.fax"}, time.Now(), "sensor")
		body, err := envelope.Encode()
		if err != nil {
			return fmt.Errorf("encode a request: %w", err)
		}
		messages = append(messages, broker.Message{
			ID: envelope.MessageID, Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionRequested,
			Type: message.TypeExecutionRequested, Body: body,
		})
	}
	return i.publish(ctx, messages)
}

// opsDir is the folder of the pack ops.
func (d *Demo) opsDir() string { return filepath.Join(d.packsDir(), "ops") }

// applyOps applies the pack ops and deletes what its folder does not describe.
func (d *Demo) applyOps(ctx context.Context) error {
	files, err := catalog.Read([]string{d.opsDir()}, nil)
	if err != nil {
		return fmt.Errorf("read the pack ops: %w", err)
	}
	_, err = catalog.New(d.store, nil).Apply(ctx, catalog.Request{
		Set: files.Set, Policies: files.Policies, Mistakes: files.Mistakes, Prune: true, Actor: "release",
		Source: "attune-demo",
	})
	if err != nil {
		return fmt.Errorf("apply the pack ops: %w", err)
	}
	return nil
}

// restoreOps brings back the pack ops as it was.
func (d *Demo) restoreOps(ctx context.Context) error {
	if err := d.writePacks(); err != nil {
		return err
	}
	return d.applyOps(ctx)
}

// restore writes one embedded file of the packs again.
func (d *Demo) restore(name string) error {
	content, err := packs.ReadFile(filepath.ToSlash(name))
	if err != nil {
		return err
	}
	return place(filepath.Join(filepath.Dir(d.packsDir()), name), content)
}
