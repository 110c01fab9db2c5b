package retention

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/store"
)

// table is a table that is partitioned by time.
type table struct {
	name   string
	column string
	step   int // days in a partition
	ahead  int // days in advance for which partitions are created
}

// tables are the maintained tables.
func tables() []table {
	return []table{
		{"event", "created", 1, 7},
		{"execution_history", "time", 1, 7},
		{"audit_event", "created", 1, 7},
		{"worker_history", "time", 7, 14},
		{"sensor_process_history", "time", 7, 14},
	}
}

// Coverage describes the partitions of one table.
type Coverage struct {
	Table string
	// Partitioned is false for a table without native partitions, as in an existing installation;
	// the other fields are then zero.
	Partitioned bool
	// Default is the default partition. Without one it is empty, and the table refuses rows without a
	// partition.
	Default string
	// Missing is the number of missing partitions.
	Missing int
	// Ahead is the time until the first gap.
	Ahead time.Duration
}

// wanted reads the bounds from the catalog, so that every partition counts, whatever its name and
// origin.
const wanted = `
WITH want AS (
    SELECT w.name, make_interval(hours => 24 * w.step) AS step, w.ahead, to_regclass(quote_ident(w.name))::oid AS parent
    FROM unnest($1::text[], $2::int[], $3::int[]) w (name, step, ahead)
), made AS MATERIALIZED (
    SELECT i.inhparent AS parent,
           (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([^'']*)''\)'))[1]::timestamptz AS since,
           (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']*)''\)'))[1]::timestamptz AS until
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = ANY (ARRAY(SELECT w.parent FROM want w)) AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
), days AS (
    SELECT w.name, w.step, w.parent, g.at,
           EXISTS (SELECT FROM made m WHERE m.parent = w.parent
                   AND coalesce(m.since <= g.at, true) AND coalesce(m.until >= g.at + w.step, true)) AS there
    FROM want w, generate_series(date_bin(w.step, now(), '2000-01-03 00:00:00+00'), now() + make_interval(hours => 24 * w.ahead), w.step) g (at)
)`

const readCoverage = wanted + `
SELECT d.name, p.partrelid IS NOT NULL, coalesce(nullif(p.partdefid, 0)::regclass::text, ''),
       count(*) FILTER (WHERE NOT d.there AND p.partrelid IS NOT NULL),
       CASE WHEN p.partrelid IS NULL THEN interval '0'
            ELSE greatest(coalesce(min(d.at) FILTER (WHERE NOT d.there), max(d.at) + d.step) - now(), '0') END
FROM days d LEFT JOIN pg_partitioned_table p ON p.partrelid = d.parent
GROUP BY d.name, d.step, p.partrelid, p.partdefid
ORDER BY d.name`

// findGaps returns the missing partitions, the nearest first.
const findGaps = wanted + `
SELECT d.name || '_p' || to_char(d.at AT TIME ZONE 'UTC', 'YYYYMMDD'), d.at::text, (d.at + d.step)::text, d.at <= now()
FROM days d WHERE NOT d.there ORDER BY d.at`

// gap is a missing partition.
type gap struct {
	child, since, until string
	now                 bool // it contains the present time
}

func gaps(ctx context.Context, st *store.Store, t table) ([]gap, error) {
	return queryRows(ctx, st, "find gaps in the partitions of "+t.name, findGaps,
		[]any{[]string{t.name}, []int32{int32(t.step)}, []int32{int32(t.ahead)}},
		func(one *gap) []any { return []any{&one.child, &one.since, &one.until, &one.now} })
}

// ReadCoverage reads how far ahead the partitions of all tables exist, by the database's clock.
func ReadCoverage(ctx context.Context, st *store.Store) ([]Coverage, error) {
	var names []string
	var steps, aheads []int32
	for _, t := range tables() {
		names, steps, aheads = append(names, t.name), append(steps, int32(t.step)), append(aheads, int32(t.ahead))
	}
	return queryRows(ctx, st, "read the partitions", readCoverage, []any{names, steps, aheads},
		func(c *Coverage) []any { return []any{&c.Table, &c.Partitioned, &c.Default, &c.Missing, &c.Ahead} })
}

// findOldPartitions returns the partitions that end before the retention period, the oldest first. regclass
// quotes the names.
const findOldPartitions = `
SELECT c.child::text FROM (
    SELECT i.inhrelid::regclass AS child, (regexp_match(pg_get_expr(k.relpartbound, k.oid), 'TO \(''([^'']*)''\)'))[1]::timestamptz AS until
    FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid JOIN pg_partitioned_table p ON p.partrelid = i.inhparent
    WHERE i.inhparent = to_regclass(quote_ident($1)) AND NOT i.inhdetachpending
) c
WHERE c.until <= now() - make_interval(secs => $2) ORDER BY c.until`

func oldPartitions(ctx context.Context, st *store.Store, name string, keep time.Duration) ([]string, error) {
	return queryRows(ctx, st, "find old partitions of "+name, findOldPartitions, []any{name, keep.Seconds()},
		func(child *string) []any { return []any{child} })
}
