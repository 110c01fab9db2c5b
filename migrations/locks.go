package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
)

const (
	applicationName = "attune-migrate"

	// retryPause lets the statements pass that queued behind an attempt.
	retryPause    = 300 * time.Millisecond
	maxRetryPause = time.Second
	// watchEvery is the interval of logs about a waiting index build.
	watchEvery = 5 * time.Second
)

// retryOnLock retries run after a lock timeout. Applied files stay applied, so a retry continues after them.
// It gives up when one file has waited for Options.WaitTimeout.
func (s *session) retryOnLock(
	ctx context.Context, run func(context.Context) ([]*goose.MigrationResult, error),
) ([]Step, error) {
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause(watching, watchEvery) == nil {
			s.reportWaiting(watching)
		}
	}()
	defer func() { stop(); <-done }()
	var steps []Step
	begin, wait := time.Now(), retryPause
	for attempt := 1; ; attempt++ {
		if err := s.dropBrokenIndexes(ctx); err != nil && !lockTimedOut(err) {
			return steps, err
		}
		results, err := run(ctx)
		if partial, ok := errors.AsType[*goose.PartialError](err); ok {
			results = partial.Applied
		}
		for _, r := range results {
			steps = append(steps, Step{Version: r.Source.Version, Name: baseName(r.Source.Path), Duration: r.Duration})
		}
		if err == nil || !lockTimedOut(err) {
			return steps, err
		}
		if len(results) > 0 {
			begin, wait = time.Now(), retryPause
		}
		holder := s.holder(ctx)
		if time.Since(begin) >= s.opts.WaitTimeout {
			return steps, fmt.Errorf("%w: gave up after %s and %d tries: %s: end that transaction, or try again later",
				err, time.Since(begin).Round(time.Second), attempt, holder)
		}
		s.opts.Logger.Warn("A migration waits for a lock and is tried again",
			append(holder.attributes(), "attempt", attempt)...)
		if err := pause(ctx, wait); err != nil {
			return steps, err
		}
		wait = min(wait*3/2, maxRetryPause)
	}
}

// lockTimedOut reports a lock timeout or a deadlock, after which the step has changed nothing.
func lockTimedOut(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "55P03" || pgErr.Code == "40P01")
}

// lockHolder is a transaction that blocks others.
type lockHolder struct {
	relation, application string
	pid                   int
	since                 time.Time
}

func (h *lockHolder) String() string {
	if h == nil {
		return "the transaction with the lock has ended meanwhile"
	}
	return fmt.Sprintf("a lock on %s is held by pid %d since %s, application %q",
		h.relation, h.pid, h.since.UTC().Format(time.RFC3339), h.application)
}

func (h *lockHolder) attributes() []any {
	if h == nil {
		return nil
	}
	return []any{
		"relation", h.relation, "held_by_pid", h.pid, "since", h.since.UTC().Format(time.RFC3339),
		"application", h.application,
	}
}

// holder returns the oldest transaction with a lock on a table of the schema, nil if none is older than an
// attempt. The result is only informative, so holder ignores errors.
func (s *session) holder(ctx context.Context) *lockHolder {
	var h lockHolder
	err := s.conn.QueryRowContext(ctx, `SELECT c.relname, coalesce(a.application_name, ''), a.pid, a.xact_start
		FROM pg_locks l
		JOIN pg_class c ON c.oid = l.relation AND c.relkind IN ('r', 'p')
		JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		  AND n.nspname = $1 AND a.application_name <> $2 AND a.xact_start < now() - make_interval(secs => $3::float8)
		ORDER BY a.xact_start, (c.relname = 'execution') DESC, c.relname LIMIT 1`,
		s.opts.Schema, applicationName, s.opts.LockTimeout.Seconds()).Scan(&h.relation, &h.application, &h.pid,
		&h.since)
	if err != nil {
		return nil
	}
	return &h
}

// reportWaiting logs the transaction for which an index build, one long statement, waits.
func (s *session) reportWaiting(ctx context.Context) {
	var h lockHolder
	err := s.db.QueryRowContext(ctx, `SELECT coalesce(left(w.query, 200), ''), coalesce(b.application_name, ''), b.pid,
			coalesce(b.xact_start, b.backend_start)
		FROM pg_stat_activity w
		CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS p (pid)
		JOIN pg_stat_activity b ON b.pid = p.pid
		WHERE w.datname = current_database() AND w.application_name = $1 AND w.wait_event_type = 'Lock'
		ORDER BY b.xact_start LIMIT 1`, applicationName).Scan(&h.relation, &h.application, &h.pid, &h.since)
	if err == nil {
		s.opts.Logger.Warn("A migration waits for the end of a transaction", "statement", h.relation, "held_by_pid",
			h.pid,
			"since", h.since.UTC().Format(time.RFC3339), "application", h.application)
	}
}

// dropBrokenIndexes drops the indexes of interrupted builds: IF NOT EXISTS would accept them.
func (s *session) dropBrokenIndexes(ctx context.Context) error {
	names, err := scanRows(ctx, s, func(name *string) []any { return []any{name} }, `SELECT c.relname FROM pg_index i
		JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE NOT i.indisvalid AND n.nspname = $1 AND c.relkind = 'i' AND c.relname LIKE 'attune\_%'`, s.opts.Schema)
	if err != nil {
		return fmt.Errorf("find interrupted index builds: %w", err)
	}
	for _, name := range names {
		if _, err := s.conn.ExecContext(ctx, "DROP INDEX IF EXISTS "+pgx.Identifier{name}.Sanitize()); err != nil {
			return fmt.Errorf("drop the interrupted index %s: %w", name, err)
		}
	}
	return nil
}
