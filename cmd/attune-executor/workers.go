package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

func newWorkersCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "workers",
		Short:   "Look at the workers, and take them out of service",
		Example: "  attune-executor workers list\n  attune-executor workers show worker-node-01\n  attune-executor workers drain worker-node-01 --yes --wait",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:     "list",
			Short:   "List the workers with their heartbeat, load, queue and health",
			Example: "  attune-executor workers list -o json",
			Args:    cobra.NoArgs,
			RunE:    func(cmd *cobra.Command, _ []string) error { return a.listWorkers(cmd) },
		},
		&cobra.Command{
			Use:     "show WORKER",
			Short:   "Show one worker, by id or name",
			Example: "  attune-executor workers show worker-node-01",
			Args:    oneArg("the id or name of a worker"),
			RunE:    func(cmd *cobra.Command, args []string) error { return a.showWorker(cmd, args[0]) },
		},
	)
	cmd.AddCommand(a.workerActs()...)
	return cmd
}

func (a *app) workers(cmd *cobra.Command) (*monitor.Workers, error) {
	c, err := a.connect(cmd)
	if err != nil {
		return nil, err
	}
	defer c.store.Close()
	return c.monitor().Workers(cmd.Context())
}

// workerView is a worker with the verdict on it.
type workerView struct {
	monitor.Worker
	Health       monitor.WorkerHealth `json:"health"`
	HeartbeatAge *float64             `json:"heartbeat_age_seconds"`
}

func viewWorker(worker monitor.Worker, all *monitor.Workers) workerView {
	view := workerView{Worker: worker, Health: worker.Health(all.At, all.StaleAfter)}
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
	number := func(n *int64) string {
		if n == nil {
			return "?"
		}
		return strconv.FormatInt(*n, 10)
	}
	return number(v.Assigned) + "/" + number(v.Capacity)
}

// note says why a worker that is there is given nothing.
func (v workerView) note(at time.Time) string {
	switch v.Health {
	case monitor.WorkerSuspect:
		return "for " + short(at.Sub(*v.SuspectSince)) + ": " + dash(v.SuspectReason)
	case monitor.WorkerCordoned:
		return dash(v.CordonReason)
	case monitor.WorkerUnhealthy, monitor.WorkerDegraded:
		return dash(v.Probe.HealthReason)
	case monitor.WorkerDeaf:
		return "nobody consumes its queue"
	case monitor.WorkerDraining:
		return "takes no more work"
	default:
		return v.skew()
	}
}

// skew says when the worker's clock is far off.
func (v workerView) skew() string {
	if v.Probe == nil || v.Probe.Skew == nil || v.Probe.Skew.Abs() <= skewTold {
		return "-"
	}
	return "clock " + ahead(*v.Probe.Skew)
}

// skewTold is how far a worker's clock may be off before the list says so.
const skewTold = 5 * time.Second

func ahead(d time.Duration) string {
	if d < 0 {
		return short(-d) + " behind"
	}
	return short(d) + " ahead"
}

// queue is how much waits in the worker's queue, and whether that is consumed.
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

func (a *app) listWorkers(cmd *cobra.Command) error {
	all, err := a.workers(cmd)
	if err != nil {
		return err
	}
	views := make([]workerView, 0, len(all.List))
	for _, worker := range all.List {
		views = append(views, viewWorker(worker, all))
	}
	return a.print(cmd, views, func(w io.Writer) error {
		if err := row(w, "ID", "NAME", "HEALTH", "HEARTBEAT", "LOAD", "QUEUE", "RUNTIMES", "NOTE"); err != nil {
			return err
		}
		for _, v := range views {
			if err := row(w, v.ID, v.Name, v.Health, v.age(), v.load(), v.queue(), dash(strings.Join(v.Runtimes, ",")), v.note(all.At)); err != nil {
				return err
			}
		}
		if all.More {
			return row(w, "there are more than can be listed")
		}
		return nil
	})
}

func (a *app) showWorker(cmd *cobra.Command, which string) error {
	all, err := a.workers(cmd)
	if err != nil {
		return err
	}
	for _, worker := range all.List {
		if worker.Name != which && strconv.FormatInt(worker.ID, 10) != which {
			continue
		}
		v := viewWorker(worker, all)
		return a.print(cmd, v, func(w io.Writer) error { return workerTable(w, v) })
	}
	return failedErrorf("there is no worker %s: `attune-executor workers list` shows them", which)
}

// probeLines say what the engine saw when it last looked.
func (v workerView) probeLines() [][2]string {
	p := v.Probe
	if p == nil {
		return [][2]string{{"looked at", "never"}}
	}
	verdict := p.Verdict + " since " + p.Since.Format(time.RFC3339)
	if p.Reason != "" {
		verdict += ": " + p.Reason
	}
	health := p.Health
	if p.HealthReason != "" {
		health += ": " + p.HealthReason
	}
	looked := p.At.Format(time.RFC3339)
	if !p.Valid {
		looked += ", too long ago to count"
	}
	lines := [][2]string{{"looked at", looked}, {"verdict", verdict}, {"state", health}}
	if p.QueueExists != nil {
		queue := "does not exist"
		if *p.QueueExists && p.Ready != nil && p.Consumers != nil {
			queue = fmt.Sprintf("%d waiting, %s", *p.Ready, phrase.Plural(*p.Consumers, "consumer", "consumers"))
		}
		if p.RTT != nil {
			queue += ", told in " + p.RTT.Round(100*time.Microsecond).String()
		}
		lines = append(lines, [2]string{"queue", queue})
	}
	if p.Oldest != nil {
		lines = append(lines, [2]string{"unstarted", "since " + p.Oldest.Format(time.RFC3339)})
	}
	if p.EndpointRTT != nil {
		text := "answers in " + p.EndpointRTT.Round(100*time.Microsecond).String()
		if p.EndpointError != "" {
			text = p.EndpointError
		}
		lines = append(lines, [2]string{"endpoint", text})
	}
	if p.Skew != nil {
		text := "as the database's"
		if p.Skew.Abs() >= time.Second {
			text = ahead(*p.Skew) + " the database's"
		}
		lines = append(lines, [2]string{"clock", text})
	}
	return lines
}

func workerTable(w io.Writer, v workerView) error {
	lines := [][2]string{
		{"worker", fmt.Sprintf("%d %s", v.ID, v.Name)},
		{"health", string(v.Health)},
		{"status", v.Status},
		{"heartbeat", v.age() + " ago"},
		{"load", v.load()},
		{"host", dash(v.Host)},
		{"runtimes", dash(strings.Join(v.Runtimes, ", "))},
		{"version", dash(v.Version)},
		{"registered", v.Created.Format(time.RFC3339)},
	}
	if v.HeartbeatAge == nil {
		lines[3][1] = "never"
	}
	lines = append(lines, v.probeLines()...)
	if v.SuspectSince != nil {
		lines = append(lines, [2]string{"suspect", "since " + v.SuspectSince.Format(time.RFC3339) + ": " + dash(v.SuspectReason)})
	}
	if v.Cordoned {
		lines = append(lines, [2]string{"cordoned", dash(v.CordonReason)})
	}
	for _, line := range lines {
		if err := row(w, line[0], line[1]); err != nil {
			return err
		}
	}
	return nil
}
