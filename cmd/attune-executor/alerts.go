package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/config"
)

// outputPrometheus is the additional output format of `alerts rules`.
const outputPrometheus = "prometheus"

func newAlertsCommand(a *app) *cobra.Command {
	list := &cobra.Command{
		Use:   "list",
		Short: "List the open alerts, the worst first",
		Long: "List the open alerts, the worst first: the firing ones, and the ones whose condition has not held\n" +
			"long enough yet. While no replica evaluates the rules, these are the stored ones. Problems without a rule\n" +
			"follow, as on the overview of the dashboard: unhealthy workers, failed workflows, open inquiries.",
		Example: "  attune-executor alerts list\n  attune-executor alerts list --history -o json",
		Args:    cobra.NoArgs,
	}
	history := list.Flags().Bool("history", false, "list cleared alerts too, the newest first")
	list.RunE = a.connected(func(c *client, _ []string) error { return c.listAlerts(*history) })
	rules := &cobra.Command{
		Use:   "rules",
		Short: "List the alert rules of the configuration, or write them for Prometheus",
		Long: "List the alert rules of the configuration, or write them as a rules file of Prometheus (-o\n" +
			"prometheus). It needs no server.",
		Example: "  attune-executor alerts rules\n" +
			"  attune-executor alerts rules -o prometheus --config attune.yaml > attune.rules.yml",
		Args:        cobra.NoArgs,
		Annotations: map[string]string{furtherOutputs: outputPrometheus},
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.alertRules(cmd) },
	}
	return group(&cobra.Command{
		Use:     "alerts",
		Short:   "Show the alerts and their rules",
		Example: "  attune-executor alerts list\n  attune-executor alerts rules -o prometheus > attune.rules.yml",
	}, list, rules)
}

func (c *client) listAlerts(history bool) error {
	all, err := c.monitor().Alerts(c.cmd.Context())
	if err != nil {
		return err
	}
	if !history {
		all.Recent = []alerting.Alert{}
	}
	if c.output == "table" && all.Note != "" {
		c.notef("%s", all.Note)
	}
	return c.show(all, func(w *page) {
		list := slices.Concat(all.Open, all.Recent)
		if len(list)+len(all.Others) == 0 {
			w.row("nothing needs attention")
			return
		}
		var rows [][]any
		for i := range list {
			if one := &list[i]; !one.Behind {
				since := short(all.At.Sub(one.Since))
				rows = append(rows, []any{one.Severity, stateText(one), since, one.Rule, one.Summary, dash(one.Hint)})
			}
		}
		for _, one := range all.Others {
			rows = append(rows, []any{one.Level, "holds", ageText(one.Since, all.At), "-", one.Text, dash(one.Hint)})
		}
		table(w, "", rows, "!SEVERITY, !STATE, !SINCE, !RULE, !SUMMARY, !HINT", func(row *[]any) []any { return *row })
	})
}

func stateText(one *alerting.Alert) string {
	switch {
	case one.Cleared != nil && one.Fired != nil:
		return "cleared after " + short(one.Cleared.Sub(*one.Fired))
	case one.NotEvaluated:
		return one.State + ", not evaluated since " + one.Seen.UTC().Format(time.RFC3339)
	default:
		return one.State
	}
}

func (a *app) alertRules(cmd *cobra.Command) error {
	cfg, err := config.Load(a.configPath, a.environ)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if a.output == outputPrometheus {
		file, err := alerting.RulesFile(cfg.Alerts)
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(file)
		return err
	}
	rules := alerting.DescribeRules(cfg.Alerts)
	type rule = alerting.AlertRule
	return a.write(cmd, rules, func(w *page) {
		table(w, "", rules, "RULE, SEVERITY, MEASURE, CONDITION, FOR, TARGET, ENABLED", func(one *rule) []any {
			return []any{
				one.Name, one.Severity, one.Measure, one.Limit, short(one.For), dash(one.Target),
				yesNo(one.State != alerting.RuleDisabled),
			}
		})
	})
}
