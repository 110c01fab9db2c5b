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
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/migrations"
)

// handBackPatience bounds each of the connections of a hand-back.
const handBackPatience = 10 * time.Second

func newMigrateDownCommand(a *app) *cobra.Command {
	var (
		to  int64
		yes bool
	)
	cmd := &cobra.Command{
		Use: "down", Short: "Remove what newer migrations added", Args: cobra.NoArgs,
		Long: "Remove what the migrations after --to added, with the data in it. On an adopted schema nothing but the engine's\n" +
			"own additions is removed, whatever --to says, and before that what runs and waits is handed back to the executor of\n" +
			"the installation: its admission tables are written and the messages that wake it are published. Stop every replica\n" +
			"first. `migrate check --down` says what that executor will not understand.",
		Example: "  attune-executor migrate check --down\n  attune-executor migrate down --yes",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.migrateDown(cmd, to, yes) },
	}
	cmd.Flags().Int64Var(&to, "to", 0, "the version to go back to; 0 removes everything")
	cmd.Flags().BoolVar(&yes, "yes", false, "really do it")
	return cmd
}

// handBackReport is what is printed of a hand-back.
type handBackReport struct {
	*handback.Survey

	Result *handedBack `json:"result,omitempty"`
}

type handedBack struct{ *handback.Result }

func (h handedBack) lines(w *page) {
	w.rowf("handed back %d running and %d waiting executions", h.Active, h.Queued)
	if h.Made > 0 {
		w.rowf("made %d executions for items of lists", h.Made)
	}
	if h.Split > 0 {
		w.rowf("%d messages that held several executions were split", h.Split)
	}
	if h.Undeliverable > 0 {
		w.rowf("%d messages to workers without a queue were dropped", h.Undeliverable)
	}
	w.rowf("published %d messages: %d requests, %d ends of workflow tasks, and what the outbox held", h.Published, h.Requested, h.Completed)
}

func (a *app) migrateDown(cmd *cobra.Command, to int64, yes bool) error {
	opts, cfg, err := a.migration(cmd)
	if err != nil {
		return err
	}
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
		st, err := a.migrationStore(cmd, cfg)
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
		return &exitError{exitUnreachable, fmt.Errorf("the message broker %s does not answer: %w",
			config.MaskURL(cfg.MessageQueue.URL), err)}
	}
	return a.migrated(cmd, cfg, "removed", result, back, err)
}

// survey reads what a hand-back would meet and prints it: as a table
// always, as a document only if nothing is printed later.
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

func (a *app) handBack(ctx context.Context, cmd *cobra.Command, cfg *config.Config, st *store.Store, back *handBackReport) error {
	wire := brokerConfig(cfg, cmd.CommandPath())
	wire.NoDeadLetters, wire.ConnectTimeout = true, handBackPatience
	link := broker.New(wire, slog.New(slog.DiscardHandler), nil) // a broker that is away is one line of the error
	bounded, cancel := context.WithTimeout(ctx, handBackPatience)
	defer cancel()
	if err := link.Start(bounded); err != nil {
		return fmt.Errorf("connect to the broker: %w", err)
	}
	defer link.Stop()
	deps := handback.Deps{Store: st, Broker: link}
	management, _, err := openManagement(cfg, handBackPatience)
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

func (a *app) migrationStore(cmd *cobra.Command, cfg *config.Config) (*store.Store, error) {
	st, err := store.Open(cmd.Context(), store.Config{
		URL: cfg.Database.URL, Schema: cfg.Database.Schema, ConnectTimeout: cfg.Database.ConnectTimeout,
		MaxConnections: 2, ApplicationName: cmd.CommandPath(),
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, usageErrorf("%w: correct database.url (%s)", err, cfg.Source("database.url"))
	}
	return st, nil
}

// migrateCheckDown exits 0 when down would succeed and 3 when it would be refused.
func (a *app) migrateCheckDown(cmd *cobra.Command) error {
	opts, cfg, err := a.migration(cmd)
	if err != nil {
		return err
	}
	state, err := migrations.Status(cmd.Context(), opts)
	if err != nil {
		return migrationError(cfg, err)
	}
	if !state.HandsBack(0) {
		return a.write(cmd, handBackReport{Survey: &handback.Survey{Replicas: []handback.Replica{}, Items: []handback.Item{}}},
			func(w *page) {
				w.rowf("nothing to hand back: schema %s is not an adopted one", state.Schema)
			})
	}
	if !state.Current() {
		return &exitError{exitRefused, migrations.ErrHalfWay}
	}
	st, err := a.migrationStore(cmd, cfg)
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
	table(w, "", s.Items,
		col("NOT UNDERSTOOD", func(item *handback.Item) any { return item.Kind }),
		col("COUNT", func(item *handback.Item) any { return item.Count }),
		col("IDS", func(item *handback.Item) any {
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
			return strings.Join(ids, ", ")
		}),
		col("THEN", func(item *handback.Item) any { return item.Then }))
}
