package main

import (
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/config"
)

// outputPrometheus is the further output format of `alerts rules`.
const outputPrometheus = "prometheus"

func newAlertsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "alerts",
		Short:   "Look at the alerts and their rules",
		Example: "  attune-executor alerts list\n  attune-executor alerts rules -o prometheus > attune.rules.yml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{
		Use:   "list",
		Short: "List the open alerts, the worst first",
		Long: "List the open alerts, the worst first: those that fire, and those whose condition holds but not for as long as\n" +
			"their rule asks. While no replica of the engine evaluates the rules they are judged by this command. What needs\n" +
			"attention without a rule follows, as on the overview of the dashboard: unwell workers, failed workflows, open questions.",
		Example: "  attune-executor alerts list\n  attune-executor alerts list --history -o json",
		Args:    cobra.NoArgs,
	}
	history := list.Flags().Bool("history", false, "list those that were cleared too, the newest first")
	list.RunE = func(cmd *cobra.Command, _ []string) error { return a.listAlerts(cmd, *history) }
	rules := &cobra.Command{
		Use:   "rules",
		Short: "List the alert rules of the configuration, or write them for Prometheus",
		Long: "List the alert rules of the configuration, or write them as a rules file of Prometheus (-o prometheus). That needs\n" +
			"no server.",
		Example:     "  attune-executor alerts rules\n  attune-executor alerts rules -o prometheus --config attune.yaml > attune.rules.yml",
		Args:        cobra.NoArgs,
		Annotations: map[string]string{furtherOutputs: outputPrometheus},
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.alertRules(cmd) },
	}
	cmd.AddCommand(list, rules)
	return cmd
}

func (a *app) listAlerts(cmd *cobra.Command, history bool) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	all, err := c.monitor().Alerts(cmd.Context())
	if err != nil {
		return err
	}
	if !history {
		all.Recent = []alerting.Alert{}
	}
	if a.output == "table" && all.Note != "" {
		a.notef("%s", all.Note)
	}
	return a.print(cmd, all, func(w io.Writer) error {
		list := slices.Concat(all.Open, all.Recent)
		if len(list)+len(all.Others) == 0 {
			return row(w, "nothing needs attention")
		}
		if err := row(w, "SEVERITY", "STATE", "SINCE", "RULE", "SUMMARY", "HINT"); err != nil {
			return err
		}
		for i := range list {
			one := &list[i]
			if one.Behind {
				continue
			}
			if err := row(w, one.Severity, stateText(one), short(all.At.Sub(one.Since)), one.Rule, one.Summary, dash(one.Hint)); err != nil {
				return err
			}
		}
		for i := range all.Others {
			one := &all.Others[i]
			begun := "-"
			if one.Since != nil {
				begun = short(all.At.Sub(*one.Since))
			}
			if err := row(w, one.Level, "holds", begun, "-", one.Text, dash(one.Hint)); err != nil {
				return err
			}
		}
		return nil
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
	return a.print(cmd, rules, func(w io.Writer) error {
		if err := row(w, "RULE", "SEVERITY", "MEASURE", "CONDITION", "FOR", "TARGET", "ENABLED"); err != nil {
			return err
		}
		for _, one := range rules {
			enabled := "yes"
			if one.State == alerting.RuleDisabled {
				enabled = "no"
			}
			if err := row(w, one.Name, one.Severity, one.Measure, one.Limit, short(one.For), dash(one.Target), enabled); err != nil {
				return err
			}
		}
		return nil
	})
}
