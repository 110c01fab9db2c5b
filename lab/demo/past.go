package demo

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
)

const (
	// historyMark marks every row of made-up history.
	historyMark = "made up by the demo"
	// pastSpan is what the dashboard shows. The demo makes history up if pastGap of it is missing.
	pastSpan = time.Hour
	pastGap  = 10 * time.Minute
)

// writePast fills the unrecorded part of the last hour with made-up history, so that the charts of the
// dashboard show something. It runs before the engine; executions of this run come after d.before.
func (d *Demo) writePast(ctx context.Context) error {
	var since time.Time
	var missing bool
	err := d.queryRow(ctx, "find unrecorded history", newestSQL, args{pastSpan, pastGap}, &since, &missing)
	if err != nil {
		return err
	}
	if missing {
		err = d.withProgress(ctx, "filling the charts with a made-up last hour (the summary leaves it out)",
			2*time.Second,
			func() error { return d.store.Tx(ctx, "made-up history", d.makeUp(since)) })
		if err != nil {
			return fmt.Errorf("make up the demo's history: %w", err)
		}
	}
	return d.queryRow(ctx, "find the newest execution", "SELECT coalesce(max(id), 0) FROM execution", nil, &d.before)
}

// makeUp writes the history since a time. Its rows are complete, so triggers are off.
func (d *Demo) makeUp(since time.Time) func(context.Context, *store.Tx) error {
	return func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `SELECT set_config('session_replication_role', 'replica', true), set_config('demo.mark', $1, true),
			set_config('demo.since', $2, true), set_config('demo.workers', $3, true)`,
			historyMark, since.Format(time.RFC3339Nano), strconv.Itoa(d.cfg.Workers))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, sql.Past)
		return err
	}
}

// newestSQL returns the time since which nothing is recorded, at most $1 ago, and whether it is longer
// ago than $2.
const newestSQL = `SELECT greatest(r.newest, now() - $1::interval), r.newest < now() - $2::interval
FROM (SELECT coalesce((SELECT created FROM execution ORDER BY id DESC LIMIT 1), '-infinity') AS newest) r`
