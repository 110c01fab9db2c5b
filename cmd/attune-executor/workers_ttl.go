package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/triage"
)

// ttlOptions are the flags of `workers ttl`.
type ttlOptions struct {
	worker   string
	reason   string
	recreate bool
	dryRun   bool
	yes      bool
}

func newWorkersTTLCommand(a *app) *cobra.Command {
	options := &ttlOptions{}
	cmd := &cobra.Command{
		Use:   "ttl [DURATION]",
		Short: "Look at, and change, how long hand-overs wait in the queues of workers",
		Long: "Without a duration: how long hand-overs wait in each worker's queue before they expire, and why.\n\n" +
			"With one: change it. Up to what a queue was declared with, a policy does it, at once for what is handed over from then\n" +
			"on; what workers declare (message_queue.rabbitmq.worker_queue_ttl_ms) stays. Beyond that the queue is recreated, one\n" +
			"after the other, without losing a message; its worker must be stopped, and what is interrupted is ended by the same\n" +
			"command. Existing Attune workers declare 5m whatever is configured, and do not start at a queue with another: therefore\n" +
			"it asks even with --yes.",
		Example: "  attune-executor workers ttl\n  attune-executor workers ttl 2m --dry-run\n  attune-executor workers ttl 10m --worker worker-node-01 --yes",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.showTTL(cmd, options)
			}
			ttl, err := time.ParseDuration(args[0])
			if err != nil {
				return usageErrorf("%q is not a duration, such as 90s, 5m or 1h", args[0])
			}
			return a.changeTTL(cmd, ttl, options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.worker, "worker", "", "only the queue of this worker, by id or name; default all")
	flags.StringVar(&options.reason, "reason", "", "why, for the audit")
	flags.BoolVar(&options.recreate, "recreate", false, "recreate the queues so that they are declared with it, also where a policy would do")
	flags.BoolVar(&options.dryRun, "dry-run", false, "show what would be changed and do nothing")
	flags.BoolVar(&options.yes, "yes", false, "do it")
	return cmd
}

// ttlDesk is what looking at worker queues takes.
type ttlDesk struct {
	*client
	*triage.QueueTTLs

	stop func()
}

func (a *app) openTTL(cmd *cobra.Command) (*ttlDesk, error) {
	c, err := a.connect(cmd)
	if err != nil {
		return nil, err
	}
	mq := c.cfg.MessageQueue
	management, err := managementOf(c.cfg)
	if err != nil {
		c.store.Close()
		return nil, err
	}
	wire := brokerConfig(c.cfg, cmd.CommandPath())
	wire.ConnectTimeout = publishPatience
	link := broker.New(wire, slog.New(slog.DiscardHandler), nil)
	patient, cancel := context.WithTimeout(cmd.Context(), publishPatience)
	defer cancel()
	if err := link.Start(patient); err != nil {
		management.Close()
		c.store.Close()
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	d := &ttlDesk{client: c, stop: func() { link.Stop(); management.Close(); c.store.Close() }}
	d.QueueTTLs = triage.NewQueueTTLs(triage.QueueTTLConfig{
		Config:     triage.Config{Actor: operator(), HeartbeatStaleAfter: c.cfg.Executor.StaleAfter()},
		Configured: mq.RabbitMQ.WorkerQueueTTL, NoDeadLetters: !mq.RabbitMQ.DeadLetter.Enabled,
	}, c.store, link, management)
	return d, nil
}

// managementOf makes the client of the management API, without which neither
// arguments nor policies are seen.
func managementOf(cfg *config.Config) (*broker.Management, error) {
	mq := cfg.MessageQueue
	if mq.ManagementURL == "" {
		return nil, usageErrorf("the time to live of queues is seen only through the management API: set message_queue.management_url")
	}
	vhost, err := broker.VHostOf(mq.URL)
	if err != nil {
		return nil, usageErrorf("%w: correct message_queue.url (%s)", err, cfg.Source("message_queue.url"))
	}
	management, err := broker.NewManagement(mq.ManagementURL, vhost, publishPatience)
	if err != nil {
		return nil, usageErrorf("%w: correct message_queue.management_url (%s)", err, cfg.Source("message_queue.management_url"))
	}
	return management, nil
}

// ttlError gives errors their exit codes and what to do.
func (d *ttlDesk) ttlError(err error) error {
	var answer *broker.ManagementError
	var network *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, triage.ErrLimit):
		return usageErrorf("%w", err)
	case errors.Is(err, triage.ErrNoWorkerQueue):
		return failedErrorf("%w", err)
	case errors.Is(err, triage.ErrQueueTTLRefused):
		return &exitError{exitRefused, err}
	case errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		return refusedErrorf("%w: the user of message_queue.management_url (%s) needs the tag policymaker", err, d.cfg.Source("message_queue.management_url"))
	case errors.Is(err, broker.ErrNotConnected):
		return &exitError{exitUnreachable, fmt.Errorf("the broker %s does not answer (%w): start it, or correct message_queue.url (%s)",
			config.MaskURL(d.cfg.MessageQueue.URL), err, d.cfg.Source("message_queue.url"))}
	case errors.As(err, &network):
		return &exitError{exitUnreachable, fmt.Errorf("the management API %s does not answer (%w): start it, or correct message_queue.management_url (%s)",
			config.MaskURL(d.cfg.MessageQueue.ManagementURL), network, d.cfg.Source("message_queue.management_url"))}
	}
	return err
}

func (a *app) showTTL(cmd *cobra.Command, options *ttlOptions) error {
	if options.yes || options.dryRun || options.recreate {
		return usageErrorf("--yes, --dry-run and --recreate go with a duration")
	}
	d, err := a.openTTL(cmd)
	if err != nil {
		return err
	}
	defer d.stop()
	report, err := d.Report(cmd.Context())
	if err != nil {
		return d.ttlError(err)
	}
	if err := report.Only(options.worker); err != nil {
		return d.ttlError(err)
	}
	return a.print(cmd, report, func(w io.Writer) error { return ttlTable(w, report) })
}

func ttlTable(w io.Writer, report *triage.QueueTTLReport) error {
	if len(report.Queues) == 0 {
		return row(w, "no worker has a queue: each declares its own when it starts")
	}
	if err := row(w, "WORKER", "NAME", "ARGUMENT", "POLICY", "EFFECTIVE", "CONFIGURED", "CONSUMERS", "READY", "TO DO"); err != nil {
		return err
	}
	for _, q := range report.Queues {
		consumers, ready, argument := strconv.Itoa(q.Consumers), strconv.Itoa(q.Ready), ttlText(q.Argument)
		if !q.Exists {
			consumers, ready, argument = "-", "-", "no queue"
		}
		policy := ttlText(q.Policy)
		if q.Operator != nil {
			policy += " / " + ttlText(q.Operator)
		}
		err := row(w, q.Worker, dash(q.Name), argument, policy, ttlText(q.Effective), ttlText(&q.Configured), consumers, ready, dash(q.Advice))
		if err != nil {
			return err
		}
	}
	for _, note := range report.Notes {
		if err := row(w, note); err != nil {
			return err
		}
	}
	return nil
}

// ttlText is a number of milliseconds for people.
func ttlText(ms *int64) string {
	if ms == nil {
		return "-"
	}
	return (time.Duration(*ms) * time.Millisecond).String()
}

// ttlPlanView is a plan that is not run.
type ttlPlanView struct {
	*triage.QueueTTLPlan

	DryRun bool `json:"dry_run"`
}

func (a *app) changeTTL(cmd *cobra.Command, ttl time.Duration, options *ttlOptions) error {
	d, err := a.openTTL(cmd)
	if err != nil {
		return err
	}
	defer d.stop()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	plan, err := d.PlanTTL(ctx, triage.TTLOrder{TTL: ttl, Worker: options.worker, Recreate: options.recreate, Reason: options.reason})
	if err != nil {
		return d.ttlError(err)
	}
	if options.dryRun {
		return a.print(cmd, ttlPlanView{plan, true}, func(w io.Writer) error { return ttlPlanTable(w, plan) })
	}
	if plan.Blocked == "" && !plan.Nothing() {
		if err := confirmTTL(cmd.InOrStdin(), a.stderr, plan, options.yes); err != nil {
			return err
		}
	}
	receipt, err := d.ApplyTTL(ctx, plan)
	if receipt.Audit == 0 {
		return d.ttlError(err)
	}
	printErr := a.print(cmd, receipt, func(w io.Writer) error { return ttlReceiptTable(w, receipt) })
	switch {
	case err != nil && ctx.Err() != nil:
		return failedErrorf("interrupted: the same command goes on, nothing is lost")
	case err != nil:
		return d.ttlError(fmt.Errorf("%w: nothing is lost, the same command goes on", err))
	case printErr != nil:
		return printErr
	case receipt.Refused > 0:
		return refusedErrorf("%s could not be recreated: %s", count(receipt.Refused, "queue"), refusals(receipt))
	}
	return nil
}

func refusals(receipt *triage.QueueTTLReceipt) string {
	var all []string
	for _, one := range receipt.Recreated {
		if one.Reason != "" {
			all = append(all, one.Queue+": "+one.Reason)
		}
	}
	return strings.Join(all, "; ")
}

// confirmTTL asks. Where workers would be kept from starting, --yes is not enough:
// somebody has to type the new time to live, and without --yes it is refused.
func confirmTTL(in io.Reader, out io.Writer, plan *triage.QueueTTLPlan, yes bool) error {
	risky := len(plan.Recreate) > 0 && len(plan.Warnings) > 0
	switch {
	case yes && !risky:
		return nil
	case !yes && len(plan.Recreate) > 0:
		return refusedErrorf("%s would be recreated: stop the workers, look at it with --dry-run, and give --yes", count(len(plan.Recreate), "queue"))
	case !yes && !interactive(in):
		return refusedErrorf("the time to live of %s would be changed: --yes does it, --dry-run shows how", count(len(plan.Queues()), "queue"))
	}
	for _, warning := range plan.Warnings {
		_, _ = fmt.Fprintln(out, "warning: "+clean(warning))
	}
	_, _ = fmt.Fprintf(out, "change the time to live of %s? type the new one in milliseconds: ", count(len(plan.Queues()), "queue"))
	answer, err := bufio.NewReader(in).ReadString('\n')
	if !interactive(in) {
		_, _ = fmt.Fprintln(out) // nobody has typed the end of the line
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if wanted := strconv.FormatInt(plan.Target, 10); strings.TrimSpace(answer) != wanted {
		return refusedErrorf("nothing was changed: the answer is not %s", wanted)
	}
	return nil
}

func ttlPlanTable(w io.Writer, plan *triage.QueueTTLPlan) error {
	var lines []string
	if plan.Put != nil {
		lines = append(lines, fmt.Sprintf("policy %s would be set on %s", plan.Put.Name, plan.Put.Pattern))
	}
	for _, name := range plan.Delete {
		lines = append(lines, "policy "+name+" would be taken away")
	}
	for _, one := range plan.Recreate {
		lines = append(lines, fmt.Sprintf("queue %s would be recreated: %s ready, %s", one.Queue, count(one.Ready, "message"), count(one.Consumers, "consumer")))
	}
	if plan.Nothing() {
		lines = append(lines, "nothing is to be changed")
	}
	for _, warning := range plan.Warnings {
		lines = append(lines, "warning: "+warning)
	}
	if plan.Blocked != "" {
		lines = append(lines, "in the way: "+plan.Blocked)
	}
	for _, line := range lines {
		if err := row(w, line); err != nil {
			return err
		}
	}
	return nil
}

func ttlReceiptTable(w io.Writer, r *triage.QueueTTLReceipt) error {
	for _, one := range r.Recreated {
		line := fmt.Sprintf("queue %s: %s", one.Queue, one.Outcome)
		if one.Reason != "" {
			line += ": " + one.Reason
		} else {
			line += fmt.Sprintf(", %s moved", count(one.Moved, "message"))
		}
		if err := row(w, line); err != nil {
			return err
		}
	}
	if r.Put != "" {
		if err := row(w, "policy "+r.Put+" is set, in force at once for what is handed over from now on; worker_queue_ttl_ms stays what queues are declared with"); err != nil {
			return err
		}
	}
	for _, name := range r.Deleted {
		if err := row(w, "policy "+name+" is taken away"); err != nil {
			return err
		}
	}
	return row(w, fmt.Sprintf("time to live %s: %s (audit %d)", ttlText(&r.Target), r.Outcome, r.Audit))
}
