package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/lab/installation/rehearsal"
	"github.com/attune-go/attune/lab/installation/sample"
	"github.com/attune-go/attune/migrations"
)

func newRehearseCommand(a *app) *cobra.Command {
	var dir, from, path string
	var newest int
	cmd := &cobra.Command{
		Use:   "rehearse",
		Short: "Rehearse the adoption on private servers, with an example or a copy of your installation",
		Long: "Start a private PostgreSQL and RabbitMQ, build an example installation in a realistic state, adopt\n" +
			"it, serve, hand it back, and report the end of each execution, workflow, inquiry, event and message.\n" +
			"Nothing outside --dir is touched. It succeeds only if everything ended as expected, and takes about\n" +
			"two minutes.\n\n" +
			"With --from, the installation is a copy of yours: its schema and a sample of its rows. Your database is\n" +
			"only read, in one read-only transaction; a login that may only SELECT is enough. PGPASSWORD and\n" +
			"~/.pgpass keep its password out of the command line. No keys, tokens, password hashes or contents of\n" +
			"artifacts are copied. Stand-ins run the executions instead of your workers.",
		Example: "  attune-lab rehearse\n" +
			"  attune-lab rehearse --from postgres://reader@db/attune",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case newest < 1:
				return usageErrorf("--sample must be at least 1")
			case from == "" && cmd.Flags().Changed("sample"):
				return usageErrorf("--sample needs --from")
			case from != "":
				cfg, err := config.Load(path, a.environ)
				if err != nil {
					return &exitError{exitUsage, err}
				}
				return a.rehearseCopy(cmd, dir, from, cfg.Database.Schema, newest)
			}
			return a.rehearse(cmd, dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", filepath.Join(".attune", "rehearsal"), "folder of the private servers")
	cmd.Flags().StringVar(&from, "from", "", "the URL of the database of your installation, which is only read")
	cmd.Flags().StringVarP(&path, "config", "c", "", "configuration file with the schema (default $ATTUNE_CONFIG)")
	cmd.Flags().IntVar(&newest, "sample", sample.NewestDefault,
		"how many of the newest executions, events, enforcements and history rows to copy")
	return cmd
}

type rehearsed struct {
	AdoptedSeconds    float64             `json:"adopted_seconds"`
	HandedBackSeconds float64             `json:"handed_back_seconds"`
	Outcomes          []rehearsal.Outcome `json:"outcomes"`
}

// rehearseOn runs a rehearsal on private servers.
func (a *app) rehearseOn(
	cmd *cobra.Command, dir string, run func(ctx context.Context, cfg rehearsal.Config) error,
) error {
	return a.onServers(cmd, devstack.Config{Dir: dir}, "error", func(ctx context.Context, stack *devstack.Stack) error {
		return run(ctx, rehearsal.Config{
			DatabaseURL: stack.DatabaseURL(), AMQPURL: stack.AMQPURL(), ManagementURL: stack.ManagementURL(),
			Out: cmd.ErrOrStderr(), Logger: stack.Logger(),
		})
	})
}

func (a *app) rehearse(cmd *cobra.Command, dir string) error {
	cmd.PrintErrf("starting a private PostgreSQL and RabbitMQ in %s\n", dir)
	var report rehearsal.Report
	err := a.rehearseOn(cmd, dir, func(ctx context.Context, cfg rehearsal.Config) (err error) {
		report, err = rehearsal.Run(ctx, cfg)
		return err
	})
	out := rehearsed{
		AdoptedSeconds: report.Adopted.Seconds(), HandedBackSeconds: report.HandedBack.Seconds(),
		Outcomes: report.Outcomes,
	}
	failed := len(report.Failed())
	printed := a.print(cmd, out, func(w io.Writer) {
		for _, o := range out.Outcomes {
			mark, name := "ok", ""
			if !o.OK {
				mark = "NOT OK, wanted " + o.Want
			}
			if o.ID != 0 {
				name = fmt.Sprintf("execution %d", o.ID)
			}
			row(w, name, o.What, o.Got, mark)
		}
		rowf(w, "adopted in %.1f s, handed back in %.1f s; %d of %d as expected",
			out.AdoptedSeconds, out.HandedBackSeconds, len(out.Outcomes)-failed, len(out.Outcomes))
	})
	if err := errors.Join(err, printed); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d did not end as expected", failed, len(out.Outcomes))
	}
	return nil
}

// rehearseCopy rehearses the adoption with a copy of the installation at from.
func (a *app) rehearseCopy(cmd *cobra.Command, dir, from, schema string, newest int) error {
	if problem := config.AddressProblem(from, "postgresql", "postgres"); problem != "" {
		return usageErrorf("--from %s", problem)
	}
	if err := sample.Check(cmd.Context(), sample.Config{From: from, Schema: schema}); err != nil {
		return copyError(from, err)
	}
	address := config.MaskURL(from)
	cmd.PrintErrf("starting a private PostgreSQL and RabbitMQ in %s; %s is only read\n", dir, address)
	var report rehearsal.CopyReport
	err := a.rehearseOn(cmd, dir, func(ctx context.Context, cfg rehearsal.Config) (err error) {
		cfg.Schema = schema
		report, err = rehearsal.RunCopy(ctx, rehearsal.CopyConfig{Config: cfg, From: from, Newest: newest})
		return err
	})
	var different *rehearsal.DifferentError
	if err != nil && !errors.As(err, &different) {
		return copyError(from, err)
	}
	if err := a.print(cmd, report, func(w io.Writer) { copyPage(w, report, schema) }); err != nil {
		return err
	}
	switch {
	case different != nil:
		return &exitError{exitRefused, different}
	case !report.OK:
		return fmt.Errorf("the rehearsal found faults: see the lines with NOT OK")
	}
	return nil
}

// copyError adds the address of the original, and the exit code.
func copyError(from string, err error) error {
	var refused *sample.RefusedError
	var away *sample.UnreachableError
	switch {
	case errors.As(err, &refused):
		return &exitError{exitRefused, fmt.Errorf("the database %s: %w", config.MaskURL(from), refused)}
	case errors.As(err, &away):
		return &exitError{exitUnreachable, fmt.Errorf("%s (%s): correct --from", store.Trouble(away.Err).Fact,
			config.MaskURL(from))}
	}
	return err
}

func copyPage(w io.Writer, r rehearsal.CopyReport, schema string) {
	var rows int64
	var whole, some []string
	for _, t := range r.Copied.Tables {
		rows += t.Rows
		switch {
		case t.Rows == 0:
		case t.Whole:
			whole = append(whole, fmt.Sprintf("%s %d", t.Name, t.Rows))
		default:
			some = append(some, fmt.Sprintf("%s %d", t.Name, t.Rows))
		}
	}
	rowf(w, "copied %d rows from PostgreSQL %s in %.1f s", rows, r.Copied.Server, r.Copied.Took.Seconds())
	line := func(what string, list []string) {
		if len(list) > 0 {
			row(w, "  "+what+": "+strings.Join(list, ", "))
		}
	}
	line("all rows", whole)
	line("a sample", some)
	line("no rows, because they hold secrets or contents", r.Copied.NotCopied)
	line("hypertables, plain tables here", r.Copied.Hypertables)
	line("extensions that are missing here", r.Copied.Extensions)
	for _, left := range r.Copied.LeftOut {
		row(w, "  left out: "+left)
	}
	if r.Copied.LiveLeft > 0 {
		rowf(w, "  %d older executions that have not ended were not copied", r.Copied.LiveLeft)
	}
	for _, difference := range r.Differences {
		row(w, "differs: "+difference)
	}
	if script := (migrations.Lack{Remedies: r.RunFirst}).Script(schema); script != "" {
		for line := range strings.Lines("\n" + script + "\n") {
			row(w, strings.TrimSuffix(line, "\n"))
		}
	}
	for _, q := range r.WorkQueues {
		row(w, q.String())
	}
	if !r.EngineStarted {
		return
	}
	rowf(w, "adopted in %.1f s; writers waited at most %s", r.AdoptedSeconds, longestLock(r.Locks))
	for _, one := range r.Requests {
		if one.Status != "completed" {
			line := fmt.Sprintf("NOT OK: execution %d of %s is %s %s", one.ID, one.Action, one.Status, one.Reason)
			row(w, strings.TrimSpace(line))
		}
	}
	rowf(w, "the engine ran: %d of %d new executions completed", r.Completed(), len(r.Requests))
	rowf(w, "executions that had not ended: before %s; after %s", counts(r.Before), counts(r.After))
	for _, violation := range r.Violations {
		row(w, "NOT OK: "+violation)
	}
	if !r.HandedBack {
		return
	}
	rowf(w, "handed back in %.1f s; writers waited at most %s", r.HandedBackSeconds, longestLock(r.LocksBack))
	for _, changed := range r.Changed {
		row(w, "NOT OK: "+changed)
	}
	if len(r.Changed) == 0 {
		row(w, "the catalogue is the same as before")
	}
}

func longestLock(locks []rehearsal.Lock) string {
	if len(locks) == 0 {
		return "0 ms"
	}
	longest := slices.MaxFunc(locks, func(a, b rehearsal.Lock) int { return cmp.Compare(a.Millis, b.Millis) })
	return fmt.Sprintf("%d ms, for %s", longest.Millis, longest.Table)
}

func counts(byStatus map[string]int64) string {
	if len(byStatus) == 0 {
		return "none"
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		parts = append(parts, fmt.Sprintf("%d %s", byStatus[status], status))
	}
	return strings.Join(parts, ", ")
}
