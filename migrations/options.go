package migrations

import (
	"cmp"
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
	// VersionTable is the table of applied files in the schema.
	VersionTable = "attune_schema_version"

	// DefaultSchema is the schema used when Options.Schema is empty.
	DefaultSchema = "attune"

	defaultLockTimeout = 150 * time.Millisecond
	defaultWaitTimeout = 5 * time.Minute
)

// Options configures a migration.
type Options struct {
	// URL is the connection string of the database.
	URL string
	// Schema is the name of the schema, "attune" when empty.
	Schema string
	// LockTimeout bounds each wait for a table lock, during which all other statements on the table wait; 150 ms
	// when zero.
	LockTimeout time.Duration
	// WaitTimeout bounds the attempts of Up and Down to get one file's locks, 5 min when zero.
	WaitTimeout time.Duration
	// WithoutWorkQueues adopts a schema with work queues, which this engine does not dispatch.
	WithoutWorkQueues bool
	// HandBack lets the executor of the installation continue. Down calls it before it removes the additions
	// to an adopted schema. After an error Down removes nothing. Nil removes at once.
	HandBack func(ctx context.Context) error
	// Logger logs each applied file and each wait for a lock; may be nil.
	Logger *slog.Logger
}

var schemaName = regexp.MustCompile(`^[A-Za-z0-9_]{1,63}$`)

// ErrSchemaName reports an invalid schema name.
var ErrSchemaName = errors.New("schema name must be 1 to 63 letters, digits or underscores")

// ValidateSchema reports whether name may be used as database.schema.
func ValidateSchema(name string) error {
	if !schemaName.MatchString(name) {
		return fmt.Errorf("%q: %w", name, ErrSchemaName)
	}
	return nil
}

// SearchPath is the search_path of every connection to the schema.
func SearchPath(schema string) string {
	return pgx.Identifier{schema}.Sanitize() + ", public"
}

func (o Options) withDefaults() (Options, error) {
	o.Schema = cmp.Or(o.Schema, DefaultSchema)
	if err := ValidateSchema(o.Schema); err != nil {
		return o, err
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = defaultLockTimeout
	}
	if o.WaitTimeout <= 0 {
		o.WaitTimeout = defaultWaitTimeout
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o, nil
}

func (o Options) connConfig() (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return nil, AddressError(err)
	}
	KeepPassword(cfg, o.URL)
	if cfg.RuntimeParams == nil {
		cfg.RuntimeParams = map[string]string{}
	}
	cfg.RuntimeParams["search_path"] = SearchPath(o.Schema)
	cfg.RuntimeParams["application_name"] = applicationName
	cfg.RuntimeParams["lock_timeout"] = strconv.FormatInt(o.LockTimeout.Milliseconds(), 10)
	// for index builds, which block no writer
	cfg.RuntimeParams["attune.wait_timeout"] = strconv.FormatInt(o.WaitTimeout.Milliseconds(), 10)
	cfg.RuntimeParams["client_min_messages"] = "warning"
	// Defaults of the server, the database or the role must not end a migration, or change its transactions.
	cfg.RuntimeParams["default_transaction_isolation"] = "read committed"
	for _, timeout := range []string{
		"statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout",
	} {
		cfg.RuntimeParams[timeout] = "0"
	}
	return cfg, nil
}
