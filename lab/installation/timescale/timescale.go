// Package timescale turns the tables of an installation into hypertables of a stand-in for TimescaleDB, for tests
// and rehearsals on servers without the extension.
//
// The stand-in has the catalogue views, the functions that an installation calls, and chunks as inheritance
// children. It refuses what the documentation of TimescaleDB says is refused: unique indexes without the time
// column, concurrent index builds, most changes of tables with compression, triggers with transition tables on rows,
// foreign keys to hypertables, and changes of compressed rows. It has no planner, no compression and no background
// jobs, and so it proves nothing about their speed, their locks or their versions.
package timescale

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/lab/installation"
)

//go:embed timescale.sql
var standIn string

// hypertables are the hypertables of an installation, with their chunks and the age of compression.
const hypertables = `
	SELECT public.create_hypertable(t.name::regclass, t.column_name, t.span, migrate_data => true)
	FROM (VALUES ('event', 'created', interval '1 day'), ('audit_event', 'created', '1 day'),
		('execution_history', 'time', '1 day'), ('worker_history', 'time', '7 days'),
		('sensor_process_history', 'time', '7 days')) t (name, column_name, span);
	SELECT public.add_compression_policy(relation, interval '7 days'), public.add_retention_policy(relation, interval '90 days')
	FROM _timescaledb_catalog.hypertable;
	SELECT public.remove_retention_policy(relation) FROM _timescaledb_catalog.hypertable;
	SELECT _timescaledb_internal.continuous_aggregate(v.name::regclass, v.hypertable::regclass)
	FROM (VALUES ('event_volume_hourly', 'event'), ('execution_status_hourly', 'execution_history'),
		('execution_throughput_hourly', 'execution_history'), ('worker_status_hourly', 'worker_history')) v (name, hypertable);
	SELECT public.compress_chunk(c) FROM _timescaledb_catalog.hypertable h, public.show_chunks(h.relation, interval '7 days') c`

// Convert creates the stand-in in the database and turns the tables of an installation into hypertables. It needs a
// superuser, and the schema first in the search_path of the connection. Chunks older than a week are compressed.
func Convert(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, sql := range []string{standIn, hypertables} {
			if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("convert the tables to hypertables: %.60s: %w", sql, err)
			}
		}
		return nil
	})
}

// Checksum returns a checksum of the stand-in and of the installation: programs with the same one build the same
// schema.
func Checksum() string {
	sum := sha256.Sum256([]byte(standIn + hypertables + installation.Checksum()))
	return hex.EncodeToString(sum[:6])
}
