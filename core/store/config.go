package store

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/migrations"
)

// Configured is the access of a program to the configured database.
func Configured(cfg *config.Config, program string) Config {
	db := cfg.Database
	return Config{
		URL: db.URL, Login: cfg.Login("database.url"), Schema: db.Schema, ConnectTimeout: db.ConnectTimeout,
		IdleTimeout: db.IdleTimeout, LogStatements: db.LogStatements, ApplicationName: cfg.Named(program),
	}
}

// Config configures the database access.
type Config struct {
	// URL is the connection string.
	URL string
	// Login returns the user and the password for the next connection; nil means those of URL.
	Login func() (user, password string)
	// Schema holds the tables; "attune" when empty.
	Schema string
	// MaxConnections bounds the pool; 10 when zero.
	MaxConnections int32
	// MinConnections is how many connections are kept open when idle, at most MaxConnections.
	MinConnections int32
	// IdleTimeout is how long an unused connection is kept; 30 min when zero.
	IdleTimeout time.Duration
	// LogStatements logs every statement at level debug, without its values.
	LogStatements bool
	// ConnectTimeout bounds one attempt to connect; 30 s when zero.
	ConnectTimeout time.Duration
	// ApplicationName is what the server shows for the connections; "attune" when empty.
	ApplicationName string
	// Relay is the relay that publishes the messages committed through this store, and owns those
	// rows of the outbox; zero without one.
	Relay uuid.UUID
	// ReadOnly makes every transaction read only, so that a dashboard cannot change anything by
	// accident.
	ReadOnly bool
	// StatementTimeout bounds every statement; none when zero.
	StatementTimeout time.Duration
	// HotPath is for the pool of the engine's own loops: the planner uses indexes and generic plans
	// only, because queue tables are analysed while they are empty. Free-form queries must not use
	// such a pool.
	HotPath bool
}

const idleTimeout = 10 * time.Second

// hotLockTimeout is how long a batch waits for a lock. Batches hold locks for milliseconds; a
// longer holder is another program.
const hotLockTimeout = 6 * time.Second

func (c Config) withDefaults() (Config, error) {
	if c.Schema == "" {
		c.Schema = migrations.DefaultSchema
	}
	if err := migrations.ValidateSchema(c.Schema); err != nil {
		return c, err
	}
	if c.MaxConnections <= 0 {
		c.MaxConnections = 10
	}
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = 30 * time.Second
	}
	if c.ApplicationName == "" {
		c.ApplicationName = "attune"
	}
	return c, nil
}

func (c Config) pool() (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, migrations.AddressError(err)
	}
	migrations.KeepPassword(cfg.ConnConfig, c.URL)
	cfg.MaxConns = c.MaxConnections
	cfg.MinConns = min(c.MinConnections, c.MaxConnections)
	if c.IdleTimeout > 0 {
		cfg.MaxConnIdleTime = c.IdleTimeout
	}
	cfg.ConnConfig.ConnectTimeout = c.ConnectTimeout
	params := cfg.ConnConfig.RuntimeParams
	params["search_path"] = migrations.SearchPath(c.Schema)
	params["application_name"] = c.ApplicationName
	params["jit"] = "off"
	// Defaults of the server, the database or the role must not change what a transaction means, or end it.
	params["default_transaction_isolation"] = "read committed"
	params["default_transaction_deferrable"] = "off"
	params["statement_timeout"] = milliseconds(c.StatementTimeout)
	params["lock_timeout"] = "0"
	params["idle_session_timeout"] = "0"
	if c.Relay != uuid.Nil {
		params["attune.relay"] = c.Relay.String()
	}
	// A client that hangs in the middle of a transaction loses it and its locks: rows, and the
	// locks by which loops take turns.
	params["idle_in_transaction_session_timeout"] = milliseconds(idleTimeout)
	if c.HotPath {
		params["lock_timeout"] = milliseconds(hotLockTimeout)
		params["enable_seqscan"] = "off"
		params["enable_hashjoin"] = "off"
		params["enable_mergejoin"] = "off"
		params["plan_cache_mode"] = "force_generic_plan"
	}
	cfg.AfterConnect = c.prepare
	cfg.BeforeConnect = c.login
	cfg.PrepareConn = retryTypes
	return cfg, nil
}

// login sets the current login, for a password that was changed while this process runs.
func (c Config) login(_ context.Context, to *pgx.ConnConfig) error {
	if c.Login == nil {
		return nil
	}
	user, password := c.Login()
	to.User, to.Password = cmp.Or(user, to.User), cmp.Or(password, to.Password)
	return nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
