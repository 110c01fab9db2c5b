package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/handback"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/migrations"
)

func newMigrateCommand(a *app) *cobra.Command {
	var accept bool
	cmd := group(&cobra.Command{
		Use:   "migrate",
		Short: "Migrate the database schema to this version, or check it",
		Long: "Migrate the database schema to this version, or check it. An existing Attune schema is checked and\n" +
			"adopted: its tables and data stay as they are, and only the engine's own objects are added.",
		Example: "  attune-executor migrate check\n  attune-executor migrate up",
	},
		withoutQueues(&cobra.Command{
			Use: "up", Short: "Apply the missing migrations", Args: cobra.NoArgs,
			Long: "Apply the missing migrations. An existing schema with enabled work queues or leased items is\n" +
				"refused, because this engine does not dispatch work queues;\n" +
				"--" + withoutWorkQueues + " adopts it anyway.",
			Example: "  attune-executor migrate up --config attune.yaml",
			RunE: a.migrating(func(cmd *cobra.Command, opts migrations.Options, cfg *config.Config) error {
				opts.WithoutWorkQueues = accept
				result, err := migrations.Up(cmd.Context(), opts)
				return a.migrated(cmd, cfg, "applied", result, nil, err)
			}),
		}, &accept),
		newMigrateDownCommand(a),
		&cobra.Command{
			Use: "status", Short: "List the migrations and whether each is applied", Args: cobra.NoArgs,
			Example: "  attune-executor migrate status -o json",
			RunE:    a.migrating(a.migrateStatus),
		},
		withoutQueues(newMigrateCheckCommand(a, &accept), &accept),
	)
	cmd.PersistentFlags().Var(phrase.SpanFlag{To: new(time.Duration)}, "wait",
		"how long to try to get the locks of one migration, 0 for 5m")
	return cmd
}

func newMigrateCheckCommand(a *app, accept *bool) *cobra.Command {
	var down bool
	cmd := &cobra.Command{
		Use: "check", Short: "Show what `up` would change, and whether that is safe under load", Args: cobra.NoArgs,
		Long: "Show what `up` would change, and whether that is safe under load. With --down, show what `down`\n" +
			"would hand back to the executor of the installation, and what that executor would not understand.\n" +
			"Nothing is changed.",
		Example: "  attune-executor migrate check\n  attune-executor migrate check --down -o json",
		RunE: a.migrating(func(cmd *cobra.Command, opts migrations.Options, cfg *config.Config) error {
			if down {
				return a.migrateCheckDown(cmd, opts, cfg)
			}
			return a.migrateCheck(cmd, opts, cfg, *accept)
		}),
	}
	cmd.Flags().BoolVar(&down, "down", false, "show what `down` would do to an adopted schema")
	return cmd
}

// migrating makes the RunE of a command with the options of migrations.
func (a *app) migrating(
	run func(cmd *cobra.Command, opts migrations.Options, cfg *config.Config) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		logger, cfg, err := a.configure(cmd.Context(), "warn")
		if err != nil {
			return err
		}
		var wait time.Duration
		if flag, ok := cmd.Flag("wait").Value.(phrase.SpanFlag); ok {
			wait = *flag.To
		}
		opts := migrations.Options{
			URL: cfg.Database.URL, Schema: cfg.Database.Schema, WaitTimeout: wait,
			Logger: logger,
		}
		return run(cmd, opts, cfg)
	}
}

func migrationError(cfg *config.Config, err error) error {
	var incompatible *migrations.IncompatibleError
	var queues *migrations.WorkQueuesError
	var unfit *migrations.UnfitError
	var encoding *migrations.EncodingError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unfit):
		return &exitError{exitRefused, unfit}
	case errors.As(err, &queues):
		return refusedErrorf("%w\n%s: nothing was changed", err, acceptWorkQueues)
	case errors.As(err, &incompatible):
		return &exitError{exitRefused, fmt.Errorf("%w: nothing was changed", err)}
	case errors.As(err, &encoding):
		return &exitError{exitRefused, encoding}
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
	// WorkQueues of an adopted schema wait from now on, or are the reason of a refusal.
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
		out.Changed = append(out.Changed,
			migrationState{Version: step.Version, Name: step.Name, Applied: verb == "applied"})
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

func (a *app) migrateStatus(cmd *cobra.Command, opts migrations.Options, cfg *config.Config) error {
	state, err := migrations.Status(cmd.Context(), opts)
	if err != nil {
		return migrationError(cfg, err)
	}
	out := report(state, state.Files)
	return a.write(cmd, out, func(w *page) {
		table(w, "", out.Files, "VERSION, NAME, APPLIED", func(f *migrationState) []any {
			return []any{fmt.Sprintf("%04d", f.Version), f.Name, strings.TrimSpace(yesNo(f.Applied) + " " + f.At)}
		})
		w.rowf("schema %s (%s) is at version %d of %d", out.Schema, out.Origin, out.Version, out.Latest)
	})
}

// migrateCheck exits 0 when up would succeed and 3 when it would be refused.
func (a *app) migrateCheck(cmd *cobra.Command, opts migrations.Options, cfg *config.Config, accept bool) error {
	plan, err := migrations.Check(cmd.Context(), opts)
	if err != nil {
		return migrationError(cfg, err)
	}
	out := report(plan.State, plan.Pending)
	out.WouldAdopt, out.Differences, out.RunFirst = plan.WouldAdopt, plan.Differences, plan.Remedies
	out.WorkQueues, out.Ignored = plan.WorkQueues, plan.Ignored
	err = a.write(cmd, out, func(w *page) {
		lackLines(w, plan.Lack, out.Schema)
		migrationPage(w, out)
	})
	if err != nil {
		return err
	}
	if len(out.Differences) > 0 {
		return refusedErrorf("schema %s cannot be adopted: %d differences; %s", out.Schema, len(out.Differences),
			plan.Advice())
	}
	if len(out.WorkQueues) > 0 && !accept {
		return refusedErrorf("schema %s has work queues: %s", out.Schema, acceptWorkQueues)
	}
	return nil
}

// lackLines lists what an installation lacks, and the statements that add it, a line each as psql reads them.
func lackLines(w *page, lack migrations.Lack, schema string) {
	for _, difference := range lack.Differences {
		w.row("differs: " + difference)
	}
	if script := lack.Script(schema); script != "" {
		w.lines("\n" + script + "\n")
	}
}

func migrationPage(w *page, out migrationReport) {
	adoptionLines(w, out.WorkQueues, out.Ignored)
	if out.WouldAdopt {
		w.row("up would adopt the existing schema " + out.Schema)
	}
	if len(out.Files) == 0 {
		w.rowf("nothing to do: schema %s is at version %d", out.Schema, out.Version)
		return
	}
	table(w, "", out.Files, "VERSION, NAME, UNDER LOAD, WHY", func(f *migrationState) []any {
		return []any{fmt.Sprintf("%04d", f.Version), f.Name, f.Safety, f.Why}
	})
}

const withoutWorkQueues = "without-work-queues"

// withoutQueues adds the flag that accepts waiting work queues.
func withoutQueues(cmd *cobra.Command, accept *bool) *cobra.Command {
	cmd.Flags().BoolVar(accept, withoutWorkQueues, false,
		"adopt a schema although this engine does not dispatch its work queues: their items wait")
	return cmd
}

// workQueuesWait is the effect of an adoption on work queues.
const workQueuesWait = "this engine does not dispatch work queues: " +
	"their items stay as they are, and wait for an engine that does"

// acceptWorkQueues says how to adopt a schema with work queues.
const acceptWorkQueues = workQueuesWait + "; repeat it with --" + withoutWorkQueues +
	" to adopt the schema anyway"

// adoptionLines report the differences of an installation after its adoption.
func adoptionLines(w *page, queues []migrations.WorkQueue, ignored migrations.Ignored) {
	if line := ignored.String(); line != "" {
		w.row(line)
	}
	for _, q := range queues {
		w.row(q.String())
	}
	if len(queues) > 0 {
		w.row(workQueuesWait)
	}
}

// handBackTimeout bounds each connection of a hand-back.
const handBackTimeout = 10 * time.Second

func newMigrateDownCommand(a *app) *cobra.Command {
	var (
		to  int64
		yes bool
	)
	cmd := &cobra.Command{
		Use: "down", Short: "Remove the additions of newer migrations", Args: cobra.NoArgs,
		Long: "Remove the additions of the migrations after --to, with their data. On an adopted schema only the\n" +
			"engine's own additions are removed, whatever --to says. Before that, running and waiting executions\n" +
			"are handed back to the executor of the installation: its admission tables are written, and the\n" +
			"messages that wake it are published. Stop every replica first. `migrate check --down` shows what that\n" +
			"executor will not understand.",
		Example: "  attune-executor migrate check --down\n  attune-executor migrate down --yes",
		RunE: a.migrating(func(cmd *cobra.Command, opts migrations.Options, cfg *config.Config) error {
			return a.migrateDown(cmd, opts, cfg, to, yes)
		}),
	}
	cmd.Flags().Int64Var(&to, "to", 0, "the version to go back to; 0 removes everything")
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm the removal")
	return cmd
}

type handBackReport struct {
	*handback.Survey

	Result *handedBack `json:"result,omitempty"`
}

type handedBack struct{ *handback.Result }

func (h handedBack) lines(w *page) {
	w.rowf("handed back %d running and %d waiting executions", h.Active, h.Queued)
	if h.Made > 0 {
		w.row("made " + phrase.Plural(h.Made, "execution", "executions") + " for items of lists")
	}
	if h.Split > 0 {
		w.row(phrase.Plural(h.Split, "message", "messages") + " with several executions split")
	}
	if h.Undeliverable > 0 {
		w.row(phrase.Plural(h.Undeliverable, "message", "messages") + " to workers without a queue dropped")
	}
	w.rowf("published %d messages: %d requests, %d ends of workflow tasks, and what the outbox held", h.Published,
		h.Requested, h.Completed)
}

func (a *app) migrateDown(cmd *cobra.Command, opts migrations.Options, cfg *config.Config, to int64, yes bool) error {
	refused := refusedErrorf("migrate down removes tables and their data: repeat it with --yes")
	state, err := migrations.Status(cmd.Context(), opts)
	if err != nil {
		if !yes {
			return refused
		}
		return migrationError(cfg, err)
	}
	var back *handBackReport
	if state.HandsBack(to) {
		st, err := migrationStore(cmd, cfg)
		if err != nil {
			return err
		}
		defer st.Close()
		if state.Current() {
			if back, err = a.survey(cmd, cfg, st, !yes); err != nil {
				return err
			}
		}
		opts.HandBack = func(ctx context.Context) error { return a.handBack(ctx, cmd, cfg, st, back) }
	}
	if !yes {
		return refused
	}
	result, err := migrations.Down(cmd.Context(), opts, to)
	var running *handback.RunningError
	var unstarted *handback.UnstartedError
	switch {
	case errors.As(err, &unstarted):
		return refusedErrorf("%w: nothing was changed", unstarted)
	case errors.As(err, &running):
		return refusedErrorf("%w: nothing was changed", running)
	case errors.Is(err, broker.ErrNotConnected):
		return &exitError{exitUnreachable, fmt.Errorf("%s: nothing was changed", awayBroker(cfg, broker.Trouble(err)))}
	}
	return a.migrated(cmd, cfg, "removed", result, back, err)
}

// survey reads and prints what a hand-back would change: a table always, a document only if nothing
// is printed later.
func (a *app) survey(cmd *cobra.Command, cfg *config.Config, st *store.Store, last bool) (*handBackReport, error) {
	survey, err := handback.Read(cmd.Context(), st)
	if err != nil {
		return nil, migrationError(cfg, err)
	}
	back := &handBackReport{Survey: survey}
	if !last && a.output != "table" {
		return back, nil
	}
	return back, a.write(cmd, back, func(w *page) { printSurvey(w, survey) })
}

func (a *app) handBack(ctx context.Context, cmd *cobra.Command, cfg *config.Config, st *store.Store,
	back *handBackReport,
) error {
	wire := brokerConfig(cfg, cmd.CommandPath())
	wire.NoDeadLetters, wire.ConnectTimeout = true, handBackTimeout
	link := broker.New(wire, slog.New(slog.DiscardHandler), nil) // a broker that is away is one line of the error
	bounded, cancel := context.WithTimeout(ctx, handBackTimeout)
	defer cancel()
	if err := link.Start(bounded); err != nil {
		return fmt.Errorf("connect to the broker: %w", err)
	}
	defer link.Stop()
	deps := handback.Deps{Store: st, Broker: link}
	management, _, err := openManagement(cfg, handBackTimeout)
	if err != nil {
		return err
	}
	if management != nil {
		defer management.Close()
		deps.Management = management
	}
	if deps.Keys, err = secret.NewKeyring(cfg.Security.EncryptionKey); err != nil {
		return usageErrorf("%w: correct security.encryption_key (%s)", err, cfg.Source("security.encryption_key"))
	}
	result, err := handback.HandBack(ctx, deps)
	if err != nil {
		return err
	}
	back.Result = &handedBack{result}
	return nil
}

func migrationStore(cmd *cobra.Command, cfg *config.Config) (*store.Store, error) {
	want := store.Configured(cfg, cmd.CommandPath())
	want.MaxConnections = 2
	return prepareStore(cmd.Context(), cfg, want, nil)
}

// migrateCheckDown exits 0 when down would succeed and 3 when it would be refused.
func (a *app) migrateCheckDown(cmd *cobra.Command, opts migrations.Options, cfg *config.Config) error {
	state, err := migrations.Status(cmd.Context(), opts)
	if err != nil {
		return migrationError(cfg, err)
	}
	if !state.HandsBack(0) {
		none := handBackReport{Survey: &handback.Survey{Replicas: []handback.Replica{}, Items: []handback.Item{}}}
		return a.write(cmd, none, func(w *page) {
			w.rowf("nothing to hand back: schema %s is not an adopted one", state.Schema)
		})
	}
	if !state.Current() {
		return &exitError{exitRefused, migrations.ErrHalfWay}
	}
	st, err := migrationStore(cmd, cfg)
	if err != nil {
		return err
	}
	defer st.Close()
	back, err := a.survey(cmd, cfg, st, true)
	if err == nil && len(back.Replicas) > 0 {
		err = refusedErrorf("%w", &handback.RunningError{Replicas: back.Replicas})
	}
	return err
}

func printSurvey(w *page, s *handback.Survey) {
	for _, r := range s.Replicas {
		w.rowf("a replica runs: %s on %s, process %d", r.ID, r.Host, r.PID)
	}
	w.rowf("unpublished messages: %d; they are published first", s.Unpublished)
	if len(s.Items) == 0 {
		w.row("the other executor understands everything that is there")
		return
	}
	table(w, "", s.Items, "NOT UNDERSTOOD, COUNT, IDS, THEN", func(item *handback.Item) []any {
		ids := make([]string, 0, len(item.IDs)+1)
		for i, id := range item.IDs {
			text := strconv.FormatInt(id, 10)
			if i < len(item.Notes) && item.Notes[i] != "" {
				text += " (" + item.Notes[i] + ")"
			}
			ids = append(ids, text)
		}
		if int64(len(item.IDs)) < item.Count {
			ids = append(ids, "…")
		}
		return []any{item.Kind, item.Count, strings.Join(ids, ", "), item.Then}
	})
}
