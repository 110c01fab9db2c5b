package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/triage"
)

func newQueueCommand(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "queue",
		Aliases: []string{"queues"},
		Short:   "Show the queues of actions, and act on them",
		Example: "  attune-executor queue list --blocked\n  attune-executor queue show core.echo",
	}, newQueueListCommand(a), newQueueShowCommand(a),
		newQueuePauseCommand(a), newQueueResumeCommand(a), newQueueLimitCommand(a), newQueueClearCommand(a),
		newQueueRepairCommand(a))
}

func newQueueListCommand(a *app) *cobra.Command {
	filter := monitor.QueueFilter{}
	cmd := reading(a, &cobra.Command{
		Use:     "list",
		Short:   "List the queues, the busiest first, and the limits they share",
		Example: "  attune-executor queue list --action core.\n  attune-executor queue list --paused -o json",
	}, func() error { return checkPage(filter.Limit) }, func(c *client, _ []string) (list queueList, err error) {
		if list.Queues, err = c.monitor().Queues(c.cmd.Context(), filter); err != nil {
			return list, err
		}
		scopes, err := c.monitor().Scopes(c.cmd.Context(), filter.Text)
		if err != nil {
			return list, err
		}
		list.List, list.Scopes = notNil(list.List), notNil(scopes.List)
		return list, nil
	}, func(w *page, list queueList) { queuesPage(w, list, filter) })
	flags := cmd.Flags()
	flags.StringVar(&filter.Text, "action", "", "only queues whose action or group contains this text")
	flags.BoolVar(&filter.Paused, "paused", false, "only queues that are paused")
	flags.BoolVar(&filter.Blocked, "blocked", false,
		"only queues with room that wait for something else, such as a worker")
	flags.BoolVar(&filter.All, "all", false, "also idle queues of groups that no policy has any more")
	flags.IntVar(&filter.Limit, "limit", 50, "how many to list")
	return cmd
}

func newQueueShowCommand(a *app) *cobra.Command {
	group := ""
	cmd := &cobra.Command{
		Use:   "show ACTION",
		Short: "Show one queue: its limits, the holders of its slots, the waiting executions",
		Long: "Show the queue of an action, by the action's ref or the queue's id. If a policy has parameters,\n" +
			"every combination of their values has its own queue: name it with --group.",
		Example: "  attune-executor queue show core.echo\n" +
			"  attune-executor queue show demo.deploy --group '{\"environment\":\"prod\"}'",
		Args: oneArg("the ref of an action or the id of a queue"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.showQueue(cmd, args[0], group) },
	}
	cmd.Flags().StringVar(&group, "group", "", "the values of the group, as a JSON object")
	return cmd
}

// queueList is the data of `queue list`.
type queueList struct {
	*monitor.Queues

	Scopes []monitor.Scope `json:"shared_limits"`
}

// notNil makes a list that is written as [] if it is empty.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func queuesPage(w *page, list queueList, filter monitor.QueueFilter) {
	none := "no queue exists yet: the first execution of an action makes one"
	if filter.Text != "" || filter.Paused || filter.Blocked {
		none = "none of " + phrase.Plural(list.Totals.Queues, "queue", "queues") + " matches"
	}
	titles := "ID, QUEUE, QUEUED, HIGH, LOW, ACTIVE, LIMIT, FROM, OLDEST, STATE"
	table(w, none, list.List, titles, func(q *monitor.Queue) []any {
		return []any{
			q.ID, q.Name(), q.Queued, q.QueuedHigh, q.QueuedLow, q.Active, cmp.Or(opt(q.Limit), "none"),
			dash(q.LimitFrom.String()), ageText(q.Oldest, list.At), q.State(),
		}
	})
	if list.More {
		w.row("more: raise --limit")
	}
	if len(list.List) == 0 || len(list.Scopes) == 0 {
		return
	}
	w.text("\nlimits that queues share")
	table(w, "", list.Scopes, "ID, LIMIT, POLICY, STATE, BLOCKED QUEUES", func(s *monitor.Scope) []any {
		state := s.State(list.At)
		if s.Kind == string(policy.SharedRate) {
			state = fmt.Sprintf("%d every %s, %s", s.Limit, short(s.Window), state)
		}
		return []any{s.ID, s.Name, dash(s.PolicyRef), state, countText(s.Blocking)}
	})
}

func (a *app) showQueue(cmd *cobra.Command, which, group string) error {
	ref := explain.QueueRef{Action: which, Group: group}
	if id, err := strconv.ParseInt(which, 10, 64); err == nil {
		if group != "" {
			return usageErrorf("the id of a queue names its group already: leave out --group")
		}
		ref = explain.QueueRef{ID: id}
		if id < 1 { // a zero id would select by action
			return aQueue.missing(id)
		}
	}
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	d, err := c.monitor().QueueDetail(cmd.Context(), ref)
	if err != nil {
		return queueError(err, ref)
	}
	return c.show(d, func(w *page) { queuePage(w, d) })
}

func queueError(err error, ref explain.QueueRef) error {
	if unknown, ok := errors.AsType[*monitor.UnknownActionError](err); ok {
		return failedErrorf("%s", unknown.Error())
	}
	if target, ok := errors.AsType[*triage.TargetError](err); ok {
		if errors.Is(target, triage.ErrGroup) {
			return usageErrorf("%w", target)
		}
		return failedErrorf("%w: `attune-executor queue list` shows the queues", target)
	}
	if errors.Is(err, monitor.ErrUnmigrated) {
		return failedErrorf("%s", monitor.ErrUnmigrated.Error())
	}
	if !errors.Is(err, monitor.ErrNotFound) {
		return err
	}
	if ref.ID != 0 {
		return aQueue.missing(ref.ID)
	}
	return failedErrorf("%s has no queue for the group %s: `attune-executor queue list --action %s` shows those it has",
		ref.Action, ref.Group, ref.Action)
}

func queuePage(w *page, d *explain.QueueDetail) {
	for _, section := range d.Sections() {
		if section.Title != "" {
			w.text("\n" + clean(section.Title))
		}
		for _, cells := range section.Rows {
			values := make([]any, len(cells))
			for i, cell := range cells {
				values[i] = cell
			}
			w.row(values...)
		}
	}
}

func groupFlag(cmd *cobra.Command, group *string) {
	cmd.Flags().StringVar(group, "group", "",
		`only the queue of this group, such as '{"tenant":"a"}'; default all queues of the action`)
}

func newQueuePauseCommand(a *app) *cobra.Command {
	var group, reason string
	cmd := a.overrideCommand(&cobra.Command{
		Use:   "pause ACTION",
		Short: "Pause an action's queues: they admit nothing until they are resumed",
		Long: "Pause an action's queues: they admit nothing until they are resumed. Running executions go on,\n" +
			"waiting executions keep their places, and new ones wait behind them. If a queue is paused already, only the\n" +
			"reason changes.",
		Example: "  attune-executor queue pause core.echo --reason 'the service behind it is down'\n" +
			"  attune-executor queue pause deploy.rollout --group '{\"region\":\"eu\"}'",
	}, act.PauseQueue, &group, &reason)
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, shown with the queue")
	return cmd
}

func newQueueResumeCommand(a *app) *cobra.Command {
	return a.overrideCommand(&cobra.Command{
		Use:     "resume ACTION",
		Short:   "Resume an action's queues, which keep the order of their executions",
		Example: "  attune-executor queue resume core.echo",
	}, act.ResumeQueue, new(string), new(string))
}

// overrideCommand makes a command that overrides the queues of an action.
func (a *app) overrideCommand(cmd *cobra.Command, kind act.Kind, group, reason *string) *cobra.Command {
	cmd.Args = oneArg("the ref of an action, such as core.echo")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.changeQueues(cmd, act.Request{Kind: kind, Target: act.Target{Action: args[0], Group: *group}}, *reason)
	}
	groupFlag(cmd, group)
	return cmd
}

func (a *app) changeQueues(cmd *cobra.Command, request act.Request, reason string) error {
	return a.act(cmd, acting{publishes: true, noun: "queue"}, request, reason)
}

func newQueueLimitCommand(a *app) *cobra.Command {
	group, reset := "", false
	cmd := &cobra.Command{
		Use:   "limit ACTION N | limit ACTION --reset",
		Short: "Override the limit of an action's policy",
		Long: "Override how many executions of an action may run at once, in each of its queues, until --reset. A\n" +
			"lower limit ends no running execution; a higher one is filled at once.",
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
			request := act.Request{Kind: act.ResetQueue, Target: act.Target{Action: args[0], Group: group}}
			if reset {
				return a.changeQueues(cmd, request, "")
			}
			if _, err := parseLimit(args[1]); err != nil {
				return err
			}
			request.Kind, request.Values = act.LimitQueue, map[string]string{act.FieldLimit: args[1]}
			return a.changeQueues(cmd, request, "")
		},
	}
	cmd.SetFlagErrorFunc(negativeLimit)
	groupFlag(cmd, &group)
	cmd.Flags().BoolVar(&reset, "reset", false, "return to the policy's limit")
	return cmd
}

// maxLimit is the largest limit; the number above it stands for none.
const maxLimit = math.MaxInt32 - 1

func parseLimit(text string) (int, error) {
	limit, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && limit > 0, err == nil && limit > maxLimit:
		return 0, usageErrorf("%q is not a limit: it is at most %d; without a policy, --reset lets any number run",
			text, maxLimit)
	case err != nil || limit < 1:
		return 0, usageErrorf("%q is not a limit: it is a number of at least 1", text)
	}
	return int(limit), nil
}

// negativeLimit reports a negative limit, which cobra takes for a flag, like other invalid limits.
func negativeLimit(_ *cobra.Command, err error) error {
	for text := range strings.FieldsSeq(err.Error()) {
		if number, parseErr := strconv.ParseInt(text, 10, 64); parseErr == nil && number < 0 {
			return usageErrorf("%q is not a limit: it is a number of at least 1", text)
		}
	}
	return err
}

func newQueueRepairCommand(a *app) *cobra.Command {
	dryRun := false
	cmd := &cobra.Command{
		Use:   "repair [ACTION]",
		Short: "Compare the counters of queues with the facts, and correct them",
		Long: "Compare the counters of queues, workers and shared limits with the executions that hold slots or\n" +
			"wait, and correct them. Release the slots of ended and deleted executions. Exits with 0 only if\n" +
			"nothing is wrong any more.",
		Example: "  attune-executor queue repair --dry-run\n  attune-executor queue repair core.echo",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s takes at most one argument, the ref of an action, not %d", cmd.Name(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.repairQueues(cmd, strings.Join(args, ""), dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what is wrong and do nothing")
	return cmd
}

func (a *app) repairQueues(cmd *cobra.Command, ref string, dryRun bool) error {
	how := acting{planFlags: planFlags{dryRun: dryRun}, publishes: true, noun: "difference"}
	request := act.Request{Kind: act.RepairQueue, Target: act.Target{Action: ref}}
	if !dryRun {
		return a.act(cmd, how, request, "")
	}
	return a.withOperator(cmd, how, func(o *operator) error {
		o.action = ref
		plan, err := o.Plan(cmd.Context(), request)
		switch {
		case err != nil:
			return o.problem(err)
		case plan.Data == nil:
			return o.problem(plan.Problem)
		}
		found, _ := plan.Data.(*triage.RepairReceipt)
		err = o.show(with(found, "delivery", deliveryNone), func(w *page) { planPage(w, plan) })
		if err == nil && len(found.Found) > 0 {
			return failedErrorf("%s: `attune-executor queue repair` corrects the counters",
				count(len(found.Found), "difference"))
		}
		return err
	})
}

func newQueueClearCommand(a *app) *cobra.Command {
	options := &clearOptions{}
	cmd := &cobra.Command{
		Use:   "clear ACTION",
		Short: "Cancel the executions that wait in an action's queues",
		Long: "Cancel the executions that wait in an action's queues when the command begins. Running and later\n" +
			"executions are not touched. If you interrupt it, run the same command again.",
		Example: "  attune-executor queue clear core.echo --dry-run\n" +
			"  attune-executor queue clear core.echo --older-than 1h --yes\n" +
			"  attune-executor queue clear shop.bill -p tenant=t7 --dry-run",
		Args: oneArg("the ref of an action, such as core.echo"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.clearQueue(cmd, args[0], options) },
	}
	groupFlag(cmd, &options.group)
	flags := cmd.Flags()
	flags.Var(phrase.SpanFlag{To: &options.olderThan, Age: true}, "older-than",
		"only executions that have waited for this time, such as 1h")
	options.plan.add(flags, "show how many would be cancelled and do nothing", "do not ask")
	options.chosen.paramFlags(cmd)
	return cmd
}

func (a *app) clearQueue(cmd *cobra.Command, ref string, options *clearOptions) error {
	filter, err := options.chosen.read()
	if err != nil {
		return err
	}
	how := acting{planFlags: options.plan, asks: true, publishes: true, noun: "execution"}
	return a.withOperator(cmd, how, func(o *operator) error {
		wish := triage.ClearRequest{
			Target: triage.Target{Action: ref, Group: options.group}, OlderThan: options.olderThan,
		}
		if options.chosen.given() {
			filter.Action, filter.Statuses = ref, []lifecycle.Status{lifecycle.StatusRequested}
			chosen, err := o.monitor().Choose(cmd.Context(), filter, monitor.ChoiceBound)
			if err != nil {
				return err
			}
			if text := cutText(chosen); text != "" {
				o.notef("%s", text)
			}
			wish.Only = chosen.IDs
		}
		return o.act(act.Request{Kind: act.ClearQueue, Target: act.Target{Action: ref}, Input: wish}, "", how)
	})
}

// clearOptions are the flags of `queue clear`.
type clearOptions struct {
	group     string
	olderThan time.Duration
	plan      planFlags
	chosen    selection
}
