package demo

import (
	"context"
	_ "embed"
	"fmt"
)

var (
	//go:embed annex.sql
	annexSQL string
	//go:embed annex_work.sql
	annexWorkSQL string
	//go:embed counts.sql
	countsSQL string
	//go:embed demo.sql
	seedSQL string
	//go:embed earlier.sql
	earlierSQL string
	//go:embed ends.sql
	endsSQL string
	//go:embed incident.sql
	incidentSQL string
	//go:embed incident_ends.sql
	incidentEndsSQL string
	//go:embed latency.sql
	latencySQL string
	//go:embed missing.sql
	missingSQL string
	//go:embed orders.sql
	ordersSQL string
	//go:embed overrides.sql
	overridesSQL string
	//go:embed past.sql
	pastSQL string
	//go:embed questions.sql
	questionsSQL string
	//go:embed ready.sql
	readySQL string
	//go:embed recent.sql
	recentSQL string
	//go:embed shop.sql
	shopSQL string
	//go:embed stray.sql
	straySQL string
	//go:embed syncs.sql
	syncsSQL string
	//go:embed under_way.sql
	underWaySQL string
	//go:embed unmirrored.sql
	unmirroredSQL string
)

// args are the parameters of a statement.
type args []any

// queryRow reads one row. what names the operation in an error.
func (d *Demo) queryRow(ctx context.Context, what, sql string, args args, into ...any) error {
	if err := d.store.Pool().QueryRow(ctx, sql, args...).Scan(into...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// queryRows reads all rows. fields returns the destinations of a row.
func queryRows[T any](ctx context.Context, d *Demo, what, sql string, args args, fields func(*T) []any) ([]T, error) {
	rows, err := d.store.Pool().Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		var one T
		if err := rows.Scan(fields(&one)...); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		list = append(list, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return list, nil
}
