package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// auditKept is the retention of audit_event, as in existing installations.
const auditKept = 90 * 24 * time.Hour

// PartitionsConfig configures the retention of partitioned tables.
type PartitionsConfig struct {
	// Interval is the pause between ticks. Default 1 h.
	Interval time.Duration
	// History is the retention of the histories of executions, workers and sensors, Events that of events.
	// Default 30 days each.
	History time.Duration
	Events  time.Duration
}

func (c PartitionsConfig) kept(table string) time.Duration {
	switch table {
	case "event":
		return c.Events
	case "audit_event":
		return auditKept
	default:
		return c.History
	}
}

// Partitions creates the partitions of the next days, and drops expired ones. It changes one at a
// time, in a transaction with a lock timeout of a second: a long read only postpones the change to
// the next tick. (Detaching concurrently would not wait, but is impossible for a table with a
// default partition.)
//
// Rows of the default partition move when the partition of their time is created, from today on,
// unless they are too many. The rest stays there and is deleted in pages when it expires. Tables
// without native partitions, such as hypertables, are left alone.
//
// Functions of the schema make these changes with the rights of their owner, so the engine's login
// needs no DDL. If it may not run them, the loop logs once what to do; the gap stays visible in
// attune_partitions_missing.
type Partitions struct {
	base

	cfg     PartitionsConfig
	refused map[string]bool // tables whose missing rights were logged; only the loop uses it
}

// NewPartitions builds the loop.
func NewPartitions(cfg PartitionsConfig, st *store.Store, logger *slog.Logger, metrics *Metrics,
	loops *supervise.Metrics,
) *Partitions {
	cfg.History = supervise.OrDefault(cfg.History, 30*24*time.Hour)
	cfg.Events = supervise.OrDefault(cfg.Events, 30*24*time.Hour)
	p := &Partitions{cfg: cfg, refused: map[string]bool{}}
	p.base = newBase(supervise.LoopConfig{
		Name: "partitions", Interval: cfg.Interval, Timeout: 10 * time.Minute, Jitter: 0.1, Tick: p.tick,
	}, st, logger, metrics, loops)
	return p
}

// tick handles one table after the other; an error of one does not stop the others.
func (p *Partitions) tick(ctx context.Context) error {
	before, err := ReadCoverage(ctx, p.store)
	if err != nil {
		return err
	}
	state := make(map[string]Coverage, len(before))
	for _, c := range before {
		state[c.Table] = c
	}
	var errs []error
	for _, t := range tables {
		if state[t.name].Partitioned {
			errs = append(errs, p.logRights(ctx, t, p.maintain(ctx, t, state[t.name])))
		}
	}
	return errors.Join(append(errs, p.measure(ctx))...)
}

// maintain creates missing partitions, drops expired ones, and prunes the default partition.
func (p *Partitions) maintain(ctx context.Context, t table, c Coverage) error {
	var errs []error
	if c.Default == "" {
		errs = append(errs, p.change(ctx, t, "default partition of "+t.name+" created",
			`SELECT attune_partition_default($1)`, t.name))
	}
	errs = append(errs, p.ahead(ctx, t, c.gaps))
	old, err := p.store.OldPartitions(ctx, t.name, p.cfg.kept(t.name).Seconds())
	errs = append(errs, wrapped(err, "find old partitions of "+t.name))
	for _, child := range old {
		err := p.change(ctx, t, "partition "+child+" dropped",
			`SELECT attune_partition_drop($1, $2::text::regclass)`, t.name, child)
		if err != nil {
			errs = append(errs, err)
			break // the next one needs the same locks
		}
		p.metrics.removedOne(t.name+" partitions", 1)
	}
	if c.Default != "" {
		errs = append(errs, p.pruneRest(ctx, t))
	}
	return errors.Join(errs...)
}

// mostMoved bounds the rows that move when their partition is created: meanwhile no transaction can
// write to the default partition. More rows stay there until they expire.
const mostMoved = 20_000

// errTooMany reports that a partition can no longer be created.
var errTooMany = fmt.Errorf("more than %d rows of its time are in the default partition, where they stay", mostMoved)

// ahead creates the missing partitions, the nearest first, each in a transaction of its own. An
// error of one does not stop the others.
func (p *Partitions) ahead(ctx context.Context, t table, missing []gap) error {
	var errs []error
	for _, one := range missing {
		created := false
		err := p.page(ctx, "create a partition", func(ctx context.Context, tx *store.Tx) (err error) {
			created, err = createPartition(ctx, tx, t, one)
			return err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("create partition %s: %w", one.child, err))
			if errors.Is(err, errBusy) || denied(err) {
				break // the next one needs the same lock and the same right
			}
			continue
		}
		if created {
			p.logger.InfoContext(ctx, "Partition created", "table", t.name, "partition", one.child)
		}
	}
	return errors.Join(errs...)
}

// createPartition creates one partition, unless another replica has created it since the check, and moves
// its rows from the default partition.
func createPartition(ctx context.Context, tx *store.Tx, t table, one gap) (created bool, err error) {
	var done *bool
	err = tx.QueryRow(ctx, `SELECT attune_partition_add($1, $2, $3, $4, $5, $6)`,
		t.name, t.column, one.child, one.since, one.until, mostMoved).Scan(&done)
	if err == nil && done == nil {
		err = errTooMany
	}
	return err == nil && *done, err
}

// change runs a statement in a transaction, unless another replica does.
func (p *Partitions) change(ctx context.Context, t table, what, sql string, args ...any) error {
	done := false // no other replica did
	err := p.page(ctx, "change partitions", func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, sql, args...)
		done = err == nil
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if done {
		p.logger.InfoContext(ctx, "Partitions changed", "table", t.name, "what", what)
	}
	return nil
}

// page is a page that one replica at a time runs.
func (p *Partitions) page(ctx context.Context, name string, fn func(ctx context.Context, tx *store.Tx) error) error {
	return page(ctx, p.store, name, func(ctx context.Context, tx *store.Tx) error {
		won, err := tx.TryLoopLock(ctx, "partitions")
		if err != nil || !won {
			return err
		}
		return fn(ctx, tx)
	})
}

// pruneRest deletes expired rows of the default partition.
func (p *Partitions) pruneRest(ctx context.Context, t table) error {
	for {
		removed := int64(0)
		err := p.page(ctx, "prune a default partition", func(ctx context.Context, tx *store.Tx) error {
			return tx.QueryRow(ctx, `SELECT attune_partition_prune($1, $2, make_interval(secs => $3), $4)`,
				t.name, t.column, p.cfg.kept(t.name).Seconds(), pageRows).Scan(&removed)
		})
		if err != nil {
			return fmt.Errorf("prune the default partition of %s: %w", t.name, err)
		}
		p.metrics.removedOne(t.name, removed)
		if removed < pageRows {
			return nil
		}
	}
}

// countedRest bounds the counted rows of a default partition.
const countedRest = 100_000

func (p *Partitions) measure(ctx context.Context) error {
	after, err := ReadCoverage(ctx, p.store)
	if err != nil {
		return err
	}
	for _, c := range after {
		rest := int64(0)
		if c.Default != "" {
			err := p.store.Pool().QueryRow(ctx, `SELECT attune_partition_rest($1, $2)`, c.Table,
				countedRest).Scan(&rest)
			if err != nil && !denied(err) { // missing rights were logged
				return fmt.Errorf("count the rows of %s: %w", c.Default, err)
			}
		}
		if c.Partitioned {
			p.metrics.ahead.WithLabelValues(c.Table).Set(c.Ahead.Hours() / 24)
			p.metrics.missing.WithLabelValues(c.Table).Set(float64(c.Missing))
			p.metrics.rest.WithLabelValues(c.Table).Set(float64(rest))
		}
		if c.Missing > 0 || rest > 0 {
			p.logger.WarnContext(ctx, "Partitions are missing, or rows are in the default partition",
				"table", c.Table, "missing", c.Missing, "rows_in_default", rest)
		}
	}
	return nil
}

func denied(err error) bool {
	_, denied := store.Denied(err)
	return denied
}

// logRights logs missing rights once in place of the error.
func (p *Partitions) logRights(ctx context.Context, t table, err error) error {
	switch {
	case err == nil:
		delete(p.refused, t.name)
		return nil
	case !denied(err):
		return err
	case !p.refused[t.name]:
		p.refused[t.name] = true
		p.logger.WarnContext(ctx, "Database login may not create and drop partitions", "table", t.name, "error", err,
			"fix", "the owner of the schema grants it: attune-executor roles apply engine --login NAME")
	}
	return nil
}
