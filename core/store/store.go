package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Store is a pool of connections to one schema. Its methods and the generated queries it embeds are
// safe for concurrent use.
type Store struct {
	*Queries
	pool   *pgxpool.Pool
	cfg    Config
	logger *slog.Logger
}

// Open prepares a pool. It does not connect: Ping or the first query finds an unreachable server. A
// nil logger discards.
func Open(ctx context.Context, cfg Config, logger *slog.Logger) (*Store, error) {
	return open(ctx, cfg, logger, func(*pgxpool.Config) {})
}

func open(ctx context.Context, cfg Config, logger *slog.Logger, adjust func(*pgxpool.Config)) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	poolConfig, err := cfg.pool()
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	adjust(poolConfig)
	tracer := &watch{readOnly: cfg.ReadOnly}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if cfg.LogStatements {
		tracer.log = logger
	}
	poolConfig.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(ctx, poolConfig)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	tracer.pool.Store(pool)
	return &Store{Queries: New(pool), pool: pool, cfg: cfg, logger: logger}, nil
}

// Ping reports whether the server answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping database: %w", classified(err))
	}
	return nil
}

// Close waits for connections in use and ends the pool. It may be called twice.
func (s *Store) Close() { s.pool.Close() }

// Pool is the pool itself, for the few statements that need it.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Schema is the name of the schema that the store works in.
func (s *Store) Schema() string { return s.cfg.Schema }

// Relay is the relay that owns the outbox rows committed through this store; zero without one.
func (s *Store) Relay() uuid.UUID { return s.cfg.Relay }

// Login is the login of the connections.
func (s *Store) Login() string { return s.pool.Config().ConnConfig.User }

// ReadOnly reports whether the store refuses to write.
func (s *Store) ReadOnly() bool { return s.cfg.ReadOnly }

// BeginTrial is the query of this name. Its error is errors.ErrUnsupported if the table is missing, or a right to it.
func (s *Store) BeginTrial(ctx context.Context, fingerprint, queue string) (age float64, err error) {
	age, err = s.Queries.BeginTrial(ctx, fingerprint, queue)
	if ClassOf(err) == ClassInstallation {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return age, err
}

// classified marks an error of connecting or of a lost connection, which has no SQLSTATE.
func classified(err error) error {
	if err == nil || ClassOf(err) != ClassFatal {
		return err
	}
	return &lostError{err: err}
}

// lostError is a failure of the connection itself.
type lostError struct{ err error }

func (e *lostError) Error() string { return "connection to database: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// OutcomeUnknownError reports a transaction whose connection was lost after COMMIT was sent: it may
// be committed or not.
type OutcomeUnknownError struct{ Err error }

// Error says that the outcome is unknown, and why.
func (e *OutcomeUnknownError) Error() string {
	return "outcome of commit unknown: " + e.Err.Error()
}

// Unwrap returns the failure of the connection.
func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

func isOutcomeUnknown(err error) bool {
	var unknown *OutcomeUnknownError
	return errors.As(err, &unknown)
}
