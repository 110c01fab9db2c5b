package migrations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// VersionTable records, inside the schema, which files were applied.
	VersionTable = "attune_schema_version"

	// DefaultSchema is the schema used when Options.Schema is empty.
	DefaultSchema = "attune"

	defaultLockTimeout = 150 * time.Millisecond
	defaultWaitTimeout = 5 * time.Minute
	firstAdditive      = 20
)

// Options says where the schema lives and how patient a migration is.
type Options struct {
	// URL is the connection string of the database.
	URL string
	// Schema is the name of the schema, "attune" when empty.
	Schema string
	// LockTimeout bounds each wait for a table lock, 150 ms when zero: for so long
	// everything else on the table waits behind it.
	LockTimeout time.Duration
	// WaitTimeout bounds how long Up and Down go on trying to get one file's locks,
	// 5 min when zero.
	WaitTimeout time.Duration
	// WithoutWorkQueues adopts a schema although its work queues, which this engine
	// does not dispatch, then wait.
	WithoutWorkQueues bool
	// HandBack is called by Down before it removes what was added to an adopted
	// schema, so that the executor of the installation can go on. An error of it
	// ends Down with nothing removed. Nil removes at once.
	HandBack func(ctx context.Context) error
	// Logger receives one line per applied file, and one for each lock that is
	// waited for; nil discards them.
	Logger *slog.Logger
}

var schemaName = regexp.MustCompile(`^[A-Za-z0-9_]{1,63}$`)

// ErrSchemaName reports a schema name that is empty, too long or holds
// anything but letters, digits and underscores.
var ErrSchemaName = errors.New("schema name must be 1 to 63 letters, digits or underscores")

// ValidateSchema reports whether name may be used as database.schema.
func ValidateSchema(name string) error {
	if !schemaName.MatchString(name) {
		return fmt.Errorf("%q: %w", name, ErrSchemaName)
	}
	return nil
}

// SearchPath is the search_path of every connection that works in schema.
func SearchPath(schema string) string {
	return pgx.Identifier{schema}.Sanitize() + ", public"
}

func (o Options) withDefaults() (Options, error) {
	if o.Schema == "" {
		o.Schema = DefaultSchema
	}
	if err := ValidateSchema(o.Schema); err != nil {
		return o, err
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = defaultLockTimeout
	}
	if o.WaitTimeout <= 0 {
		o.WaitTimeout = defaultWaitTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

func (o Options) connConfig() (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("parse database url: %w", err)
	}
	if cfg.RuntimeParams == nil {
		cfg.RuntimeParams = map[string]string{}
	}
	cfg.RuntimeParams["search_path"] = SearchPath(o.Schema)
	cfg.RuntimeParams["application_name"] = applicationName
	cfg.RuntimeParams["lock_timeout"] = strconv.FormatInt(o.LockTimeout.Milliseconds(), 10)
	// of building indexes, which blocks no writer
	cfg.RuntimeParams["attune.wait_timeout"] = strconv.FormatInt(o.WaitTimeout.Milliseconds(), 10)
	cfg.RuntimeParams["client_min_messages"] = "warning"
	return cfg, nil
}
