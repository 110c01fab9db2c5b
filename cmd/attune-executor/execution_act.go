package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/triage"
)

// cancelOptions are the flags of `execution cancel`.
type cancelOptions struct {
	tree     bool
	workflow bool
	reason   string
	flags    planFlags
	chosen   selection
	waitFlags
}

// stoppable are the statuses of unfinished executions without a cancel request.
var stoppable = []lifecycle.Status{
	lifecycle.StatusRequested, lifecycle.StatusScheduling, lifecycle.StatusScheduled,
	lifecycle.StatusRunning,
}

func newExecutionCancelCommand(a *app) *cobra.Command {
	options := &cancelOptions{}
	cmd := &cobra.Command{
		Use:   "cancel ID... | cancel --param NAME=VALUE...",
		Short: "Stop waiting and running executions",
		Long: "Stop executions. Waiting executions, and dispatched ones that cannot start any more, are cancelled\n" +
			"at once. For a running execution the worker is asked to stop it, and the worker writes how it ended.\n" +
			"For a failed execution the pending retry is stopped. An execution that was asked to stop is not\n" +
			"repeated, however it ends.\n\n" +
			"Without ids the flags choose: all unfinished executions that match, at most 10000 at once, of the\n" +
			"newest 50000. The command asks first; --dry-run counts them by action and status.",
		Example: "  attune-executor execution cancel 42 --reason 'wrong host' --wait --timeout 30s\n" +
			"  attune-executor execution cancel 42 --tree --dry-run\n" +
			"  attune-executor execution cancel --action shop.bill --status requested -p tenant=t7 --yes",
		Args: options.chosen.someExecutions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := anExecution.ids(args)
			if err != nil {
				return err
			}
			return a.cancelExecutions(cmd, ids, options)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&options.tree, "tree", false, "their descendants too")
	flags.StringVar(&options.reason, "reason", "", "the reason, shown in the result")
	options.waitFlags.add(flags, "wait until they have ended")
	options.flags.add(flags, "show what would happen and do nothing",
		"do not ask about executions that the flags choose")
	options.chosen.flags(cmd)
	return cmd
}

func (a *app) cancelExecutions(cmd *cobra.Command, ids []int64, options *cancelOptions) error {
	if err := options.check(); err != nil {
		return err
	}
	filter, err := options.chosen.read(stoppable...)
	if err != nil {
		return err
	}
	how := acting{planFlags: options.flags, publishes: true, noun: "execution"}
	return a.withOperator(cmd, how, func(o *operator) error {
		return o.cancelExecutions(act.OnIDs(options.kind(), ids...), filter, options, how)
	})
}

// kind is the act that the flags ask for.
func (o *cancelOptions) kind() act.Kind {
	switch {
	case o.workflow:
		return act.CancelWorkflow
	case o.tree:
		return act.CancelTree
	}
	return act.CancelExecution
}

func (o *operator) cancelExecutions(
	request act.Request, filter monitor.ExecutionFilter, options *cancelOptions, how acting,
) error {
	if options.chosen.given() {
		ids, err := o.choose(act.CancelExecution, filter, how)
		if err != nil || ids == nil {
			return err
		}
		request = act.OnIDs(request.Kind, ids...)
	}
	request.Reason = options.reason
	plan, err := o.planned(request, how)
	if plan == nil {
		return err
	}
	ctx, stop := o.start("execution")
	defer stop()
	receipt, err := o.Run(ctx, plan, options.reason, nil)
	switch {
	case receipt == nil:
		return o.problem(err)
	case !options.wait || err != nil:
		return o.finish(ctx, request, receipt, err, how)
	}
	stopped, _ := receipt.Data.(*triage.CancelReceipt)
	if o.output != "json" && o.output != "yaml" {
		if err := o.show(nil, func(w *page) { receiptPage(w, receipt) }); err != nil {
			return err
		}
	}
	ends, waited := o.awaitStops(ctx, stopped.Executions, options.timeout)
	view := cancelView{CancelReceipt: stopped, Delivery: o.delivery(ctx, stopped.Sent), Ends: ends}
	printErr := o.show(view, func(w *page) {
		for _, end := range ends {
			line := fmt.Sprintf("execution %d: %s", end.ID, end.Status)
			if end.Status != lifecycle.StatusCancelled {
				line += " before it was stopped"
			}
			w.row(line)
		}
	})
	return cmp.Or(printErr, waited)
}

// cancelView is a receipt with the delivery of its messages and, after a wait, the ends of the
// stopped executions.
type cancelView struct {
	*triage.CancelReceipt

	Delivery string      `json:"delivery"`
	Ends     []cancelEnd `json:"ends,omitempty"`
}

// cancelEnd is the end of an execution that was asked to stop.
type cancelEnd struct {
	ID     int64            `json:"id"`
	Status lifecycle.Status `json:"status"`
}

// awaitStops waits for the ends of the executions that were asked to stop.
func (o *operator) awaitStops(
	ctx context.Context, results []triage.CancelResult, timeout time.Duration,
) ([]cancelEnd, error) {
	ctx, cancel := within(ctx, timeout)
	defer cancel()
	submitter := submit.New(o.store, nil)
	var ends []cancelEnd
	for _, r := range results {
		if r.Outcome != triage.CancelAsked {
			continue
		}
		row, err := submitter.Wait(ctx, r.Acting())
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return ends, failedErrorf("execution %d has not ended within %s: it was asked to stop, "+
				"look with `attune-executor execution show %d`", r.Acting(), timeout, r.Acting())
		case errors.Is(err, context.Canceled):
			return ends, failedErrorf("interrupted: execution %d was asked to stop, "+
				"look with `attune-executor execution show %d`", r.Acting(), r.Acting())
		case err != nil:
			return ends, err
		}
		ends = append(ends, cancelEnd{ID: r.Acting(), Status: row.Status})
	}
	return ends, nil
}

func newExecutionRetryCommand(a *app) *cobra.Command {
	var chosen selection
	reason, flags := "", planFlags{}
	cmd := &cobra.Command{
		Use:   "retry ID... | retry --param NAME=VALUE...",
		Short: "Repeat ended executions, each as a new execution",
		Long: "Repeat ended executions, whatever their status and however often they were repeated before. Each\n" +
			"retry is a new execution with the same parameters; the old one stays as it is and can be repeated\n" +
			"once: repeat the newest attempt instead. With several ids, all possible ones are repeated; the exit\n" +
			"code reports refusals.\n\n" +
			"Without ids the flags choose: all executions that match, of the statuses failed, timeout and abandoned\n" +
			"unless --status says otherwise, at most 10000 at once, of the newest 50000. The command asks first;\n" +
			"--dry-run counts them.",
		Example: "  attune-executor execution retry 42 --reason 'the disk is free again'\n" +
			"  attune-executor execution retry 42 43 44 -o json\n" +
			"  attune-executor execution retry --action shop.bill --since 1h -p tenant=t7 --dry-run",
		Args: chosen.someExecutions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := anExecution.ids(args)
			if err != nil {
				return err
			}
			if !chosen.given() && flags.dryRun {
				return usageErrorf("--dry-run goes with flags that choose executions")
			}
			filter, err := chosen.read(lifecycle.StatusFailed, lifecycle.StatusTimeout, lifecycle.StatusAbandoned)
			if err != nil {
				return err
			}
			how := acting{planFlags: flags, publishes: true, noun: "execution", done: "repeated", field: "retried"}
			return a.withOperator(cmd, how, func(o *operator) error {
				if chosen.given() {
					if ids, err = o.choose(act.RetryExecution, filter, how); err != nil || ids == nil {
						return err
					}
				}
				slices.Sort(ids) // retries join their queues in the order of the first requests
				return o.act(act.OnIDs(act.RetryExecution, ids...), reason, how)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the audit")
	flags.add(cmd.Flags(), "show which executions the flags choose and do nothing",
		"do not ask about executions that the flags choose")
	chosen.flags(cmd)
	return cmd
}

// maxChosen bounds the executions of one command.
const maxChosen = 10_000

// selection has the flags that choose executions.
type selection struct {
	filter   monitor.ExecutionFilter
	statuses []string
	params   []string
	ids      string
}

func (s *selection) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&s.statuses, "status", nil, "only these statuses, separated by commas")
	flags.StringVar(&s.filter.Action, "action", "", "only actions whose ref matches; * stands for anything")
	flags.StringVar(&s.filter.Worker, "worker", "", "only this worker, by id or name")
	flags.Var(phrase.SpanFlag{To: &s.filter.MaxAge, Age: true}, "since",
		"only executions requested within this time, such as 1h")
	s.paramFlags(cmd)
	words(cmd, "status", statusWords()...)
}

// paramFlags adds the flags that choose executions of one action.
func (s *selection) paramFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&s.params, "param", "p", nil,
		"only with this parameter, as name=value; * in the value stands for anything")
	cmd.Flags().StringVar(&s.ids, "id", "", "only these ids, such as 1468..1767")
}

// given reports whether any of the flags is set.
func (s *selection) given() bool {
	return len(s.statuses) > 0 || len(s.params) > 0 || s.ids != "" || s.filter.Action+s.filter.Worker != "" ||
		s.filter.MaxAge != 0
}

// read makes the filter of the flags, with default statuses.
func (s *selection) read(statuses ...lifecycle.Status) (monitor.ExecutionFilter, error) {
	filter := s.filter
	for _, word := range s.statuses {
		status, err := lifecycle.ParseStatus(word)
		if err != nil {
			return filter, usageErrorf("%w: use one of %s", err, strings.Join(statusWords(), ", "))
		}
		filter.Statuses = append(filter.Statuses, status)
	}
	if len(filter.Statuses) == 0 {
		filter.Statuses = statuses
	}
	for _, pair := range s.params {
		name, value, ok := strings.Cut(pair, "=")
		match := monitor.ParamMatch{Path: name, Values: []string{value}}
		switch {
		case !ok || slices.Contains(strings.Split(name, "."), ""):
			return filter, usageErrorf("parameter %q has no name: write -p name=value", pair)
		case match.NamesSecret():
			return filter, usageErrorf("parameter %s may hold a secret, which is not searched", name)
		}
		filter.Params = append(filter.Params, match)
	}
	if s.ids == "" {
		return filter, nil
	}
	var err error
	filter.MinID, filter.MaxID, err = idRange(s.ids)
	return filter, err
}

// someExecutions requires ids of executions, or flags that choose them.
func (s *selection) someExecutions(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && !s.given():
		return fmt.Errorf(
			"%s needs the id of an execution, or several, or flags that choose them, such as --param tenant=t7",
			cmd.Name())
	case len(args) > 0 && s.given():
		return fmt.Errorf("%s takes ids or flags that choose executions, not both", cmd.Name())
	}
	return nil
}

// cutText says that a choice is incomplete; empty if it is not.
func cutText(chosen *monitor.Chosen) string {
	switch {
	case chosen.More:
		return fmt.Sprintf("the newest %d were chosen, and more match: run the same command again", len(chosen.IDs))
	case chosen.Bounded:
		return fmt.Sprintf(
			"only the newest %d were searched: narrow the choice with --status, --since or --id",
			chosen.Looked)
	}
	return ""
}

// chosenGroup counts chosen executions of one action and status.
type chosenGroup struct {
	Action string `json:"action"`
	Status string `json:"status"`
	Count  int    `json:"count"`
	First  int64  `json:"first_id"`
	Last   int64  `json:"last_id"`
}

func (c *client) groups(ctx context.Context, ids []int64) ([]chosenGroup, error) {
	groups := []chosenGroup{}
	page, err := c.monitor().Executions(ctx, monitor.ExecutionFilter{IDs: ids, Limit: len(ids), Oldest: true}, 0)
	if err != nil {
		return nil, err
	}
	for _, e := range page.List {
		at := slices.IndexFunc(groups,
			func(g chosenGroup) bool { return g.Action == e.ActionRef && g.Status == e.Status })
		if at < 0 {
			at = len(groups)
			groups = append(groups, chosenGroup{Action: e.ActionRef, Status: e.Status, First: e.ID})
		}
		groups[at].Count, groups[at].Last = groups[at].Count+1, e.ID
	}
	return groups, nil
}

// choose finds the executions that flags choose, and shows them or asks. Without ids there is nothing to run.
func (o *operator) choose(kind act.Kind, filter monitor.ExecutionFilter, how acting) (ids []int64, err error) {
	chosen, err := o.monitor().Choose(o.cmd.Context(), filter, maxChosen)
	if err != nil {
		return nil, err
	}
	slices.Sort(chosen.IDs)
	groups, err := o.groups(o.cmd.Context(), chosen.IDs)
	if err != nil {
		return nil, err
	}
	what, left := count(len(chosen.IDs), "execution"), cutText(chosen)
	if how.dryRun || len(chosen.IDs) == 0 {
		return nil, o.show(with(with(chosen, "groups", groups), "dry_run", how.dryRun), func(w *page) {
			if len(chosen.IDs) > 0 {
				groupTable(w, groups)
			}
			if left != "" {
				what += "; " + left
			}
			w.row(what + " to " + kind.Verb())
		})
	}
	if left != "" {
		o.notef("%s", left)
	}
	var w page
	groupTable(&w, groups)
	return chosen.IDs, o.confirm(how.planFlags, newQuestion(fmt.Sprintf("%s to %s", what, kind.Verb()), &w,
		act.Word(kind, len(chosen.IDs))))
}

func groupTable(w *page, groups []chosenGroup) {
	table(w, "", groups, "COUNT, ACTION, STATUS, FIRST, LAST", func(g *chosenGroup) []any {
		return []any{g.Count, g.Action, g.Status, g.First, g.Last}
	})
}

func statusWords() []string {
	list := make([]string, len(lifecycle.Statuses))
	for i, status := range lifecycle.Statuses {
		list[i] = string(status)
	}
	return list
}
