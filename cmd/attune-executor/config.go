package main

import (
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/config"
)

func newConfigCommand(a *app) *cobra.Command {
	changed := false
	explain := &cobra.Command{
		Use:   "explain",
		Short: "Print every key with its value and its source",
		Long: "Print every key with its value and its source: default, FILE:LINE, or an environment variable.\n" +
			"Secrets are masked.",
		Example: "  attune-executor config explain --config attune.yaml\n" +
			"  ATTUNE__EXECUTOR__NO_WORKERS=wait attune-executor config explain --changed",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.explain(cmd, changed) },
	}
	explain.Flags().BoolVar(&changed, "changed", false, "only the keys that are set")
	return group(&cobra.Command{
		Use:     "config",
		Short:   "Show the configuration",
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
	if privateStack(cfg) != nil {
		a.notef("the other commands use the private stack in %s, as nothing names a database", config.PrivateStackDir)
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
		table(w, "", entries, "KEY, !VALUE, !SOURCE, NOTE", func(e *config.Entry) []any {
			return []any{e.Key, dash(e.Value), e.Source, e.Note}
		})
	})
}

// version and commit may be set by the linker (-X main.version=…).
var version, commit string

// buildInfo describes the build of this binary.
type buildInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func readBuildInfo() buildInfo {
	info := buildInfo{Version: version, Commit: commit, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if build, ok := debug.ReadBuildInfo(); ok {
		if info.Version == "" {
			info.Version = build.Main.Version
		}
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" && info.Commit == "" {
				info.Commit = setting.Value
			}
		}
	}
	if info.Version == "" {
		info.Version = "(devel)"
	}
	if info.Commit == "" {
		info.Commit = "unknown"
	}
	return info
}

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Example: "  attune-executor version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := readBuildInfo()
			return a.write(cmd, info, func(w *page) {
				w.row("attune-executor "+info.Version, "commit "+info.Commit, info.Go, info.OS+"/"+info.Arch)
			})
		},
	}
}
