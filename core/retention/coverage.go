package retention

import (
	"context"
	"fmt"
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

// Coverage is how far ahead the partitions of one table exist.
type Coverage struct {
	Table string
	// Partitioned is false for a table without native partitions, as in an existing installation;
	// the other fields are then zero.
	Partitioned bool
	// Default is the default partition; empty if there is none, so that rows without a partition
	// are refused.
	Default string
	// Missing is how many of the wanted partitions do not exist.
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
       count(*) FILTER (WHERE NOT d.there),
       extract(epoch FROM greatest(coalesce(min(d.at) FILTER (WHERE NOT d.there), max(d.at) + d.step) - now(), '0'))::float8
FROM days d LEFT JOIN pg_partitioned_table p ON p.partrelid = d.parent
GROUP BY d.name, d.step, p.partrelid, p.partdefid
ORDER BY d.name`

// findGaps lists the missing partitions, the nearest first.
const findGaps = wanted + `
SELECT d.name || '_p' || to_char(d.at AT TIME ZONE 'UTC', 'YYYYMMDD'), d.at::text, (d.at + d.step)::text, d.at <= now()
FROM days d WHERE NOT d.there ORDER BY d.at`

// gap is a missing partition.
type gap struct {
	child, since, until string
	now                 bool // it contains the present time
}

func gaps(ctx context.Context, st *store.Store, t table) ([]gap, error) {
	rows, err := st.Pool().Query(ctx, findGaps, []string{t.name}, []int32{int32(t.step)}, []int32{int32(t.ahead)})
	if err != nil {
		return nil, fmt.Errorf("look for gaps in the partitions of %s: %w", t.name, err)
	}
	defer rows.Close()
	var all []gap
	for rows.Next() {
		var one gap
		if err := rows.Scan(&one.child, &one.since, &one.until, &one.now); err != nil {
			return nil, fmt.Errorf("look for gaps in the partitions of %s: %w", t.name, err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look for gaps in the partitions of %s: %w", t.name, err)
	}
	return all, nil
}

// ReadCoverage reads how far ahead the partitions of all tables exist, by the database's clock.
func ReadCoverage(ctx context.Context, st *store.Store) ([]Coverage, error) {
	var names []string
	var steps, aheads []int32
	for _, t := range tables() {
		names, steps, aheads = append(names, t.name), append(steps, int32(t.step)), append(aheads, int32(t.ahead))
	}
	rows, err := st.Pool().Query(ctx, readCoverage, names, steps, aheads)
	if err != nil {
		return nil, fmt.Errorf("read the partitions: %w", err)
	}
	defer rows.Close()
	var all []Coverage
	for rows.Next() {
		var c Coverage
		var ahead float64
		if err := rows.Scan(&c.Table, &c.Partitioned, &c.Default, &c.Missing, &ahead); err != nil {
			return nil, fmt.Errorf("read the partitions: %w", err)
		}
		if c.Partitioned {
			c.Ahead = time.Duration(ahead * float64(time.Second))
		} else {
			c.Missing = 0
		}
		all = append(all, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the partitions: %w", err)
	}
	return all, nil
}

// findOldPartitions lists the partitions that end before the retention period, the oldest first.
// regclass quotes the names.
const findOldPartitions = `
SELECT c.child::text FROM (
    SELECT i.inhrelid::regclass AS child, (regexp_match(pg_get_expr(k.relpartbound, k.oid), 'TO \(''([^'']*)''\)'))[1]::timestamptz AS until
    FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid JOIN pg_partitioned_table p ON p.partrelid = i.inhparent
    WHERE i.inhparent = to_regclass(quote_ident($1)) AND NOT i.inhdetachpending
) c
WHERE c.until <= now() - make_interval(secs => $2) ORDER BY c.until`

func oldPartitions(ctx context.Context, st *store.Store, name string, keep time.Duration) ([]string, error) {
	rows, err := st.Pool().Query(ctx, findOldPartitions, name, keep.Seconds())
	if err != nil {
		return nil, fmt.Errorf("look for old partitions of %s: %w", name, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var child string
		if err := rows.Scan(&child); err != nil {
			return nil, fmt.Errorf("look for old partitions of %s: %w", name, err)
		}
		all = append(all, child)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look for old partitions of %s: %w", name, err)
	}
	return all, nil
}
