package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const lockPoll = 50 * time.Millisecond

// session is one run under the advisory lock of a schema.
type session struct {
	opts Options
	db   *sql.DB
	conn *sql.Conn // holds the advisory lock
}

// withSession connects, takes the lock and runs fn. The lock ends with its connection, so a killed process
// releases it.
func withSession(ctx context.Context, opts Options, fn func(context.Context, *session) error) (err error) {
	opts, err = opts.withDefaults()
	if err != nil {
		return err
	}
	cfg, err := opts.connConfig()
	if err != nil {
		return err
	}
	// A commit that waits for the disk keeps its locks meanwhile; see durable.
	db := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET synchronous_commit = off")
		return err
	}))
	db.SetMaxIdleConns(0) // a failed file may leave settings in its connection
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	s := &session{opts: opts, db: db, conn: conn}
	defer func() { err = errors.Join(err, s.release(ctx)) }()
	if _, err := conn.ExecContext(ctx, "RESET synchronous_commit"); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	return fn(ctx, s)
}

// lock polls instead of waiting in the server: a waiting statement holds a snapshot, and a concurrent index
// build of the lock's holder would wait for that snapshot in turn.
func (s *session) lock(ctx context.Context) error {
	for {
		var locked bool
		err := s.conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", s.lockID()).Scan(&locked)
		if err != nil {
			return fmt.Errorf("take migration lock: %w", err)
		}
		if locked {
			return nil
		}
		if err := pause(ctx, lockPoll); err != nil {
			return fmt.Errorf("wait for migration lock: %w", err)
		}
	}
}

func (s *session) lockID() int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("attune migrations " + s.opts.Schema)) // a hash never fails
	return int64(h.Sum64())
}

func (s *session) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, unlockErr := s.conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", s.lockID())
	if unlockErr != nil {
		unlockErr = fmt.Errorf("release migration lock: %w", unlockErr)
	}
	return errors.Join(unlockErr, s.conn.Close())
}

func (s *session) createSchema(ctx context.Context) error {
	// CREATE SCHEMA needs a right that the owner of an existing schema may lack.
	var exists bool
	err := s.conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)",
		s.opts.Schema).Scan(&exists)
	if err != nil {
		return fmt.Errorf("find schema %s: %w", s.opts.Schema, err)
	}
	if exists {
		return nil
	}
	if _, err := s.conn.ExecContext(ctx,
		"CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{s.opts.Schema}.Sanitize()); err != nil {
		return fmt.Errorf("create schema %s: %w", s.opts.Schema, err)
	}
	return nil
}

// origin returns the origin of the schema, and whether it has a version table.
func (s *session) origin(ctx context.Context) (Origin, bool, error) {
	versions, err := s.hasTable(ctx, VersionTable)
	if err != nil {
		return OriginNone, false, err
	}
	marked, err := s.hasTable(ctx, "attune_schema_origin")
	if err != nil {
		return OriginNone, false, err
	}
	if marked {
		var origin Origin
		err := s.conn.QueryRowContext(ctx, "SELECT origin FROM attune_schema_origin").Scan(&origin)
		if err != nil {
			return OriginNone, false, fmt.Errorf("read schema origin: %w", err)
		}
		return origin, versions, nil
	}
	executions, err := s.hasTable(ctx, "execution")
	if err != nil {
		return OriginNone, false, err
	}
	if executions && !versions {
		return OriginAdopted, false, nil
	}
	return OriginNone, versions, nil
}

func (s *session) hasTable(ctx context.Context, name string) (bool, error) {
	var exists bool
	err := s.conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p'))`, s.opts.Schema, name).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("find table %s: %w", name, err)
	}
	return exists, nil
}

// durable commits once with the server's default durability, which also flushes all earlier commits.
func (s *session) durable(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, "UPDATE "+VersionTable+" SET is_applied = is_applied WHERE version_id = 0")
	if err != nil {
		return fmt.Errorf("write the schema version to disk: %w", err)
	}
	return nil
}

// scanRows reads all rows of a query. fields returns the destinations of a row.
func scanRows[T any](ctx context.Context, s *session, fields func(*T) []any, query string, args ...any) (
	all []T, err error,
) {
	rows, err := s.conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var one T
		if err := rows.Scan(fields(&one)...); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
