package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
)

func newEnforcementCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "enforcement",
		Aliases: []string{"enforcements"},
		Short:   "Look at enforcements: the rules that events have fired",
		Example: "  attune-executor enforcement list --status disabled\n  attune-executor enforcement show 42",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	filter, cursor := monitor.EnforcementFilter{}, int64(0)
	list := &cobra.Command{
		Use:     "list",
		Short:   "List enforcements, the newest first",
		Example: "  attune-executor enforcement list --status disabled --rule shop.deliver -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Limit < 1 {
				return usageErrorf("--limit must be at least 1")
			}
			if err := filter.Check(); err != nil {
				return usageErrorf("%w", err)
			}
			return a.listEnforcements(cmd, filter, cursor)
		},
	}
	flags := list.Flags()
	flags.StringVar(&filter.Rule, "rule", "", "only those of this rule")
	flags.StringVar(&filter.Status, "status", "", "only those that are created, processed or disabled")
	flags.Int64Var(&filter.Event, "event", 0, "only those of this event")
	flags.IntVar(&filter.Limit, "limit", 20, "how many to list")
	flags.Int64Var(&cursor, "cursor", 0, "go on below this id")
	_ = list.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(monitor.EnforcementStatuses, cobra.ShellCompDirectiveNoFileComp))
	show := &cobra.Command{
		Use:     "show ID",
		Short:   "Show an enforcement, with its parameters and its execution",
		Example: "  attune-executor enforcement show 42 -o yaml",
		Args:    oneArg("the id of an enforcement"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.showEnforcement(cmd, args[0]) },
	}
	cmd.AddCommand(list, show)
	return cmd
}

func (a *app) listEnforcements(cmd *cobra.Command, filter monitor.EnforcementFilter, cursor int64) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	page, err := c.monitor().Enforcements(cmd.Context(), filter, cursor)
	if err != nil {
		return err
	}
	return a.print(cmd, page, func(w io.Writer) error {
		if len(page.List) == 0 {
			if err := row(w, "no enforcement matches"); err != nil {
				return err
			}
		} else if err := row(w, "ID", "RULE", "EVENT", "STATUS", "AGE", "EXECUTION", "NOTE"); err != nil {
			return err
		}
		for i := range page.List {
			one := &page.List[i]
			execution := "-"
			if one.Execution != 0 {
				execution = fmt.Sprintf("%d %s", one.Execution, one.ExecutionStatus)
			}
			if err := row(w, one.ID, one.RuleRef, one.Event, one.Status, short(page.At.Sub(one.Created)), execution, dash(one.Error)); err != nil {
				return err
			}
		}
		return more(w, page.Next, page.Bounded)
	})
}

func (a *app) showEnforcement(cmd *cobra.Command, arg string) error {
	id, err := numberArg(arg, "enforcement")
	if err != nil {
		return err
	}
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	one, err := c.monitor().Enforcement(cmd.Context(), id)
	if errors.Is(err, monitor.ErrNotFound) {
		return failedErrorf("there is no enforcement %d: `attune-executor enforcement list` shows the newest", id)
	}
	if err != nil {
		return err
	}
	return a.print(cmd, one, func(w io.Writer) error {
		resolved, execution := "", ""
		if one.ResolvedAt != nil {
			resolved = one.ResolvedAt.UTC().Format(time.RFC3339)
		}
		if one.Execution != 0 {
			execution = fmt.Sprintf("%d (%s), %s", one.Execution, one.ActionRef, one.ExecutionStatus)
		}
		return details(w, [][2]string{
			{"enforcement", strconv.FormatInt(one.ID, 10)},
			{"rule", one.RuleRef},
			{"trigger", one.TriggerRef},
			{"event", strconv.FormatInt(one.Event, 10)},
			{"status", one.Status},
			{"error", one.Error},
			{"note", one.Note},
			{"matched", one.Matched},
			{"now", one.Now},
			{"created", one.Created.UTC().Format(time.RFC3339)},
			{"resolved", resolved},
			{"execution", execution},
		}, "conditions", one.Conditions, "parameters", one.Config)
	})
}

// details writes lines that are not empty, and then pieces of JSON by name.
func details(w io.Writer, lines [][2]string, pieces ...any) error {
	for _, line := range lines {
		if line[1] == "" {
			continue
		}
		if err := row(w, line[0], line[1]); err != nil {
			return err
		}
	}
	for i := 0; i+1 < len(pieces); i += 2 {
		raw := fmt.Appendf(nil, "%s", pieces[i+1])
		if len(raw) == 0 || string(raw) == "{}" || string(raw) == "[]" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s\n%s\n", pieces[i], indent(pretty(raw))); err != nil {
			return err
		}
	}
	return nil
}

func newRuleCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rule",
		Aliases: []string{"rules"},
		Short:   "Look at rules, and at what their firings came to",
		Example: "  attune-executor rule list --trigger shop.order_placed\n  attune-executor rule show shop.deliver",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var trigger, cursor string
	list := &cobra.Command{
		Use:   "list",
		Short: "List rules, with how often they fired lately and how often they could not be carried out",
		Long: "List rules, with how often they fired lately and how often they could not be carried out, each among their newest\n" +
			strconv.Itoa(monitor.RecentFirings) + " firings.",
		Example: "  attune-executor rule list --trigger shop.order_placed -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listRules(cmd, trigger, cursor) },
	}
	list.Flags().StringVar(&trigger, "trigger", "", "only rules of this trigger")
	list.Flags().StringVar(&cursor, "cursor", "", "go on behind this ref")
	show := &cobra.Command{
		Use:     "show REF",
		Short:   "Show a rule, with its conditions and parameters",
		Example: "  attune-executor rule show shop.deliver",
		Args:    oneArg("the ref of a rule, such as shop.deliver"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.showRule(cmd, args[0]) },
	}
	cmd.AddCommand(list, show)
	return cmd
}

func (a *app) listRules(cmd *cobra.Command, trigger, cursor string) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	page, err := c.monitor().Rules(cmd.Context(), trigger, cursor)
	if err != nil {
		return err
	}
	return a.print(cmd, page, func(w io.Writer) error {
		if len(page.List) == 0 {
			if trigger == "" && cursor == "" {
				return row(w, "there is no rule yet: write one below rules/ of a pack, and apply the pack: `attune-executor apply FOLDER`")
			}
			return row(w, "no rule matches")
		}
		if err := row(w, "RULE", "TRIGGER", "ACTION", "ENABLED", "LAST FIRED", "FIRED", "DISABLED", "NOTE"); err != nil {
			return err
		}
		for i := range page.List {
			one := &page.List[i]
			if err := row(w, one.Ref, one.TriggerRef, one.ActionRef, yesNo(one.Enabled), lastFired(one, page.At), firings(one), one.Disabled, dash(one.Note)); err != nil {
				return err
			}
		}
		if page.Next != "" {
			return row(w, "more: --cursor "+page.Next)
		}
		return nil
	})
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func lastFired(one *monitor.Rule, at time.Time) string {
	if one.LastFired == nil {
		return "never"
	}
	return short(at.Sub(*one.LastFired)) + " ago"
}

func firings(one *monitor.Rule) string {
	if one.Fired >= monitor.RecentFirings {
		return strconv.Itoa(one.Fired) + "+"
	}
	return strconv.Itoa(one.Fired)
}

func (a *app) showRule(cmd *cobra.Command, ref string) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	one, err := c.monitor().Rule(cmd.Context(), ref)
	if errors.Is(err, monitor.ErrNotFound) {
		return failedErrorf("there is no rule %s: `attune-executor rule list` shows them", ref)
	}
	if err != nil {
		return err
	}
	return a.print(cmd, one, func(w io.Writer) error {
		return details(w, [][2]string{
			{"rule", one.Ref},
			{"label", one.Label},
			{"description", one.Description},
			{"pack", one.PackRef},
			{"trigger", one.TriggerRef},
			{"action", one.ActionRef},
			{"enabled", yesNo(one.Enabled)},
			{"note", one.Note},
			{"owner", one.Owner},
			{"last fired", lastFired(&one.Rule, one.At)},
			{"fired", fmt.Sprintf("%s, %d of them could not be carried out", firings(&one.Rule), one.Disabled)},
			{"changed", one.Updated.UTC().Format(time.RFC3339)},
		}, "conditions", one.Conditions, "parameters", one.Params)
	})
}
