package main

import (
	"context"
	"fmt"
	"slices"
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
	words(cmd, "status", statusWords()...)
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

// read makes the filter of the flags, of these statuses unless --status names some.
func (s *selection) read(statuses ...attune.Status) (monitor.ExecutionFilter, error) {
	filter := s.filter
	for _, word := range s.statuses {
		status, err := attune.ParseStatus(word)
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

// settleChosen shows what was chosen, and asks unless it is only to be shown. It reports whether the action on them
// goes on.
func (c *client) settleChosen(chosen *monitor.Chosen, verb string, flags planFlags) (run bool, err error) {
	slices.Sort(chosen.IDs)
	groups, err := c.groups(c.cmd.Context(), chosen.IDs)
	if err != nil {
		return false, err
	}
	what, left := count(len(chosen.IDs), "execution"), cutText(chosen)
	if flags.dryRun || len(chosen.IDs) == 0 {
		return false, c.show(extended{extended{chosen, "groups", groups}, "dry_run", flags.dryRun}, func(w *page) {
			if len(chosen.IDs) > 0 {
				groupTable(w, groups)
			}
			if left != "" {
				what += "; " + left
			}
			w.row(what + " to " + verb)
		})
	}
	if left != "" {
		c.notef("%s", left)
	}
	var w page
	groupTable(&w, groups)
	want, ask := howMany(len(chosen.IDs))
	return c.settle(flags, nil, nil, &question{
		unasked: fmt.Sprintf("%s to %s: --yes does it, --dry-run shows which", what, verb),
		text:    fmt.Sprintf("%s%s %s? %s: ", &w, verb, what, ask), want: want, nothing: "nothing was done",
	})
}

func groupTable(w *page, groups []chosenGroup) {
	table(w, "", groups,
		col("COUNT", func(g *chosenGroup) any { return g.Count }),
		col("ACTION", func(g *chosenGroup) any { return g.Action }),
		col("STATUS", func(g *chosenGroup) any { return g.Status }),
		col("FIRST", func(g *chosenGroup) any { return g.First }),
		col("LAST", func(g *chosenGroup) any { return g.Last }))
}

// statusWords are the statuses of executions.
func statusWords() []string {
	list := make([]string, len(attune.Statuses))
	for i, status := range attune.Statuses {
		list[i] = string(status)
	}
	return list
}
