package rehearsal

import (
	"context"
	"slices"

	"github.com/attune-go/attune/lab/query"
)

// catalogueSQL has a line for each object of a schema with its definition.
const catalogueSQL = `
	SELECT format('%s %s', CASE c.relkind WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence' WHEN 'm' THEN 'materialized view'
			ELSE 'table' END, c.relname)
		FROM pg_class c WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
	UNION ALL SELECT format('column %s.%s %s%s default %s storage %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
			CASE WHEN a.attnotnull THEN ' not null' END, coalesce(pg_get_expr(d.adbin, d.adrelid), 'none'), a.attstorage)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'p', 'v', 'm')
	UNION ALL SELECT format('options %s %s', c.relname, array_to_string(c.reloptions, ' ')) FROM pg_class c
		WHERE c.relnamespace = to_regnamespace($1) AND c.reloptions IS NOT NULL
	UNION ALL SELECT format('constraint %s on %s %s', k.conname, k.conrelid::regclass, pg_get_constraintdef(k.oid))
		FROM pg_constraint k WHERE k.connamespace = to_regnamespace($1) AND k.conrelid <> 0
	UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = $1
	UNION ALL SELECT format('trigger on %s %s enabled %s', c.relname, pg_get_triggerdef(t.oid), t.tgenabled)
		FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
		WHERE c.relnamespace = to_regnamespace($1) AND NOT t.tgisinternal
	UNION ALL SELECT format('function %s', pg_get_functiondef(p.oid)) FROM pg_proc p
		WHERE p.pronamespace = to_regnamespace($1) AND p.prokind IN ('f', 'p')
	UNION ALL SELECT format('label %s.%s', t.typname, e.enumlabel) FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid
		WHERE t.typnamespace = to_regnamespace($1)
	UNION ALL SELECT 'view ' || viewname || ' ' || definition FROM pg_views WHERE schemaname = $1
	ORDER BY 1`

// catalogue returns the objects of the schema.
func (r *copied) catalogue(ctx context.Context) ([]string, error) {
	return query.Column[string](ctx, r.pool, "read the catalogue", catalogueSQL, r.cfg.Schema)
}

// differences lists the lines that only one of two catalogues has.
func differences(before, after []string) []string {
	found := []string{}
	for _, line := range before {
		if !slices.Contains(after, line) {
			found = append(found, "gone: "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			found = append(found, "added: "+line)
		}
	}
	return found
}
