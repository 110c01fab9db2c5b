package main

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/config"
)

func newConfigCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Look at the configuration",
		Example: "  attune-executor config explain --config attune.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
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
	cmd.AddCommand(explain)
	return cmd
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
	return a.print(cmd, entries, func(w io.Writer) error {
		if len(entries) == 0 {
			return nil
		}
		if err := row(w, "KEY", "VALUE", "SOURCE", "NOTE"); err != nil {
			return err
		}
		for _, entry := range entries {
			if err := row(w, entry.Key, dash(entry.Value), entry.Source, entry.Note); err != nil {
				return err
			}
		}
		return nil
	})
}
