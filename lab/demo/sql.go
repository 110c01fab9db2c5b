package demo

import (
	"context"
	"embed"
	"fmt"

	"github.com/attune-go/attune/lab/query"
)

//go:embed *.sql
var statements embed.FS

var sql = query.Statements[struct {
	Annex, AnnexWork, Counts, Demo, Earlier, Ends, Incident, IncidentEnds, Latency, Missing, Orders, Overrides, Past,
	Questions, Ready, Recent, Shop, Stray, Syncs, UnderWay, Unmirrored string
}](statements)

// args are the parameters of a statement.
type args = []any

// queryRow reads one row. what names the operation in an error.
func (d *Demo) queryRow(ctx context.Context, what, sql string, args args, into ...any) error {
	if err := d.store.Pool().QueryRow(ctx, sql, args...).Scan(into...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
