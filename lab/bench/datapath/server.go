package datapath

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/migrations"
)

// schema is the schema of the measured tables.
const schema = migrations.DefaultSchema

// server is the measured PostgreSQL. Every measurement gets a fresh database, cloned from a migrated
// template.
type server struct {
	url      string
	admin    *pgx.Conn
	template string
	borrowed bool // the template belongs to the caller
	made     int
	broker   int // its process, 0 if it is not measured
	logger   *slog.Logger
}

// openServer connects and creates the template.
func openServer(ctx context.Context, databaseURL string, logger *slog.Logger) (*server, error) {
	admin, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	s := &server{
		url: databaseURL, admin: admin, logger: logger,
		template: fmt.Sprintf("attune_datapath_%08x", rand.Uint32()), //nolint:gosec // a name
	}
	if err := s.execute(ctx, "DROP DATABASE IF EXISTS "+s.template+" WITH (FORCE)",
		"CREATE DATABASE "+s.template+" TEMPLATE template0"); err != nil {
		s.close(ctx)
		return nil, err
	}
	at, err := s.urlOf(s.template)
	if err == nil {
		_, err = migrations.Up(ctx, migrations.Options{URL: at, Schema: schema, Logger: logger})
	}
	if err != nil {
		s.close(ctx)
		return nil, fmt.Errorf("migrate the template: %w", err)
	}
	return s, nil
}

// execute runs statements that name databases, which cannot be parameters.
func (s *server) execute(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if _, err := s.admin.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

func (s *server) close(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	defer func() { _ = s.admin.Close(ctx) }() // nothing is pending on it
	if s.borrowed {
		return
	}
	if err := s.execute(ctx, "DROP DATABASE IF EXISTS "+s.template+" WITH (FORCE)"); err != nil {
		s.logger.WarnContext(ctx, "Failed to drop the template", "error", err)
	}
}

func (s *server) urlOf(database string) (string, error) {
	u, err := url.Parse(s.url)
	if err != nil {
		return "", fmt.Errorf("read the address of the server: %w", err)
	}
	u.Path = "/" + database
	return u.String(), nil
}

// fresh creates a database. drop drops it.
func (s *server) fresh(ctx context.Context) (at string, drop func(), err error) {
	s.made++
	name := fmt.Sprintf("%s_%d", s.template, s.made)
	if at, err = s.urlOf(name); err != nil {
		return "", nil, err
	}
	if err := s.execute(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)",
		"CREATE DATABASE "+name+" TEMPLATE "+s.template); err != nil {
		return "", nil, err
	}
	return at, func() {
		ctx := context.WithoutCancel(ctx)
		if err := s.execute(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			s.logger.WarnContext(ctx, "Failed to drop a database", "database", name, "error", err)
		}
	}, nil
}

// counters are the database's counters. They are complete after the end of its other sessions.
type counters struct {
	commits, deadlocks     int64
	updates, hot           int64 // of execution
	queueUpdates, queueHot int64 // of execution_admission_state
}

// countLast reads the counters of a database after the end of the other sessions, which report theirs
// last.
func (s *server) countLast(ctx context.Context, at string) (c counters, err error) {
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		return c, fmt.Errorf("connect to read the counters: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it only read
	for deadline := time.Now().Add(5 * time.Second); ; {
		var others int
		if err := conn.QueryRow(ctx, othersSQL).Scan(&others); err != nil {
			return c, fmt.Errorf("count other sessions: %w", err)
		}
		if others == 0 || time.Now().After(deadline) || !supervise.Sleep(ctx, 10*time.Millisecond) {
			break
		}
	}
	return s.count(ctx, conn)
}

// count reads the present counters.
func (s *server) count(ctx context.Context, conn *pgx.Conn) (c counters, err error) {
	err = conn.QueryRow(ctx, countersSQL, schema).Scan(&c.commits, &c.deadlocks, &c.updates, &c.hot, &c.queueUpdates,
		&c.queueHot)
	if err != nil {
		return c, fmt.Errorf("read the counters: %w", err)
	}
	return c, nil
}

// wal returns the position at the end of the log.
func (s *server) wal(ctx context.Context) (bytes int64, err error) {
	if err := s.admin.QueryRow(ctx, walSQL).Scan(&bytes); err != nil {
		return 0, fmt.Errorf("read the position of the log: %w", err)
	}
	return bytes, nil
}
