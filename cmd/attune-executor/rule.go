package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
)

func newEnforcementCommand(a *app) *cobra.Command {
	filter, cursor := monitor.EnforcementFilter{}, int64(0)
	list := reading(a, &cobra.Command{
		Use:     "list",
		Short:   "List enforcements, the newest first",
		Example: "  attune-executor enforcement list --status disabled --rule shop.deliver -o json",
	}, func() error { return checkPage(filter.Limit, &filter) }, func(c *client, _ []string) (*monitor.EnforcementPage, error) {
		return c.monitor().Enforcements(c.cmd.Context(), filter, cursor)
	}, enforcementsPage)
	flags := list.Flags()
	flags.StringVar(&filter.Rule, "rule", "", "only those of this rule")
	flags.StringVar(&filter.Status, "status", "", "only those that are created, processed or disabled")
	flags.Int64Var(&filter.Event, "event", 0, "only those of this event")
	pageFlags(flags, &filter.Limit, &cursor)
	words(list, "status", monitor.EnforcementStatuses...)
	return group(&cobra.Command{
		Use:     "enforcement",
		Aliases: []string{"enforcements"},
		Short:   "Look at enforcements: the rules that events have fired",
		Example: "  attune-executor enforcement list --status disabled\n  attune-executor enforcement show 42",
	}, list, showing(a, &cobra.Command{
		Use:     "show ID",
		Short:   "Show an enforcement, with its parameters and its execution",
		Example: "  attune-executor enforcement show 42 -o yaml",
	}, anEnforcement, reader((*monitor.Monitor).Enforcement), enforcementPage))
}

func enforcementsPage(w *page, list *monitor.EnforcementPage) {
	table(w, "no enforcement matches", list.List,
		col("ID", func(one *monitor.Enforcement) any { return one.ID }),
		col("RULE", func(one *monitor.Enforcement) any { return one.RuleRef }),
		col("EVENT", func(one *monitor.Enforcement) any { return one.Event }),
		col("STATUS", func(one *monitor.Enforcement) any { return one.Status }),
		col("AGE", func(one *monitor.Enforcement) any { return short(list.At.Sub(one.Created)) }),
		col("EXECUTION", func(one *monitor.Enforcement) any {
			if one.Execution == 0 {
				return "-"
			}
			return fmt.Sprintf("%d %s", one.Execution, one.ExecutionStatus)
		}),
		col("NOTE", func(one *monitor.Enforcement) any { return dash(one.Error) }))
	w.more(list.Next, list.Bounded)
}

func enforcementPage(w *page, one *monitor.EnforcementDetail) {
	resolved, execution := "", ""
	if one.ResolvedAt != nil {
		resolved = one.ResolvedAt.UTC().Format(time.RFC3339)
	}
	if one.Execution != 0 {
		execution = fmt.Sprintf("%d (%s), %s", one.Execution, one.ActionRef, one.ExecutionStatus)
	}
	w.details([][2]string{
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
}

func newRuleCommand(a *app) *cobra.Command {
	var trigger, cursor string
	list := reading(a, &cobra.Command{
		Use:   "list",
		Short: "List rules, with how often they fired lately and how often they could not be carried out",
		Long: "List rules, with how often they fired lately and how often they could not be carried out, each among their newest\n" +
			strconv.Itoa(monitor.RecentFirings) + " firings.",
		Example: "  attune-executor rule list --trigger shop.order_placed -o json",
	}, unchecked, func(c *client, _ []string) (*monitor.RulePage, error) {
		return c.monitor().Rules(c.cmd.Context(), trigger, cursor)
	}, func(w *page, list *monitor.RulePage) {
		none := "no rule matches"
		if trigger == "" && cursor == "" {
			none = "there is no rule yet: write one below rules/ of a pack, and apply the pack: `attune-executor apply FOLDER`"
		}
		rulesPage(w, list, none)
	})
	list.Flags().StringVar(&trigger, "trigger", "", "only rules of this trigger")
	list.Flags().StringVar(&cursor, "cursor", "", "go on behind this ref")
	return group(&cobra.Command{
		Use:     "rule",
		Aliases: []string{"rules"},
		Short:   "Look at rules, and at what their firings came to",
		Example: "  attune-executor rule list --trigger shop.order_placed\n  attune-executor rule show shop.deliver",
	}, list, showingRef(a, &cobra.Command{
		Use:     "show REF",
		Short:   "Show a rule, with its conditions and parameters",
		Example: "  attune-executor rule show shop.deliver",
		Args:    oneArg("the ref of a rule, such as shop.deliver"),
	}, "rule", (*monitor.Monitor).Rule, rulePage))
}

func rulesPage(w *page, list *monitor.RulePage, none string) {
	table(w, none, list.List,
		col("RULE", func(one *monitor.Rule) any { return one.Ref }),
		col("TRIGGER", func(one *monitor.Rule) any { return one.TriggerRef }),
		col("ACTION", func(one *monitor.Rule) any { return one.ActionRef }),
		col("ENABLED", func(one *monitor.Rule) any { return yesNo(one.Enabled) }),
		col("LAST FIRED", func(one *monitor.Rule) any { return lastFired(one, list.At) }),
		col("FIRED", func(one *monitor.Rule) any { return firings(one) }),
		col("DISABLED", func(one *monitor.Rule) any { return one.Disabled }),
		col("NOTE", func(one *monitor.Rule) any { return dash(one.Note) }))
	if list.Next != "" {
		w.row("more: --cursor " + list.Next)
	}
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

func rulePage(w *page, one *monitor.RuleDetail) {
	w.details([][2]string{
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
}
