package testkit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// NowhereInDatabase fails if any row of any table has the text in any column, an
// encrypted one included: what is secret is nowhere in the clear.
func NowhereInDatabase(t testing.TB, st Pooler, text string) {
	t.Helper()
	ctx := t.Context()
	rows, err := st.Pool().Query(ctx, `
		SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`)
	require.NoError(t, err)
	var tables []string
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		tables = append(tables, name)
	}
	require.NoError(t, rows.Err())
	require.Greater(t, len(tables), 10, "there are tables to look at")
	for _, table := range tables {
		// bytea columns are shown in hex, so they are looked at as bytes too.
		query := fmt.Sprintf(`SELECT count(*) FROM %s x WHERE position($1 IN to_jsonb(x)::text) > 0
			OR position(encode(convert_to($1, 'UTF8'), 'hex') IN to_jsonb(x)::text) > 0`, table)
		require.Zero(t, Count(t, st, query, text), "%s is in %s", text, table)
	}
}
