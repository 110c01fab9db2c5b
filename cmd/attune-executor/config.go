package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/config"
)

func newConfigCommand(a *app) *cobra.Command {
	changed := false
	explain := &cobra.Command{
		Use:   "explain",
		Short: "Print every key with its value and where it came from",
		Long:  "Print every key with its value and where it came from: default, FILE:LINE, or an environment variable. Secrets are masked.",
		Example: "  attune-executor config explain --config attune.yaml\n" +
			"  ATTUNE__EXECUTOR__NO_WORKERS=wait attune-executor config explain --changed",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.explain(cmd, changed) },
	}
	explain.Flags().BoolVar(&changed, "changed", false, "only the keys that are set")
	return group(&cobra.Command{
		Use:     "config",
		Short:   "Look at the configuration",
		Example: "  attune-executor config explain --config attune.yaml",
	}, explain)
}

func (a *app) explain(cmd *cobra.Command, changed bool) error {
	cfg, err := config.Load(a.configPath, a.environ)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	for _, warning := range cfg.Warnings {
		a.notef("%s", warning)
	}
	if a.privateStack(cmd.Context(), cfg) != nil {
		a.notef("the other commands use the private stack in %s, as nothing names a database", stackDirDefault)
	}
	entries := cfg.Explain()
	if changed {
		entries = slices.DeleteFunc(entries, func(e config.Entry) bool { return !e.Set() })
	}
	if len(entries) == 0 {
		a.notef("nothing is set: every key has its default, which `attune-executor config explain` shows")
		entries = []config.Entry{}
	}
	return a.write(cmd, entries, func(w *page) {
		if len(entries) == 0 {
			return
		}
		table(w, "", entries,
			col("KEY", func(e *config.Entry) any { return e.Key }),
			col("VALUE", func(e *config.Entry) any { return dash(e.Value) }),
			col("SOURCE", func(e *config.Entry) any { return e.Source }),
			col("NOTE", func(e *config.Entry) any { return e.Note }))
	})
}
