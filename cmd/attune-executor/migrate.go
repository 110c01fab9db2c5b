package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/migrations"
)

func newMigrateCommand(a *app) *cobra.Command {
	var accept bool
	cmd := group(&cobra.Command{
		Use:   "migrate",
		Short: "Bring the database schema to this version, or look at it",
		Long: "Bring the database schema to this version, or look at it. An existing Attune schema is checked and adopted:\n" +
			"what is there stays as it is, and only what the engine needs is added.",
		Example: "  attune-executor migrate check\n  attune-executor migrate up",
	},
		withoutQueues(&cobra.Command{
			Use: "up", Short: "Apply what is missing", Args: cobra.NoArgs,
			Long: "Apply what is missing. An existing schema whose work queues are enabled or have leased items is refused, because\n" +
				"this engine does not dispatch them; --" + withoutWorkQueues + " adopts it all the same.",
			Example: "  attune-executor migrate up --config attune.yaml",
			RunE:    func(cmd *cobra.Command, _ []string) error { return a.migrateUp(cmd, accept) },
		}, &accept),
		newMigrateDownCommand(a),
		&cobra.Command{
			Use: "status", Short: "List the migrations and whether each is applied", Args: cobra.NoArgs,
			Example: "  attune-executor migrate status -o json",
			RunE:    func(cmd *cobra.Command, _ []string) error { return a.migrateStatus(cmd) },
		},
		withoutQueues(newMigrateCheckCommand(a, &accept), &accept),
		newMigrateRehearseCommand(a),
	)
	cmd.PersistentFlags().Duration("wait", 0, "how long to go on trying to get the locks of one migration; 0 is 5m")
	return cmd
}

func newMigrateCheckCommand(a *app, accept *bool) *cobra.Command {
	var down bool
	cmd := &cobra.Command{
		Use: "check", Short: "Say what `up` would change and whether that is safe under load", Args: cobra.NoArgs,
		Long: "Say what `up` would change and whether that is safe under load. With --down: what `down` would hand back to the\n" +
			"executor of the installation, and what that executor would not understand. Nothing is changed.",
		Example: "  attune-executor migrate check\n  attune-executor migrate check --down -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if down {
				return a.migrateCheckDown(cmd)
			}
			return a.migrateCheck(cmd, *accept)
		},
	}
	cmd.Flags().BoolVar(&down, "down", false, "say what `down` would do to an adopted schema")
	return cmd
}

func (a *app) migration(cmd *cobra.Command) (migrations.Options, *config.Config, error) {
	logger, err := a.logger("warn")
	if err != nil {
		return migrations.Options{}, nil, err
	}
	cfg, err := a.load(cmd.Context(), logger)
	if err != nil {
		return migrations.Options{}, nil, err
	}
	wait, err := cmd.Flags().GetDuration("wait")
	if err != nil || wait < 0 {
		return migrations.Options{}, nil, usageErrorf("--wait must not be negative")
	}
	return migrations.Options{URL: cfg.Database.URL, Schema: cfg.Database.Schema, WaitTimeout: wait, Logger: logger}, cfg, nil
}

func (a *app) migrateUp(cmd *cobra.Command, accept bool) error {
	opts, cfg, err := a.migration(cmd)
	if err != nil {
		return err
	}
	opts.WithoutWorkQueues = accept
	result, err := migrations.Up(cmd.Context(), opts)
	return a.migrated(cmd, cfg, "applied", result, nil, err)
}

// migrationError gives an error of a migration its exit code.
func migrationError(cfg *config.Config, err error) error {
	var incompatible *migrations.IncompatibleError
	var queues *migrations.WorkQueuesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &queues):
		return refusedErrorf("%w\n%s: nothing was changed", err, acceptWorkQueues)
	case errors.As(err, &incompatible):
		return &exitError{exitRefused, fmt.Errorf("%w: nothing was changed", err)}
	case errors.Is(err, migrations.ErrHalfWay):
		return &exitError{exitRefused, err}
	case store.ClassOf(err) == store.ClassUnreachable, errors.Is(err, context.DeadlineExceeded):
		return unreachable(cfg, err)
	}
	return err
}

type migrated struct {
	Schema  string           `json:"schema"`
	Origin  string           `json:"origin"`
	Adopted bool             `json:"adopted"`
	Version int64            `json:"version"`
	Changed []migrationState `json:"changed"`
	// WorkQueues wait since this call has adopted the schema, or are why it refused.
	WorkQueues []migrations.WorkQueue `json:"work_queues,omitempty"`
	Ignored    migrations.Ignored     `json:"ignored_by_published_executor,omitzero"`

	HandBack *handBackReport `json:"hand_back,omitempty"`
}

type migrationState struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
	At      string `json:"applied_at,omitempty"`
	Safety  string `json:"safety,omitempty"`
	Why     string `json:"why,omitempty"`
}

func (a *app) migrated(
	cmd *cobra.Command, cfg *config.Config, verb string, result migrations.Result, back *handBackReport, err error,
) error {
	out := migrated{
		Schema: cfg.Database.Schema, Origin: string(result.Origin), Adopted: result.Adopted, Version: result.Version,
		Changed: []migrationState{}, WorkQueues: result.WorkQueues, Ignored: result.Ignored, HandBack: back,
	}
	if err != nil {
		if a.output != "table" && len(out.WorkQueues) > 0 { // a table would repeat what the error says
			if err := a.write(cmd, out, nil); err != nil {
				return err
			}
		}
		return migrationError(cfg, err)
	}
	for _, step := range result.Applied {
		out.Changed = append(out.Changed, migrationState{Version: step.Version, Name: step.Name, Applied: verb == "applied"})
	}
	return a.write(cmd, out, func(w *page) {
		if back != nil && back.Result != nil {
			back.Result.lines(w)
		}
		if out.Adopted {
			w.row("adopted the existing schema " + out.Schema)
		}
		adoptionLines(w, out.WorkQueues, out.Ignored)
		for _, step := range out.Changed {
			w.row(fmt.Sprintf("%s %04d", verb, step.Version), step.Name)
		}
		if len(out.Changed) == 0 {
			w.rowf("nothing to do: schema %s is at version %d", out.Schema, out.Version)
			return
		}
		w.rowf("schema %s is at version %d", out.Schema, out.Version)
	})
}

type migrationReport struct {
	Schema      string           `json:"schema"`
	Origin      string           `json:"origin"`
	Version     int64            `json:"version"`
	Latest      int64            `json:"latest"`
	Current     bool             `json:"current"`
	WouldAdopt  bool             `json:"would_adopt,omitempty"`
	Differences []string         `json:"differences,omitempty"`
	RunFirst    []string         `json:"run_first,omitempty"` // the statements that remove the differences
	Files       []migrationState `json:"files"`
	// WorkQueues would wait after adoption.
	WorkQueues []migrations.WorkQueue `json:"work_queues,omitempty"`
	Ignored    migrations.Ignored     `json:"ignored_by_published_executor,omitzero"`
}

func report(state migrations.State, files []migrations.FileState) migrationReport {
	out := migrationReport{
		Schema: state.Schema, Origin: string(state.Origin), Version: state.Version, Latest: state.Latest,
		Current: state.Current(), Files: []migrationState{},
	}
	for _, file := range files {
		state := migrationState{
			Version: file.Version, Name: file.Name, Applied: file.Applied, Safety: string(file.Safety), Why: file.Why,
		}
		if !file.AppliedAt.IsZero() {
			state.At = file.AppliedAt.UTC().Format("2006-01-02T15:04:05Z")
		}
		out.Files = append(out.Files, state)
	}
	return out
}

func (a *app) migrateStatus(cmd *cobra.Command) error {
	opts, cfg, err := a.migration(cmd)
	if err != nil {
		return err
	}
	state, err := migrations.Status(cmd.Context(), opts)
	if err != nil {
		return migrationError(cfg, err)
	}
	out := report(state, state.Files)
	return a.write(cmd, out, func(w *page) {
		table(w, "", out.Files,
			col("VERSION", func(f *migrationState) any { return fmt.Sprintf("%04d", f.Version) }),
			col("NAME", func(f *migrationState) any { return f.Name }),
			col("APPLIED", func(f *migrationState) any { return strings.TrimSpace(yesNo(f.Applied) + " " + f.At) }))
		w.rowf("schema %s (%s) is at version %d of %d", out.Schema, out.Origin, out.Version, out.Latest)
	})
}

// migrateCheck exits 0 when up would succeed and 3 when it would be refused.
func (a *app) migrateCheck(cmd *cobra.Command, accept bool) error {
	opts, cfg, err := a.migration(cmd)
	if err != nil {
		return err
	}
	plan, err := migrations.Check(cmd.Context(), opts)
	if err != nil {
		return migrationError(cfg, err)
	}
	out := report(plan.State, plan.Pending)
	out.WouldAdopt, out.Differences, out.RunFirst = plan.WouldAdopt, plan.Differences, plan.Remedies
	out.WorkQueues, out.Ignored = plan.WorkQueues, plan.Ignored
	err = a.write(cmd, out, func(w *page) { migrationPage(w, out) })
	if err != nil {
		return err
	}
	if len(out.Differences) > 0 {
		return refusedErrorf("schema %s cannot be adopted: %d differences\n%s", out.Schema, len(out.Differences), plan.Advice())
	}
	if len(out.WorkQueues) > 0 && !accept {
		return refusedErrorf("schema %s has work queues: %s", out.Schema, acceptWorkQueues)
	}
	return nil
}

func migrationPage(w *page, out migrationReport) {
	for _, difference := range out.Differences {
		w.row("differs: " + difference)
	}
	adoptionLines(w, out.WorkQueues, out.Ignored)
	if out.WouldAdopt {
		w.row("up would adopt the existing schema " + out.Schema)
	}
	if len(out.Files) == 0 {
		w.rowf("nothing to do: schema %s is at version %d", out.Schema, out.Version)
		return
	}
	table(w, "", out.Files,
		col("VERSION", func(f *migrationState) any { return fmt.Sprintf("%04d", f.Version) }),
		col("NAME", func(f *migrationState) any { return f.Name }),
		col("UNDER LOAD", func(f *migrationState) any { return f.Safety }),
		col("WHY", func(f *migrationState) any { return f.Why }))
}

const withoutWorkQueues = "without-work-queues"

// withoutQueues adds the flag by which a person accepts that work queues wait.
func withoutQueues(cmd *cobra.Command, accept *bool) *cobra.Command {
	cmd.Flags().BoolVar(accept, withoutWorkQueues, false,
		"adopt a schema although this engine does not dispatch its work queues: their items wait")
	return cmd
}

// workQueuesWait is what adoption means for work queues.
const workQueuesWait = "this engine does not dispatch work queues: their items stay as they are, and wait for an engine that does"

// acceptWorkQueues says how to adopt a schema with work queues nevertheless.
const acceptWorkQueues = workQueuesWait + "; repeat it with --" + withoutWorkQueues + " to adopt the schema all the same"

// adoptionLines say what an installation has that goes differently after adoption.
func adoptionLines(w *page, queues []migrations.WorkQueue, ignored migrations.Ignored) {
	if line := ignored.String(); line != "" {
		w.row(line)
	}
	for _, q := range queues {
		w.row(q.String())
	}
	if len(queues) == 0 {
		return
	}
	w.row(workQueuesWait)
}
