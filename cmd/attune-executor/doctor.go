package main

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/doctor/checkup"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/roles"
	"github.com/attune-go/attune/core/store"
)

func newDoctorCommand(a *app) *cobra.Command {
	options, as := checkup.Options{}, ""
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation: what is wrong, and what to do",
		Long: "Check the whole installation: servers and their versions, schema, topology, routes of dead letters,\n" +
			"workers, replicas, clocks, and the consistency of the tables. ✓ passed, ✗ failed, ? not checked,\n" +
			"- optional and absent. Nothing is changed. Probes that vanish by themselves test the routes of dead\n" +
			"letters; --no-probe reads the bindings instead. --as ROLE only compares the logins in use with a\n" +
			"role of `attune-executor roles`.\n" +
			"Exit codes: 0 all is well, 1 a check failed or could not be made, 4 the database or the broker does\n" +
			"not answer.",
		Example: "  attune-executor doctor\n  attune-executor doctor --as worker\n" +
			"  attune-executor doctor -o json | jq '.checks[] | select(.status == \"failed\")'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if as != "" {
				if options.As, err = roles.Parse(as); err != nil {
					return usageErrorf("--as: %w", err)
				}
			}
			return a.doctor(cmd, options)
		},
	}
	cmd.Flags().StringVar(&as, "as", "",
		"only compare the logins in use with this role: engine, worker, operator or viewer")
	words(cmd, "as", "engine", "worker", "operator", "viewer")
	cmd.Flags().BoolVar(&options.NoProbe, "no-probe", false,
		"publish nothing: read the routes of dead letters from the management API")
	cmd.Flags().Var(phrase.SpanFlag{To: &options.Timeout}, "timeout",
		"how long one check may take at most (default 10s, some longer)")
	return cmd
}

// doctorTimeout bounds the connection to each server.
const doctorTimeout = 5 * time.Second

func (a *app) doctor(cmd *cobra.Command, options checkup.Options) error {
	ctx := cmd.Context()
	_, cfg, err := a.configure(ctx, "warn")
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler) // a server that is away is a line of the report
	want := store.Configured(cfg, cmd.CommandPath())
	want.ConnectTimeout = min(want.ConnectTimeout, doctorTimeout)
	want.MaxConnections, want.ReadOnly = 6, true
	st, err := prepareStore(ctx, cfg, want, quiet)
	if err != nil {
		return err
	}
	defer st.Close()
	wire := brokerConfig(cfg, cmd.CommandPath())
	wire.DialTimeout, wire.ConnectTimeout, wire.ConfirmTimeout = doctorTimeout, doctorTimeout, doctorTimeout
	link := broker.New(wire, quiet, nil)
	if err := link.Start(ctx); err != nil {
		return fmt.Errorf("connect to the broker: %w", err)
	}
	defer link.Stop()
	deps := checkup.Deps{Config: cfg, Store: st, Broker: link, Version: readBuildInfo().Version}
	management, _, err := openManagement(cfg, doctorTimeout)
	if err != nil {
		return err
	}
	if management != nil {
		defer management.Close()
		deps.Management = management
	}
	return a.printReport(cmd, checkup.Run(ctx, deps, options))
}

// doctorReport is the output of -o json.
type doctorReport struct {
	Well bool `json:"well"`
	*checkup.Report
}

func (a *app) printReport(cmd *cobra.Command, report *checkup.Report) error {
	err := a.write(cmd, doctorReport{report.Well(), report}, func(w *page) {
		for _, f := range report.Checks {
			text := f.Found
			if f.Status == checkup.Unchecked || f.Status == checkup.Skipped {
				text = string(f.Status) + ": " + text
			}
			w.row(marks[f.Status]+" "+f.Name, text)
			for _, detail := range f.Details {
				w.row("", "  "+detail)
			}
			if f.Fix != "" {
				w.row("", "→ "+f.Fix)
			}
		}
	})
	if err != nil || report.Well() {
		return err
	}
	var parts []string
	for _, status := range []checkup.Status{checkup.Failed, checkup.Unchecked} {
		if names := report.Names(status); len(names) > 0 {
			parts = append(parts, string(status)+": "+strings.Join(names, ", "))
		}
	}
	code := exitFailed
	if report.Unreachable() {
		code = exitUnreachable
	}
	return &exitError{code, fmt.Errorf("not all is well: %s", strings.Join(parts, "; "))}
}

var marks = map[checkup.Status]string{
	checkup.Passed: "✓", checkup.Failed: "✗", checkup.Unchecked: "?",
	checkup.Skipped: "-",
}
