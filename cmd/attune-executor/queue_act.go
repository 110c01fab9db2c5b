package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/triage"
)

// queueActs are the commands of `queue` that change something.
func (a *app) queueActs() []*cobra.Command {
	return []*cobra.Command{
		newQueuePauseCommand(a), newQueueResumeCommand(a), newQueueLimitCommand(a), newQueueClearCommand(a), newQueueRepairCommand(a),
	}
}

// groupFlag adds --group.
func groupFlag(cmd *cobra.Command, group *string) {
	cmd.Flags().StringVar(group, "group", "", `only the queue of this group, such as '{"tenant":"a"}'; default all queues of the action`)
}

func newQueuePauseCommand(a *app) *cobra.Command {
	order := triage.Order{Act: triage.Pause}
	cmd := &cobra.Command{
		Use:   "pause ACTION",
		Short: "Admit nothing from an action's queues until they are resumed",
		Long: "Admit nothing from an action's queues until they are resumed. What runs goes on, who waits keeps its place, and\n" +
			"who comes waits behind them.",
		Example: "  attune-executor queue pause core.echo --reason 'the service behind it is down'\n" +
			"  attune-executor queue pause deploy.rollout --group '{\"region\":\"eu\"}'",
		Args: oneArg("the ref of an action, such as core.echo"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.sayWord(cmd, args[0], order) },
	}
	groupFlag(cmd, &order.Group)
	cmd.Flags().StringVar(&order.Reason, "reason", "", "why, for those who look at the queue")
	return cmd
}

func newQueueResumeCommand(a *app) *cobra.Command {
	order := triage.Order{Act: triage.Resume}
	cmd := &cobra.Command{
		Use:     "resume ACTION",
		Short:   "Admit again from an action's queues, in the order in which they wait",
		Example: "  attune-executor queue resume core.echo",
		Args:    oneArg("the ref of an action, such as core.echo"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.sayWord(cmd, args[0], order) },
	}
	groupFlag(cmd, &order.Group)
	return cmd
}

func newQueueLimitCommand(a *app) *cobra.Command {
	order := triage.Order{Act: triage.Limit}
	reset := false
	cmd := &cobra.Command{
		Use:   "limit ACTION N | limit ACTION --reset",
		Short: "Let another number run at once than the action's policy says",
		Long: "Let another number of executions run at once than the action's policy says, in each of its queues, until --reset.\n" +
			"A lower limit ends nothing that runs; a higher one is filled at once.",
		Example: "  attune-executor queue limit core.echo 2\n  attune-executor queue limit core.echo --reset",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case reset && len(args) == 1, !reset && len(args) == 2:
				return nil
			case reset:
				return fmt.Errorf("limit --reset takes the ref of an action and nothing else")
			}
			return fmt.Errorf("limit needs the ref of an action and a number, or --reset")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			order := order
			if reset {
				order.Act = triage.Reset
				return a.sayWord(cmd, args[0], order)
			}
			limit, err := strconv.ParseInt(args[1], 10, 32)
			if err != nil || limit < 1 {
				return usageErrorf("%q is not a limit: it is a number of at least 1", args[1])
			}
			order.Limit = int(limit)
			return a.sayWord(cmd, args[0], order)
		},
	}
	groupFlag(cmd, &order.Group)
	cmd.Flags().BoolVar(&reset, "reset", false, "the policy's limit again")
	return cmd
}

// clearOptions are the flags of `queue clear`.
type clearOptions struct {
	group     string
	olderThan time.Duration
	dryRun    bool
	yes       bool
}

func newQueueClearCommand(a *app) *cobra.Command {
	options := &clearOptions{}
	cmd := &cobra.Command{
		Use:   "clear ACTION",
		Short: "Cancel the executions that wait in an action's queues",
		Long: "Cancel the executions that wait in an action's queues when the command begins. What runs goes on, and who comes\n" +
			"meanwhile stays. Interrupted, it has cancelled some and not others; the same command goes on.",
		Example: "  attune-executor queue clear core.echo --dry-run\n  attune-executor queue clear core.echo --older-than 1h --yes",
		Args:    oneArg("the ref of an action, such as core.echo"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.clearQueue(cmd, args[0], options) },
	}
	groupFlag(cmd, &options.group)
	flags := cmd.Flags()
	flags.DurationVar(&options.olderThan, "older-than", 0, "only who has waited for this long, such as 1h")
	flags.BoolVar(&options.dryRun, "dry-run", false, "show who would be cancelled and do nothing")
	flags.BoolVar(&options.yes, "yes", false, "do not ask")
	return cmd
}

func newQueueRepairCommand(a *app) *cobra.Command {
	dryRun := false
	cmd := &cobra.Command{
		Use:   "repair [ACTION]",
		Short: "Compare the counters of queues with the facts, and put right what differs",
		Long: "Compare the counters of queues, workers and shared limits with the executions that hold and wait, put right what\n" +
			"differs, and give back what ended or deleted executions still hold. Exits with 0 only if nothing is wrong any more.",
		Example: "  attune-executor queue repair --dry-run\n  attune-executor queue repair core.echo",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.repairQueues(cmd, strings.Join(args, ""), dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what is wrong and do nothing")
	return cmd
}

// operator is who acts, as audits name them.
func operator() string {
	name := "unknown"
	if account, err := user.Current(); err == nil {
		name = account.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// desk is what one act needs: the triage, and what publishes its messages.
type desk struct {
	*client
	*triage.Triage

	link     *broker.Broker // nil: nothing is published
	returned *atomic.Bool   // a message reached no queue
	stop     func()
}

// openDesk connects; publishing starts a relay of its own, whose broker may be
// away.
func (a *app) openDesk(cmd *cobra.Command, publishing bool) (*desk, error) {
	c, err := a.connect(cmd)
	if err != nil {
		return nil, err
	}
	d := &desk{client: c, returned: &atomic.Bool{}, stop: c.store.Close}
	cfg := triage.Config{
		Actor: operator(), Source: "attune-executor",
		HeartbeatStaleAfter: c.cfg.Executor.StaleAfter(), WithoutStats: !c.cfg.Executor.Queue.EnableMetrics,
	}
	if !publishing {
		d.Triage = triage.New(cfg, c.store, nil)
		return d, nil
	}
	quiet := slog.New(slog.DiscardHandler) // a broker that is away is reported in one line, not by its reconnects
	link := broker.New(brokerConfig(c.cfg, cmd.CommandPath()), quiet, broker.NewMetrics(nil))
	relay := outbox.New(
		outbox.Config{SweepInterval: time.Hour, FlushTimeout: time.Second, Returned: func(outbox.Message) { d.returned.Store(true) }},
		c.store, link.Publisher(), quiet, outbox.NewMetrics(prometheus.NewRegistry()))
	if err := link.Start(cmd.Context()); err != nil {
		c.store.Close()
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	if err := relay.Start(cmd.Context()); err != nil {
		link.Stop()
		c.store.Close()
		return nil, fmt.Errorf("start publishing: %w", err)
	}
	d.link, d.stop = link, func() { relay.Stop(); link.Stop(); c.store.Close() }
	d.Triage = triage.New(cfg, c.store, relay)
	return d, nil
}

// The ways of an act's messages, as receipts say.
const (
	deliveryNone      = "none"      // there were none
	deliveryPublished = "published" // the broker has them
	deliveryStored    = "stored"    // a running engine publishes them
)

// delivery waits until the broker has confirmed the messages of an act, for
// publishPatience at most.
func (d *desk) delivery(ctx context.Context, a *app, sent triage.Sent) string {
	if len(sent.Rows) == 0 {
		return deliveryNone
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishPatience)
	defer cancel()
	submitter := submit.New(d.store, nil)
	for _, row := range sent.Rows {
		if d.link.State() != broker.StateConnected || submitter.AwaitPublished(ctx, row) != nil {
			a.notef("the broker %s does not answer: what follows from this is stored and will be published by a running engine",
				config.MaskURL(d.cfg.MessageQueue.URL))
			return deliveryStored
		}
	}
	if d.returned.Load() {
		a.notef("no engine has run on this broker yet: what follows from this is stored until one does")
		return deliveryStored
	}
	return deliveryPublished
}

// actError gives errors of an act their exit codes and what to do.
func (d *desk) actError(ctx context.Context, ref string, err error) error {
	if target, ok := errors.AsType[*triage.TargetError](err); ok {
		err = target // what was being done when it was found says nothing more
	}
	switch {
	case errors.Is(err, triage.ErrNoAction):
		if _, hint := submit.New(d.store, nil).Action(ctx, ref); hint != nil {
			return runError(hint)
		}
		return err // made just now: the same again succeeds
	case errors.Is(err, triage.ErrGroup), errors.Is(err, triage.ErrLimit):
		return usageErrorf("%w", err)
	case errors.Is(err, triage.ErrNoQueue):
		return failedErrorf("%w: `attune-executor queue list` shows those that are there", err)
	case store.ClassOf(err) == store.ClassUnknown:
		return failedErrorf("%w: whether it was done is unknown, the same again is safe", err)
	}
	return err
}

// wordView is a receipt with the way of its messages.
type wordView struct {
	*triage.WordReceipt

	Delivery string `json:"delivery"`
}

func (a *app) sayWord(cmd *cobra.Command, ref string, order triage.Order) error {
	d, err := a.openDesk(cmd, order.Act != triage.Pause)
	if err != nil {
		return err
	}
	defer d.stop()
	order.Action = ref
	receipt, err := d.Say(cmd.Context(), order)
	if err != nil {
		return d.actError(cmd.Context(), ref, err)
	}
	view := wordView{WordReceipt: receipt, Delivery: d.delivery(cmd.Context(), a, receipt.Sent)}
	return a.print(cmd, view, func(w io.Writer) error { return wordTable(w, receipt) })
}

func wordTable(w io.Writer, receipt *triage.WordReceipt) error {
	if err := row(w, "QUEUE", "GROUP", "STATE", "LIMIT", "ACTIVE", "WAITING", "CHANGED"); err != nil {
		return err
	}
	for _, q := range receipt.Queues {
		state, limit, changed := "open", "none", "no"
		if q.After.Paused {
			state = "paused"
		}
		if q.After.Limit != nil {
			limit = strconv.Itoa(*q.After.Limit)
		}
		if q.Changed {
			changed = "yes"
		}
		if err := row(w, q.ID, dash(q.Group), state, limit, q.Active, q.Waiting, changed); err != nil {
			return err
		}
	}
	if hidden := receipt.Changed + receipt.Already - len(receipt.Queues); hidden > 0 {
		if err := row(w, fmt.Sprintf("and %d more", hidden)); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("%s %s: %d changed, %d so already", receipt.Act, receipt.Action, receipt.Changed, receipt.Already)
	if receipt.Nudged > 0 {
		line += fmt.Sprintf(", %d may go on", receipt.Nudged)
	}
	return row(w, fmt.Sprintf("%s (audit %d)", line, receipt.Audit))
}

func (a *app) clearQueue(cmd *cobra.Command, ref string, options *clearOptions) error {
	if options.olderThan < 0 {
		return usageErrorf("--older-than must not be negative")
	}
	d, err := a.openDesk(cmd, !options.dryRun)
	if err != nil {
		return err
	}
	defer d.stop()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	plan, err := d.PlanClear(ctx, triage.ClearOrder{
		Target: triage.Target{Action: ref, Group: options.group}, OlderThan: options.olderThan,
	})
	if err != nil {
		return d.actError(ctx, ref, err)
	}
	if options.dryRun || plan.Waiting == 0 {
		return a.print(cmd, plan, func(w io.Writer) error { return clearPlanTable(w, plan) })
	}
	if !options.yes {
		in := cmd.InOrStdin()
		if err := confirmClear(in, a.stderr, interactive(in), plan); err != nil {
			return err
		}
	}
	receipt, err := d.Clear(ctx, plan)
	view := clearView{ClearReceipt: receipt, Delivery: d.delivery(ctx, a, receipt.Sent)}
	printErr := a.print(cmd, view, func(w io.Writer) error { return clearTable(w, receipt) })
	switch {
	case err != nil && ctx.Err() != nil:
		return failedErrorf("interrupted with %d of %d executions left: the same command goes on", receipt.Left, receipt.Planned)
	case err != nil:
		return d.actError(ctx, ref, err)
	}
	return printErr
}

// clearView is a receipt with the way of its messages.
type clearView struct {
	*triage.ClearReceipt

	Delivery string `json:"delivery"`
}

// interactive reports whether a person can be asked.
func interactive(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// confirmClear asks a person to type the action's name. Without one it refuses.
func confirmClear(in io.Reader, out io.Writer, person bool, plan *triage.ClearPlan) error {
	if !person {
		return refusedErrorf("%d executions wait in the queues of %s: --yes cancels them, --dry-run shows them", plan.Waiting, plan.Action)
	}
	where := plan.Action
	if plan.Group != "" {
		where += " " + clean(plan.Group)
	}
	_, _ = fmt.Fprintf(out, "clear %d executions waiting in %s? type the action's name: ", plan.Waiting, where)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(answer) != plan.Action {
		return refusedErrorf("nothing was cancelled: the answer is not %s", plan.Action)
	}
	return nil
}

func clearPlanTable(w io.Writer, plan *triage.ClearPlan) error {
	if plan.Waiting == 0 {
		return row(w, "nothing waits in "+triage.Target{Action: plan.Action, Group: plan.Group}.String())
	}
	if err := row(w, "QUEUE", "GROUP", "WAITING", "OLDEST"); err != nil {
		return err
	}
	for _, q := range plan.Queues {
		if err := row(w, q.ID, dash(q.Group), q.Waiting, short(plan.At.Sub(q.Oldest))); err != nil {
			return err
		}
	}
	return row(w, fmt.Sprintf("%d executions would be cancelled", plan.Waiting))
}

func clearTable(w io.Writer, r *triage.ClearReceipt) error {
	line := fmt.Sprintf("clear %s: %d planned, %d cancelled, %d already gone", r.Target, r.Planned, r.Cancelled, r.AlreadyGone)
	if r.Left > 0 {
		line += fmt.Sprintf(", %d left", r.Left)
	}
	if r.Cancelled > 0 {
		line += fmt.Sprintf(", executions %d to %d", r.First, r.Last)
	}
	return row(w, fmt.Sprintf("%s, in %s (audit %d)", line, short(time.Duration(r.Seconds*float64(time.Second))), r.Audit))
}

// repairView is a receipt with the way of its messages.
type repairView struct {
	*triage.RepairReceipt

	Delivery string `json:"delivery"`
}

func (a *app) repairQueues(cmd *cobra.Command, ref string, dryRun bool) error {
	d, err := a.openDesk(cmd, !dryRun)
	if err != nil {
		return err
	}
	defer d.stop()
	act := d.Repair
	if dryRun {
		act = d.PlanRepair
	}
	receipt, err := act(cmd.Context(), ref)
	if receipt == nil {
		return d.actError(cmd.Context(), ref, err)
	}
	view := repairView{RepairReceipt: receipt, Delivery: d.delivery(cmd.Context(), a, receipt.Sent)}
	printErr := a.print(cmd, view, func(w io.Writer) error { return repairTable(w, receipt) })
	switch {
	case err != nil:
		return d.actError(cmd.Context(), ref, err)
	case printErr != nil:
		return printErr
	case dryRun && len(receipt.Remains) > 0:
		return failedErrorf("%d differences: `attune-executor queue repair` puts them right", len(receipt.Remains))
	case len(receipt.Remains) > 0:
		return failedErrorf("%d differences remain: run it again, and `attune-executor doctor` if they stay", len(receipt.Remains))
	}
	return nil
}

func repairTable(w io.Writer, r *triage.RepairReceipt) error {
	for _, group := range []struct {
		title  string
		drifts []triage.Drift
	}{{"found", r.Found}, {"repaired", r.Repaired}, {"remains", r.Remains}} {
		if r.DryRun && group.title != "found" {
			continue
		}
		for _, drift := range group.drifts {
			if err := row(w, group.title, drift); err != nil {
				return err
			}
		}
	}
	return row(w, fmt.Sprintf("%d found, %d repaired, %d remain, in %s",
		len(r.Found), len(r.Repaired), len(r.Remains), short(time.Duration(r.Seconds*float64(time.Second)))))
}
