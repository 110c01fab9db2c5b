package main

import (
	"context"
	"fmt"
	"github.com/attune-go/attune/core/act"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
)

// The limits of acting.
const (
	// actsPool is the number of sessions for acts. A plan on dead letters holds one for its lock.
	actsPool = 4
	// actsTimeout bounds one statement of an act, which may wait for a lock.
	actsTimeout = 30 * time.Second
	// linkTimeout bounds the connection of an act to the broker.
	linkTimeout = 3 * time.Second
	// leaveTimeout is how long quitting waits for running acts. A stopped act records its result within five seconds.
	leaveTimeout = 6 * time.Second
)

// openActs prepares separate sessions that may write. The first act connects.
func openActs(ctx context.Context, i *installation, reader *alerting.Reader) (*act.Operator, func(), error) {
	cfg := i.cfg
	keys, err := secret.NewKeyring(cfg.Security.EncryptionKey)
	if err != nil {
		return nil, nil, fmt.Errorf("read the key that seals secrets: %w", err)
	}
	settings := storeConfig(cfg)
	settings.ReadOnly, settings.MaxConnections, settings.StatementTimeout = false, actsPool, actsTimeout
	settings.ApplicationName = "attune-tui acts"
	st, err := store.Open(ctx, settings, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare acting: %w", err)
	}
	acts := triage.New(triage.Config{
		Actor: triage.LocalActor(), Source: "attune-tui",
		HeartbeatStaleAfter: cfg.Executor.StaleAfter(), WithoutStats: !cfg.Executor.Queue.EnableMetrics,
	}, st, nil).WithKeyring(keys)
	withBroker := func(ctx context.Context) (*triage.Triage, func(), error) {
		link, err := openLink(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		return acts.With(link), link.Stop, nil
	}
	return act.New(act.Config{WithBroker: withBroker}, acts, reader), st.Close, nil
}

// stateFolder is a folder for files of the dashboard; empty if unknown.
func stateFolder(name string) string {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "attune", name)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "state", "attune", name)
}

func openLink(ctx context.Context, cfg *config.Config) (*broker.Broker, error) {
	if cfg.MessageQueue.URL == "" {
		return nil, errNoBroker
	}
	wire := broker.Configured(cfg, "attune-tui acts")
	wire.CloseTimeout = time.Second
	link := broker.New(wire, slog.New(slog.DiscardHandler), broker.NewMetrics(nil))
	dialCtx, cancel := context.WithTimeout(ctx, linkTimeout)
	defer cancel()
	if err := link.Start(dialCtx); err != nil {
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	if link.State() != broker.StateConnected {
		trouble := link.Trouble()
		link.Stop()
		return nil, fmt.Errorf("nothing was done: %w", trouble)
	}
	return link, nil
}
