package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/devstack"
	"github.com/attune-go/attune/core/installation/rehearsal"
	"github.com/attune-go/attune/core/installation/sample"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/migrations"
)

// rehearseCopy rehearses the adoption with a copy of the installation at from.
func (a *app) rehearseCopy(cmd *cobra.Command, dir, from string, newest int) (err error) {
	if problem := config.AddressProblem(from, "postgresql", "postgres"); problem != "" {
		return usageErrorf("--from %s", problem)
	}
	logger, cfg, err := a.configure(cmd.Context(), "error")
	if err != nil {
		return err
	}
	ctx, stop := supervise.Interruptible(cmd.Context())
	defer stop()
	if err := sample.Check(ctx, sample.Config{From: from, Schema: cfg.Database.Schema}); err != nil {
		return copyError(from, err)
	}
	address := config.MaskURL(from)
	cmd.PrintErrf("starting a private PostgreSQL and RabbitMQ in %s; %s is only read\n", dir, address)
	stack, err := devstack.Up(ctx, devstack.Config{Dir: dir, Logger: logger})
	if err != nil {
		return fmt.Errorf("start the servers: %w", err)
	}
	defer func() { err = errors.Join(err, stack.Reset(context.WithoutCancel(ctx))) }()
	report, err := rehearsal.RunCopy(ctx, rehearsal.CopyConfig{
		From: from, Schema: cfg.Database.Schema, Newest: newest,
		DatabaseURL: stack.DatabaseURL(), AMQPURL: stack.AMQPURL(), ManagementURL: stack.ManagementURL(),
		Out: cmd.ErrOrStderr(), Logger: logger,
	})
	var different *rehearsal.DifferentError
	if err != nil && !errors.As(err, &different) {
		return copyError(from, err)
	}
	if err := a.write(cmd, report, func(w *page) { copyPage(w, report, cfg.Database.Schema) }); err != nil {
		return err
	}
	switch {
	case different != nil:
		return refusedErrorf("%w", different)
	case !report.OK:
		return failedErrorf("the rehearsal found faults: see the lines with NOT OK")
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

func copyPage(w *page, r rehearsal.CopyReport, schema string) {
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
	w.rowf("copied %d rows from PostgreSQL %s in %.1f s", rows, r.Copied.Server, r.Copied.Took.Seconds())
	line := func(what string, list []string) {
		if len(list) > 0 {
			w.row("  " + what + ": " + strings.Join(list, ", "))
		}
	}
	line("all rows", whole)
	line("a sample", some)
	line("no rows, because they hold secrets or contents", r.Copied.NotCopied)
	line("hypertables, plain tables here", r.Copied.Hypertables)
	line("extensions that are missing here", r.Copied.Extensions)
	for _, left := range r.Copied.LeftOut {
		w.row("  left out: " + left)
	}
	if r.Copied.LiveLeft > 0 {
		w.rowf("  %d older executions that have not ended were not copied", r.Copied.LiveLeft)
	}
	lackLines(w, migrations.Lack{Differences: r.Differences, Remedies: r.RunFirst}, schema)
	for _, q := range r.WorkQueues {
		w.row(q.String())
	}
	if !r.EngineStarted {
		return
	}
	w.rowf("adopted in %.1f s; writers waited at most %s", r.AdoptedSeconds, longestLock(r.Locks))
	for _, one := range r.Requests {
		if one.Status != "completed" {
			line := fmt.Sprintf("NOT OK: execution %d of %s is %s %s", one.ID, one.Action, one.Status, one.Reason)
			w.row(strings.TrimSpace(line))
		}
	}
	w.rowf("the engine ran: %d of %d new executions completed", r.Completed(), len(r.Requests))
	w.rowf("executions that had not ended: before %s; after %s", counts(r.Before), counts(r.After))
	for _, violation := range r.Violations {
		w.row("NOT OK: " + violation)
	}
	if !r.HandedBack {
		return
	}
	w.rowf("handed back in %.1f s; writers waited at most %s", r.HandedBackSeconds, longestLock(r.LocksBack))
	for _, changed := range r.Changed {
		w.row("NOT OK: " + changed)
	}
	if len(r.Changed) == 0 {
		w.row("the catalogue is the same as before")
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
