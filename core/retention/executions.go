package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// ExecutionsConfig configures the retention of executions.
type ExecutionsConfig struct {
	// Interval is the pause between ticks. Default 1 h.
	Interval time.Duration
	// Executions is the retention of ended executions with their attempts, workflow states and logs,
	// inquiries and secrets, and of enforcements. 0 keeps them for ever.
	Executions time.Duration
	// Events is the age up to which events still fire: a younger enforcement keeps its event from
	// firing again.
	Events time.Duration
	// OnlyOwn excludes the executions of an adopted schema.
	OnlyOwn bool
	// Audit is the retention of operator_audit. 0 keeps it for ever.
	Audit time.Duration
}

const (
	// rootWindow is the number of executions or enforcements that one statement reads.
	rootWindow = 2000
	// largeFamily is from how many executions on a family has a transaction of its own, with largeTimeout: it is
	// deleted as a whole.
	largeFamily  = 5000
	largeTimeout = 10 * time.Minute
)

// Executions deletes expired executions. It deletes an execution together with its children and retries,
// all of which must be expired. It keeps all of them while one holds a slot or an open row refers to it (a
// pending inquiry, a waiting retry, an undecided dead letter, a dispatch of a work queue).
type Executions struct {
	base

	cfg   ExecutionsConfig
	shape store.RetentionShapeRow // of the schema; every tick reads it
}

// NewExecutions builds the loop.
func NewExecutions(
	cfg ExecutionsConfig, st *store.Store, logger *slog.Logger, metrics *Metrics, loops *supervise.Metrics,
) *Executions {
	e := &Executions{cfg: cfg}
	e.base = newBase(supervise.LoopConfig{
		Name: "retention executions", Interval: cfg.Interval, Timeout: 30 * time.Minute, Jitter: 0.2, Tick: e.tick,
	}, st, logger, metrics, loops)
	return e
}

func (e *Executions) tick(ctx context.Context) error {
	return e.store.Locked(ctx, "retention executions", lockHolder, func() error {
		var errs []error
		if e.cfg.Executions > 0 {
			errs = append(errs, e.record(ctx))
		}
		if e.cfg.Audit > 0 {
			errs = append(errs, e.prune(ctx, "retention audit",
				removal{"operator audit", e.cfg.Audit, (*store.Queries).PruneOperatorAudit}))
		}
		return errors.Join(errs...)
	})
}

// record deletes executions, and then their leftover enforcements.
func (e *Executions) record(ctx context.Context) error {
	if e.cfg.OnlyOwn {
		adopted, err := e.store.SchemaAdopted(ctx)
		if err != nil || adopted {
			return wrapped(err, "read the origin of the schema")
		}
	}
	var err error
	if e.shape, err = e.store.RetentionShape(ctx); err != nil {
		return wrapped(err, "read the shape of the schema")
	}
	removed, kept, err := e.executions(ctx)
	e.metrics.removedOne("executions", removed)
	if removed > 0 || kept > 0 {
		e.logger.InfoContext(ctx, "Old executions deleted", "rows", removed, "refused_families", kept)
	}
	if err != nil {
		return fmt.Errorf("delete old executions after %d: %w", removed, err)
	}
	removed, err = e.enforcements(ctx)
	e.metrics.removedOne("enforcements", removed)
	if removed > 0 {
		e.logger.InfoContext(ctx, "Old enforcements deleted", "rows", removed)
	}
	return wrapped(err, "delete old enforcements")
}

// executions processes the executions from the oldest on. kept counts the families that a lock or a row of
// another table protects.
func (e *Executions) executions(ctx context.Context) (removed, kept int64, err error) {
	for after, more := int64(0), true; more; {
		var families []store.FindFamiliesRow
		err := e.indexed(ctx, pageTimeout, func(ctx context.Context, tx *store.Tx) error {
			found, err := tx.FindOldRoots(ctx, rootWindow, e.cfg.Executions.Seconds(), after)
			if err != nil {
				return err
			}
			after, more = found.Last, found.More
			families, err = e.find(ctx, tx, found.Roots)
			return err
		})
		if err != nil {
			return removed, kept, err
		}
		families = slices.DeleteFunc(families, func(f store.FindFamiliesRow) bool { return !f.Over })
		for len(families) > 0 {
			n, rows := 1, len(families[0].Members)
			for n < len(families) && rows+len(families[n].Members) <= pageRows {
				rows += len(families[n].Members)
				n++
			}
			gone, stays, err := e.families(ctx, families[:n])
			removed, kept, families = removed+gone, kept+stays, families[n:]
			if err != nil {
				return removed, kept, err
			}
		}
	}
	return removed, kept, nil
}

// find reads the families of roots, and which of them are expired.
func (e *Executions) find(ctx context.Context, tx *store.Tx, roots []int64) ([]store.FindFamiliesRow, error) {
	families, err := tx.FindFamilies(ctx, e.cfg.Executions.Seconds(), roots)
	if err != nil || !e.shape.WorkQueues { // some installations have no work queues
		return families, err
	}
	var members []int64
	for _, f := range families {
		members = append(members, f.Members...)
	}
	leased, err := tx.LeasedExecutions(ctx, members)
	if err != nil {
		return nil, err
	}
	for i := range families {
		holds := func(id int64) bool { return slices.Contains(families[i].Members, id) }
		families[i].Over = families[i].Over && !slices.ContainsFunc(leased, holds)
	}
	return families, nil
}

// families deletes some families in one transaction. If a row of one of them makes it fail or is locked, each gets
// a transaction of its own, and that one stays.
func (e *Executions) families(ctx context.Context, families []store.FindFamiliesRow) (removed, kept int64, err error) {
	removed, err = e.delete(ctx, families)
	switch {
	case err == nil:
		return removed, 0, nil
	case !store.Divisible(err):
		return 0, 0, err
	case len(families) == 1:
		level := slog.LevelDebug
		if store.ClassOf(err) == store.ClassFatal && !errors.Is(err, errBusy) {
			level = slog.LevelWarn
		}
		e.logger.Log(ctx, level, "Old execution kept", "execution_id", families[0].Root, "error", err)
		return 0, 1, nil
	}
	removed = 0
	for i := range families {
		gone, stays, err := e.families(ctx, families[i:i+1])
		removed, kept = removed+gone, kept+stays
		if err != nil {
			return removed, kept, err
		}
	}
	return removed, kept, nil
}

// delete locks the executions, reads their families again, and deletes the unchanged ones.
func (e *Executions) delete(ctx context.Context, families []store.FindFamiliesRow) (removed int64, err error) {
	var roots, ids []int64
	members := make(map[int64][]int64, len(families))
	for _, f := range families {
		roots, ids, members[f.Root] = append(roots, f.Root), append(ids, f.Members...), f.Members
	}
	timeout := pageTimeout
	if len(ids) >= largeFamily {
		timeout = largeTimeout
	}
	err = e.indexed(ctx, timeout, func(ctx context.Context, tx *store.Tx) error {
		removed = 0
		if _, err := tx.LockOldExecutions(ctx, ids); err != nil {
			return err
		}
		again, err := e.find(ctx, tx, roots)
		if err != nil {
			return err
		}
		ids := ids[:0:0]
		for _, f := range again {
			if f.Over && slices.Equal(f.Members, members[f.Root]) {
				ids = append(ids, f.Members...)
			}
		}
		removed, err = tx.DeleteOldExecutions(ctx, ids)
		return err
	})
	return removed, err
}

// enforcements processes the enforcements as executions does.
func (e *Executions) enforcements(ctx context.Context) (removed int64, err error) {
	older := max(e.cfg.Executions, e.cfg.Events+24*time.Hour)
	if !e.shape.Indexed { // without the index each would scan all executions
		return 0, nil
	}
	for after, more := int64(0), true; more; {
		err := e.indexed(ctx, pageTimeout, func(ctx context.Context, tx *store.Tx) error {
			page, err := tx.PruneEnforcements(ctx, pageRows, older.Seconds(), after)
			if err == nil {
				after, more = page.Last, page.More
				removed += page.Removed
			}
			return err
		})
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// indexed runs one transaction in which the planner uses only indexes: the tables are large, and few rows
// match.
func (e *Executions) indexed(
	ctx context.Context, timeout time.Duration, fn func(context.Context, *store.Tx) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return e.store.Tx(ctx, "retention executions", func(ctx context.Context, tx *store.Tx) error {
		if err := bound(ctx, tx, timeout); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT set_config(name, 'off', true)
			FROM unnest('{enable_seqscan,enable_hashjoin,enable_mergejoin}'::text[]) name`); err != nil {
			return fmt.Errorf("keep the planner to indexes: %w", err)
		}
		return busy(fn(ctx, tx))
	})
}
