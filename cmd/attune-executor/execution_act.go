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

// awaitStops waits for the ends of the executions that a cancellation has asked to stop, and shows them.
func (o *operator) awaitStops(ctx context.Context, receipt *act.Receipt, timeout time.Duration) error {
	stopped, _ := receipt.Data.(*triage.CancelReceipt)
	if o.output != "json" && o.output != "yaml" {
		if err := o.show(nil, func(w *page) { receiptPage(w, receipt) }); err != nil {
			return err
		}
	}
	ends, waited := o.ends(ctx, stopped.Executions, timeout)
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

// ends waits for the ends of the executions that were asked to stop.
func (o *operator) ends(
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

// chooseWithin restricts an act on a queue to the executions that flags choose.
func (o *operator) chooseWithin(request *act.Request, filter monitor.ExecutionFilter) error {
	filter.Action, filter.Statuses = request.Target.Action, []lifecycle.Status{lifecycle.StatusRequested}
	chosen, err := o.monitor().Choose(o.cmd.Context(), filter, monitor.ChoiceBound)
	if err != nil {
		return err
	}
	if text := cutText(chosen); text != "" {
		o.notef("%s", text)
	}
	request.Only = chosen.IDs
	return nil
}
