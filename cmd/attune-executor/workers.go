package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

func newWorkersCommand(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "workers",
		Short: "Show the workers, and take them out of service",
		Example: "  attune-executor workers list\n  attune-executor workers show worker-node-01\n" +
			"  attune-executor workers drain worker-node-01 --yes --wait",
	},
		reading(a, &cobra.Command{
			Use:     "list",
			Short:   "List the workers with their heartbeat, load, queue and health",
			Example: "  attune-executor workers list -o json",
		}, unchecked, (*client).workers, workersPage),
		reading(a, &cobra.Command{
			Use:     "show WORKER",
			Short:   "Show one worker, by id or name",
			Example: "  attune-executor workers show worker-node-01",
			Args:    oneArg("the id or name of a worker"),
		}, unchecked, (*client).worker, workerPage),
	)
}

type workersView struct {
	*monitor.Workers

	views []workerView
}

// MarshalJSON encodes the list alone.
func (v workersView) MarshalJSON() ([]byte, error) { return jsonvalue.Encode(v.views) }

func (c *client) workers([]string) (workersView, error) {
	all, err := c.monitor().Workers(c.cmd.Context())
	if err != nil {
		return workersView{}, err
	}
	views := make([]workerView, len(all.List))
	for i, worker := range all.List {
		views[i] = viewWorker(worker, all)
	}
	return workersView{all, views}, nil
}

func (c *client) worker(args []string) (workerView, error) {
	all, err := c.workers(args)
	for _, v := range all.views {
		if v.Name == args[0] || strconv.FormatInt(v.ID, 10) == args[0] {
			return v, nil
		}
	}
	return workerView{}, cmp.Or(err, noWorker(args[0]))
}

func noWorker(which string) error {
	return failedErrorf("there is no worker %s: `attune-executor workers list` shows them", which)
}

func workersPage(w *page, all workersView) {
	table(w, "", all.views, "ID, WORKER, HEALTH, HEARTBEAT, SLOTS, QUEUE, RUNTIMES, NOTE", func(v *workerView) []any {
		return []any{
			v.ID, v.Name, v.Health, v.age(), v.load(), v.queue(), dash(strings.Join(v.Runtimes, ",")),
			dash(v.Note(v.seen)),
		}
	})
	if all.More {
		w.row("there are more workers than this list holds")
	}
}

// workerView is a worker with its health.
type workerView struct {
	monitor.Worker
	Health       monitor.WorkerHealth `json:"health"`
	HeartbeatAge *float64             `json:"heartbeat_age_seconds"`

	seen monitor.Assessment
}

func viewWorker(worker monitor.Worker, all *monitor.Workers) workerView {
	seen := worker.Assess(all.At, all.StaleAfter, nil)
	view := workerView{Worker: worker, Health: seen.Health, seen: seen}
	if worker.Heartbeat != nil {
		age := all.At.Sub(*worker.Heartbeat).Seconds()
		view.HeartbeatAge = &age
	}
	return view
}

func (v workerView) age() string {
	if v.HeartbeatAge == nil {
		return "never"
	}
	return short(time.Duration(*v.HeartbeatAge * float64(time.Second)))
}

func (v workerView) load() string {
	return cmp.Or(opt(v.Assigned), "?") + "/" + cmp.Or(opt(v.Capacity), "?")
}

// queue is the depth of the worker's queue, with its state.
func (v workerView) queue() string {
	switch {
	case v.Probe == nil || v.Probe.QueueExists == nil || v.Probe.Ready == nil || v.Probe.Consumers == nil:
		return "?"
	case !*v.Probe.QueueExists:
		return "none"
	case *v.Probe.Consumers == 0 && !v.Outdated(v.Probe.At):
		return strconv.FormatInt(*v.Probe.Ready, 10) + " deaf"
	default:
		return strconv.FormatInt(*v.Probe.Ready, 10)
	}
}

// probePage shows the last probe by the engine.
func probePage(w *page, p *monitor.WorkerProbe) {
	if p == nil {
		w.fact("probed", "never")
		return
	}
	probed := p.At.Format(time.RFC3339)
	if !p.Valid {
		probed += ", too long ago to count"
	}
	w.fact("probed", probed)
	w.fact("verdict", withReason(p.Verdict+" since "+p.Since.Format(time.RFC3339), p.Reason))
	w.fact("state", withReason(p.Health, p.HealthReason))
	if p.QueueExists != nil {
		queue := "does not exist"
		if *p.QueueExists && p.Ready != nil && p.Consumers != nil {
			queue = fmt.Sprintf("%d waiting, %s", *p.Ready, phrase.Plural(*p.Consumers, "consumer", "consumers"))
		}
		if p.RTT != nil {
			queue += ", read in " + p.RTT.Round(100*time.Microsecond).String()
		}
		w.fact("queue", queue)
	}
	if p.Oldest != nil {
		w.fact("unstarted", "since "+p.Oldest.Format(time.RFC3339))
	}
	if p.EndpointRTT != nil {
		w.fact("endpoint", cmp.Or(p.EndpointError, "answers in "+p.EndpointRTT.Round(100*time.Microsecond).String()))
	}
	switch {
	case p.Skew == nil:
	case p.Skew.Abs() >= time.Second:
		w.fact("clock", monitor.SkewText(*p.Skew)+" the database's")
	default:
		w.fact("clock", "as the database's")
	}
}

func workerPage(w *page, v workerView) {
	beat := "never"
	if v.HeartbeatAge != nil {
		beat = v.age() + " ago"
	}
	w.row("worker", fmt.Sprintf("%d %s", v.ID, v.Name))
	w.row("health", v.Health)
	w.row("status", v.Status)
	w.row("heartbeat", beat)
	w.row("load", v.load())
	w.row("host", dash(v.Host))
	w.row("runtimes", dash(strings.Join(v.Runtimes, ", ")))
	w.row("version", dash(v.Version))
	w.row("registered", v.Created.Format(time.RFC3339))
	probePage(w, v.Probe)
	if v.SuspectSince != nil {
		w.row("suspect", "since "+v.SuspectSince.Format(time.RFC3339)+": "+dash(v.SuspectReason))
	}
	if v.Cordoned {
		w.row("cordoned", dash(v.CordonReason))
	}
}

// drainPoll is the pause between two reads of a draining worker, and drainNote the longest pause
// between two notes.
const (
	drainPoll = 500 * time.Millisecond
	drainNote = 15 * time.Second
)

// awaitDrained waits until a worker has no executions, with notes on its progress.
func (o *operator) awaitDrained(
	ctx context.Context, receipt *triage.WorkerReceipt, timeout time.Duration,
) error {
	ctx, cancel := within(ctx, timeout)
	defer cancel()
	begin := time.Now()
	progress := drainProgress{app: o.app, begin: begin}
	for {
		now, err := o.triage.WorkerNow(ctx,
			triage.WorkerRequest{Worker: strconv.FormatInt(receipt.After.ID, 10), ByID: true})
		switch {
		case ctx.Err() != nil:
			return drainGivenUp(ctx, receipt, timeout)
		case errors.Is(err, triage.ErrNoWorker):
			return failedErrorf("another operator has forgotten worker %s while it drained", receipt.After.Name)
		case err != nil:
			return err
		}
		receipt.After = *now
		if now.Empty() {
			return o.show(with(receipt, "waited_seconds", time.Since(begin).Seconds()), func(w *page) {
				w.rowf("worker %s has drained: nothing is there any more, after %s", now.Name, short(time.Since(begin)))
			})
		}
		if !now.Cordoned {
			return failedErrorf("worker %s no longer drains: another operator has uncordoned it", now.Name)
		}
		progress.tell(now)
		select {
		case <-ctx.Done():
			return drainGivenUp(ctx, receipt, timeout)
		case <-time.After(drainPoll):
		}
	}
}

func drainGivenUp(ctx context.Context, receipt *triage.WorkerReceipt, timeout time.Duration) error {
	why := "interrupted"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		why = "after " + short(timeout)
	}
	return failedErrorf("%s, %d run at worker %s and %d have not begun: the drain goes on, and the same command "+
		"waits for it", why, receipt.After.Running, receipt.After.Name, receipt.After.Unstarted)
}

// drainProgress notes the progress of a drain when it changes, and at least every drainNote.
type drainProgress struct {
	app   *app
	begin time.Time
	said  string
	at    time.Time
}

func (p *drainProgress) tell(now *triage.WorkerNow) {
	text := fmt.Sprintf("worker %s: %d running, %d not begun", now.Name, now.Running, now.Unstarted)
	switch {
	case now.Stale:
		text += ", its heartbeat is stale: the engine decides about them"
	case now.Running == 0 && now.Fences:
		text += ", which wait for another worker that can take them"
	}
	if text == p.said && time.Since(p.at) < drainNote {
		return
	}
	p.said, p.at = text, time.Now()
	p.app.notef("%s (%s)", text, short(time.Since(p.begin)))
}
