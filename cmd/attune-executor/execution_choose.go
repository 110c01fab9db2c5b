package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
)

// maxChosen is how many executions one command acts upon.
const maxChosen = 10_000

// selection are the flags that choose executions.
type selection struct {
	filter   monitor.ExecutionFilter
	statuses []string
	params   []string
	ids      string
}

// flags adds the flags that choose executions.
func (s *selection) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&s.statuses, "status", nil, "only these statuses, separated by commas")
	flags.StringVar(&s.filter.Action, "action", "", "only actions whose ref matches; * stands for anything")
	flags.StringVar(&s.filter.Worker, "worker", "", "only this worker, by id or name")
	flags.DurationVar(&s.filter.MaxAge, "since", 0, "only those requested within this long, such as 1h")
	s.paramFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(strings.Split(statusWords(), ", "), cobra.ShellCompDirectiveNoFileComp))
}

// paramFlags adds the flags that choose executions of one action.
func (s *selection) paramFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&s.params, "param", "p", nil, "only with this parameter, as name=value; * in the value stands for anything")
	cmd.Flags().StringVar(&s.ids, "id", "", "only these ids, such as 1468..1767")
}

// given reports whether any of the flags was used.
func (s *selection) given() bool {
	return len(s.statuses) > 0 || len(s.params) > 0 || s.ids != "" || s.filter.Action+s.filter.Worker != "" || s.filter.MaxAge != 0
}

// read makes the filter of the flags.
func (s *selection) read() (monitor.ExecutionFilter, error) {
	filter := s.filter
	for _, word := range s.statuses {
		status, err := attune.ParseStatus(word)
		if err != nil {
			return filter, usageErrorf("%w: use one of %s", err, statusWords())
		}
		filter.Statuses = append(filter.Statuses, status)
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
	first, last, isRange := strings.Cut(s.ids, "..")
	if !isRange {
		last = first
	}
	from, err := strconv.ParseInt(first, 10, 64)
	to, lastErr := strconv.ParseInt(last, 10, 64)
	if err != nil || lastErr != nil || from < 1 || to < from {
		return filter, usageErrorf("%q is no range of ids: write it as 1468..1767", s.ids)
	}
	filter.MinID, filter.MaxID = from, to
	return filter, nil
}

// someExecutions asks for ids of executions, or for flags that choose them.
func (s *selection) someExecutions(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && !s.given():
		return fmt.Errorf("%s needs the id of an execution, or several, or what chooses them, such as --param tenant=t7", cmd.Name())
	case len(args) > 0 && s.given():
		return fmt.Errorf("%s takes ids or flags that choose executions, not both", cmd.Name())
	}
	return nil
}

// statusOr is the filter, of these statuses unless some were named.
func statusOr(filter monitor.ExecutionFilter, statuses ...attune.Status) monitor.ExecutionFilter {
	if len(filter.Statuses) == 0 {
		filter.Statuses = statuses
	}
	return filter
}

// choose finds the executions of a filter, the oldest first.
func (c *client) choose(ctx context.Context, filter monitor.ExecutionFilter) (*monitor.Chosen, error) {
	chosen, err := c.monitor().Choose(ctx, filter, maxChosen)
	if err != nil {
		return nil, err
	}
	slices.Sort(chosen.IDs)
	return chosen, nil
}

// cutText says what a choice has left out; empty when nothing.
func cutText(chosen *monitor.Chosen) string {
	switch {
	case chosen.More:
		return fmt.Sprintf("the newest %d were taken, and more match: the same again goes on", len(chosen.IDs))
	case chosen.Bounded:
		return fmt.Sprintf("the newest %d were looked at; older ones are not among them: narrow it with --status, --since or --id", chosen.Looked)
	}
	return ""
}

// chosenGroup are chosen executions of one action and status.
type chosenGroup struct {
	Action string `json:"action"`
	Status string `json:"status"`
	Count  int    `json:"count"`
	First  int64  `json:"first_id"`
	Last   int64  `json:"last_id"`
}

// chosenView is what --dry-run prints of executions that were chosen.
type chosenView struct {
	*monitor.Chosen

	Groups []chosenGroup `json:"groups"`
	DryRun bool          `json:"dry_run"`
}

// groups counts the chosen executions by action and status.
func (c *client) groups(ctx context.Context, ids []int64) ([]chosenGroup, error) {
	groups := []chosenGroup{}
	page, err := c.monitor().Executions(ctx, monitor.ExecutionFilter{IDs: ids, Limit: len(ids), Oldest: true}, 0)
	if err != nil {
		return nil, err
	}
	for _, e := range page.List {
		at := slices.IndexFunc(groups, func(g chosenGroup) bool { return g.Action == e.ActionRef && g.Status == e.Status })
		if at < 0 {
			at = len(groups)
			groups = append(groups, chosenGroup{Action: e.ActionRef, Status: e.Status, First: e.ID})
		}
		groups[at].Count, groups[at].Last = groups[at].Count+1, e.ID
	}
	return groups, nil
}

func groupTable(w io.Writer, groups []chosenGroup) error {
	if err := row(w, "COUNT", "ACTION", "STATUS", "FIRST", "LAST"); err != nil {
		return err
	}
	for _, g := range groups {
		if err := row(w, g.Count, g.Action, g.Status, g.First, g.Last); err != nil {
			return err
		}
	}
	return nil
}

// confirmChosen shows what was chosen, and asks unless it is only to be shown. It reports
// whether the act goes on.
func (a *app) confirmChosen(cmd *cobra.Command, c *client, chosen *monitor.Chosen, verb string, dryRun, yes bool) (bool, error) {
	groups, err := c.groups(cmd.Context(), chosen.IDs)
	if err != nil {
		return false, err
	}
	what := count(len(chosen.IDs), "execution")
	if dryRun || len(chosen.IDs) == 0 {
		return false, a.print(cmd, chosenView{chosen, groups, dryRun}, func(w io.Writer) error {
			if len(chosen.IDs) > 0 {
				if err := groupTable(w, groups); err != nil {
					return err
				}
			}
			if text := cutText(chosen); text != "" {
				what += "; " + text
			}
			return row(w, what+" to "+verb)
		})
	}
	if text := cutText(chosen); text != "" {
		a.notef("%s", text)
	}
	if yes {
		return true, nil
	}
	in := cmd.InOrStdin()
	if !interactive(in) {
		return false, refusedErrorf("%s to %s: --yes does it, --dry-run shows which", what, verb)
	}
	if err := groupTable(a.stderr, groups); err != nil {
		return false, err
	}
	want, ask := "y", "y or n"
	if len(chosen.IDs) > fewLetters {
		want, ask = strconv.Itoa(len(chosen.IDs)), "type the number"
	}
	_, _ = fmt.Fprintf(a.stderr, "%s %s? %s: ", verb, what, ask)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	if !strings.EqualFold(strings.TrimSpace(answer), want) {
		return false, refusedErrorf("nothing was done: the answer is not %s", want)
	}
	return true, nil
}
