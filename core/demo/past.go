package demo

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
)

//go:embed past.sql
var pastSQL string

const (
	// historyMark stands in every row of made-up history.
	historyMark = "made up by the demo"
	// pastSpan is how much history the dashboard shows, pastGap how much of it has to
	// be missing before the demo makes some up.
	pastSpan = time.Hour
	pastGap  = 10 * time.Minute
)

// writePast fills the last hour with made-up history, as far back as nothing is recorded,
// so that the charts of the dashboard begin with something to show. Every row bears
// historyMark. It runs before the engine; executions of this run come after d.before.
func (d *Demo) writePast(ctx context.Context) error {
	var since time.Time
	var missing bool
	err := d.store.Pool().QueryRow(ctx, newestSQL, pastSpan, pastGap).Scan(&since, &missing)
	if err == nil && missing {
		err = d.patiently(ctx, "filling the charts with a made-up last hour (the summary leaves it out)", 2*time.Second,
			func() error {
				return d.makeUp(ctx, since)
			})
	}
	if err != nil {
		return fmt.Errorf("make up the demo's history: %w", err)
	}
	if err := d.store.Pool().QueryRow(ctx, "SELECT coalesce(max(id), 0) FROM execution").Scan(&d.before); err != nil {
		return fmt.Errorf("look for the newest execution: %w", err)
	}
	return nil
}

// makeUp writes the history since a time. Its rows are complete, so no trigger has
// anything to add.
func (d *Demo) makeUp(ctx context.Context, since time.Time) error {
	return d.store.Tx(ctx, "made-up history", func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `SELECT set_config('session_replication_role', 'replica', true), set_config('demo.mark', $1, true),
			set_config('demo.since', $2, true), set_config('demo.workers', $3, true)`,
			historyMark, since.Format(time.RFC3339Nano), strconv.Itoa(d.cfg.Workers))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, pastSQL)
		return err
	})
}

// newestSQL is since when nothing is recorded, at most $1 ago, and whether that is longer
// ago than $2.
const newestSQL = `SELECT greatest(r.newest, now() - $1::interval), r.newest < now() - $2::interval
FROM (SELECT coalesce((SELECT created FROM execution ORDER BY id DESC LIMIT 1), '-infinity') AS newest) r`
