package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
)

// withNames adds the names of the process to every line of a log.
func withNames(logger *slog.Logger, cfg *config.Config) *slog.Logger {
	names := cfg.Names()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		logger = logger.With(name, names[name])
	}
	return logger
}

// load reads the configuration. If it names no database and a private stack runs in the current
// folder, it uses that stack and says so.
func (a *app) load(ctx context.Context, logger *slog.Logger) (*config.Config, error) {
	cfg, err := config.Load(a.configPath, a.environ)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	for _, warning := range cfg.Warnings {
		logger.WarnContext(ctx, "Configuration", "warning", warning)
	}
	stack := privateStack(cfg)
	if len(stack) == 0 {
		return cfg, nil
	}
	cfg, err = config.Load(a.configPath, append(slices.Clone(a.environ), stack...))
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	if firstUse(os.Getppid()) {
		a.notef("using the private stack in %s", config.PrivateStackDir)
	}
	return cfg, nil
}

// privateStack returns the variables of the running stack of the current folder
// unless the configuration names servers.
func privateStack(cfg *config.Config) []string {
	if cfg.Source("database.url") != "default" || cfg.Source("message_queue.url") != "default" {
		return nil
	}
	return config.PrivateStack()
}

// firstUse reports whether the shell of the process id uses the private stack for the first time since another shell,
// and records it. In a read-only folder it is always the first time.
func firstUse(shell int) bool {
	name, id := filepath.Join(config.PrivateStackDir, "shell"), strconv.Itoa(shell)
	if last, err := os.ReadFile(name); err == nil && string(last) == id {
		return false
	}
	_ = os.WriteFile(name, []byte(id), 0o600) // a failure only repeats a message
	return true
}

// client is a command with a database.
type client struct {
	*app
	cmd    *cobra.Command
	cfg    *config.Config
	logger *slog.Logger
	store  *store.Store
}

// connect opens the store for a client command; the caller closes it.
func (a *app) connect(cmd *cobra.Command) (*client, error) {
	logger, cfg, err := a.configure(cmd.Context(), "warn")
	if err != nil {
		return nil, err
	}
	want := store.Configured(cfg, cmd.CommandPath())
	want.MaxConnections = min(cfg.Database.MaxConnections, 4)
	st, err := openStore(cmd.Context(), cfg, want, logger)
	if err != nil {
		return nil, err
	}
	return &client{app: a, cmd: cmd, cfg: cfg, logger: logger, store: st}, nil
}

// connected makes the RunE of a command with a database.
func (a *app) connected(run func(c *client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(cmd)
		if err != nil {
			return err
		}
		defer c.store.Close()
		return run(c, args)
	}
}

func (c *client) show(value any, text func(w *page)) error { return c.write(c.cmd, value, text) }

// monitor makes the read side.
func (c *client) monitor() *alerting.Reader {
	return alerting.NewReader(monitor.New(monitor.Configured(c.cfg), monitor.Deps{Store: c.store}), c.cfg.Alerts, nil)
}

// prepareStore makes a store for the configured database, which need not answer.
func prepareStore(
	ctx context.Context, cfg *config.Config, want store.Config, logger *slog.Logger,
) (*store.Store, error) {
	st, err := store.Open(ctx, want, logger)
	if err != nil {
		return nil, usageErrorf("%w: correct database.url (%s)", err, cfg.Source("database.url"))
	}
	return st, nil
}

// openStore opens the configured database and checks that it answers.
func openStore(ctx context.Context, cfg *config.Config, want store.Config, logger *slog.Logger) (*store.Store, error) {
	st, err := prepareStore(ctx, cfg, want, logger)
	if err != nil {
		return nil, err
	}
	if err := st.Ping(ctx); err != nil {
		st.Close()
		return nil, unreachable(cfg, err)
	}
	return st, nil
}

// unreachable is the error for a database that does not answer or refuses the login, with advice.
func unreachable(cfg *config.Config, err error) error {
	const key = "database.url"
	trouble, source := store.Trouble(err), cfg.Source(key)
	where := key + " of " + source + ": " + config.MaskURL(cfg.Database.URL)
	if source == "default" {
		where = key + " is not set; `attune-lab stack up` starts a private one"
	}
	return &exitError{exitUnreachable, fmt.Errorf("%w (%s)", trouble.Because(err), where)}
}

// awayBroker is the sentence about a broker, with its address and where that is configured.
func awayBroker(cfg *config.Config, trouble phrase.Trouble) string {
	const key = "message_queue.url"
	return fmt.Sprintf("%s (%s of %s: %s)", trouble, key, cfg.Source(key), config.MaskURL(cfg.MessageQueue.URL))
}

// named adds the cause to an error about a database that takes no writes.
func (a *app) named(ctx context.Context, err error) error {
	if a.loaded == nil || store.ClassOf(err) != store.ClassUnable {
		return err
	}
	want := store.Configured(a.loaded, "attune-executor")
	want.MaxConnections = 1
	st, failed := prepareStore(ctx, a.loaded, want, nil)
	if failed != nil {
		return err
	}
	defer st.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), doctorTimeout)
	defer cancel()
	return st.Named(ctx, err)
}

// brokerConfig is the configuration of the broker for commands and workers.
func brokerConfig(cfg *config.Config, name string) broker.Config {
	wire := broker.Configured(cfg, name)
	wire.CloseTimeout = time.Second
	return wire
}

// openManagement connects to the management API; nil if none is configured. The caller closes it.
func openManagement(cfg *config.Config, timeout time.Duration) (*broker.Management, string, error) {
	if cfg.MessageQueue.ManagementURL == "" {
		return nil, "", nil
	}
	management, vhost, err := broker.OpenManagement(brokerConfig(cfg, ""), timeout)
	if err != nil {
		return nil, "", usageErrorf("%w: correct message_queue.url (%s) or message_queue.management_url (%s)", err,
			cfg.Source("message_queue.url"), cfg.Source("message_queue.management_url"))
	}
	return management, vhost, nil
}

// publisher sends the committed messages of a command. Without its broker a running engine sends
// them.
type publisher struct {
	relay    *outbox.Relay
	link     *broker.Broker
	returned atomic.Bool // a message reached no queue; it is left to a running engine
	refused  atomic.Bool // so is a message of a dead letter that the broker did not accept
}

// openPublisher starts a publisher; the caller closes it.
func (c *client) openPublisher(ctx context.Context, name string) (*publisher, error) {
	p := &publisher{}
	c.acts = true
	quiet := slog.New(slog.DiscardHandler) // a broker that is away is reported in one line, not by its reconnects
	p.link = broker.New(brokerConfig(c.cfg, name), quiet, broker.NewMetrics(nil))
	p.relay = outbox.New(outbox.Config{
		SweepInterval: time.Hour, FlushTimeout: time.Second,
		Undeliverable: func(context.Context, *store.Tx, []outbox.Message) (map[string]bool, error) {
			p.returned.Store(true)
			return nil, nil
		},
		Refused: func(context.Context, *store.Tx, outbox.Message, int, string) (bool, error) {
			p.refused.Store(true)
			return false, nil
		},
	}, c.store, p.link.Publisher(), quiet, outbox.NewMetrics(prometheus.NewRegistry()))
	first, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if err := p.link.Start(first); err != nil { // without a broker it returns after the timeout, and connects later
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	if err := p.relay.Start(ctx); err != nil {
		p.link.Stop()
		return nil, fmt.Errorf("start publishing: %w", err)
	}
	return p, nil
}

func (p *publisher) close() {
	p.relay.Stop()
	p.link.Stop()
}

// publishTimeout is how long a command waits for the broker before it leaves its messages to a running engine.
const publishTimeout = 5 * time.Second

// submitter requests executions and emits events, with the key for secret parameters. Without a
// publisher it only reads.
func (c *client) submitter(p *publisher) (*submit.Submitter, error) {
	keys, err := secret.NewKeyring(c.cfg.Security.EncryptionKey)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	var relay submit.Relay
	if p != nil {
		relay = p.relay
	}
	return submit.New(c.store, relay).WithKeyring(keys), nil
}

// awaitPublished waits until the broker has confirmed rows of the outbox, at most for
// publishTimeout.
func (c *client) awaitPublished(ctx context.Context, rows ...int64) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	submitter := submit.New(c.store, nil)
	for _, row := range rows {
		if err := submitter.AwaitPublished(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// within returns a context with a timeout, if there is one.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// noteStored says that a thing is stored, and what follows, if the broker did not confirm its
// message or no engine runs.
func (c *client) noteStored(ctx context.Context, p *publisher, published error, what, then string) {
	switch {
	case published != nil && ctx.Err() == nil:
		c.notef("%s is stored and will be published by a running engine: %s", what,
			awayBroker(c.cfg, p.link.Trouble()))
	case p.returned.Load():
		c.notef("no engine has run on this broker yet: %s is stored and %s when one does", what, then)
	default:
		if gone, err := c.monitor().EngineGone(ctx); err == nil && gone {
			c.notef("%s %s is stored and %s when one runs.", explain.NoEngine, strings.ToUpper(what[:1])+what[1:], then)
		}
	}
}

// configure makes the logger and reads the configuration of a command.
func (a *app) configure(ctx context.Context, level string) (*slog.Logger, *config.Config, error) {
	logger, err := a.logger(level)
	if err != nil {
		return nil, nil, err
	}
	a.loaded, err = a.load(ctx, logger)
	return logger, a.loaded, err
}
