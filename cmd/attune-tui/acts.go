package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/operator"
)

// What the dashboard allows itself for acting.
const (
	// actsPool is how many sessions acts have, apart from those that read: a plan on
	// dead letters holds one for its lock.
	actsPool = 4
	// actsTimeout bounds one statement of an act, which may wait for a lock.
	actsTimeout = 30 * time.Second
	// linkPatience bounds how long an act waits for the broker.
	linkPatience = 3 * time.Second
	// leavePatience bounds how long leaving waits for what is under way. An act that
	// is stopped writes down what it has done, for five seconds at most.
	leavePatience = 6 * time.Second
)

// openActs prepares acting: sessions of its own that may write, opened by the
// first act. It waits for nothing.
func openActs(ctx context.Context, i *installation, reader *alerting.Reader) (*operator.Operator, func(), error) {
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
	desk := triage.New(triage.Config{
		Actor: triage.LocalActor(), Source: "attune-tui",
		HeartbeatStaleAfter: cfg.Executor.StaleAfter(), WithoutStats: !cfg.Executor.Queue.EnableMetrics,
	}, st, nil).WithKeyring(keys)
	withBroker := func(ctx context.Context) (*triage.Triage, func(), error) {
		link, err := openLink(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		return desk.With(link), link.Stop, nil
	}
	return operator.New(operator.Config{WithBroker: withBroker, Explain: meaningOf}, desk, reader), st.Close, nil
}

// stateFolder is a folder for what the dashboard keeps; empty where none is known.
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

// meaningOf says of an error what it means for what was asked for. Of a plan that was not
// made the dashboard says that nothing was changed.
func meaningOf(err error, ran bool) error {
	switch class := store.ClassOf(err); {
	case class == store.ClassUnknown && ran:
		return fmt.Errorf("whether it was done is unknown, L shows what is recorded and the same again is safe: %w",
			err)
	case class == store.ClassUnreachable && ran:
		return fmt.Errorf("the database does not answer, nothing more was done: %w", err)
	case class == store.ClassUnreachable, class == store.ClassUnknown:
		text := "the database does not answer"
		if cause := explain.Cause(err); cause != "" {
			text += ": it " + cause
		}
		return &awayError{text: text, err: err}
	default:
		return err
	}
}

// awayError says in a few words that a plan could not be made.
type awayError struct {
	text string
	err  error
}

func (e *awayError) Error() string { return e.text }

func (e *awayError) Unwrap() error { return e.err }

// errBrokerAway says that an act needs the broker.
var errBrokerAway = errors.New(
	"the broker does not answer, and it has the queues: nothing was done; try again when it is back")

// openLink connects to the broker for one act.
func openLink(ctx context.Context, cfg *config.Config) (*broker.Broker, error) {
	mq := cfg.MessageQueue
	if mq.URL == "" {
		return nil, errNoBroker
	}
	link := broker.New(broker.Config{
		URL: mq.URL, ManagementURL: mq.ManagementURL, ConnectionName: "attune-tui acts", CloseTimeout: time.Second,
		DialTimeout: mq.RabbitMQ.ConnectionTimeout, Heartbeat: mq.RabbitMQ.Heartbeat,
	}, slog.New(slog.DiscardHandler), broker.NewMetrics(nil))
	patient, cancel := context.WithTimeout(ctx, linkPatience)
	defer cancel()
	if err := link.Start(patient); err != nil {
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	if link.State() != broker.StateConnected {
		link.Stop()
		return nil, errBrokerAway
	}
	return link, nil
}
