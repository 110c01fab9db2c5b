package cancellation_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// The poll runs every few seconds, and a walk over a tree many times. Neither may read all executions to find a
// few, whether or not the statistics have their number, and with generic and custom plans.
func TestStatementsFindRowsByKey(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(t, b.store, `INSERT INTO execution (action, action_ref, status, parent)
		SELECT $1, $2, CASE WHEN i % 10 = 0 THEN 'requested' ELSE 'completed' END::execution_status_enum,
			CASE WHEN i > 1000 AND i % 3 = 0 THEN i % 900 + 1 END
		FROM generate_series(1, 30000) i`, b.action.ID, b.action.Ref)
	testkit.Exec(t, b.store, `INSERT INTO execution_cancel (execution) SELECT id FROM execution WHERE id % 20 = 0`)
	testkit.Exec(t, b.store, `INSERT INTO execution_retry (failed, execution, reason, due) SELECT id, id + 1, 'x', now() FROM execution WHERE id % 7 = 0`)
	check := func(state string) {
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			for _, statement := range [][2]string{
				{store.CancelTargets, "'{10,20,30,77}'"},
				{store.CancelFacts, "90, '{10,20,30,40}'"},
				{store.FindCancels, "0, 200"},
				{store.CancelChildren, "'{10,20,30,40}', false, 1000"},
				{store.CancelChildren, "'{10,20,30,40}', true, 1000"},
			} {
				plan := b.plan(t, mode, statement[0], statement[1])
				for _, table := range []string{"execution ", "execution_retry "} {
					require.NotContains(t, plan, "Seq Scan on "+table, "%s, %s", state, mode)
				}
				require.NotContains(t, plan, "Index Cond: (id > ",
					"children are not looked for along the primary key: %s, %s", state, mode)
			}
		}
	}
	check("the statistics know nothing")
	testkit.Exec(t, b.store, `ANALYZE`)
	check("the statistics know all")
}

func (b *bundle) plan(t *testing.T, mode, sql, args string) string {
	t.Helper()
	var lines []string
	err := pgx.BeginFunc(t.Context(), b.store.Pool(), func(tx pgx.Tx) error {
		for _, setup := range []string{
			"DEALLOCATE ALL", "SET LOCAL plan_cache_mode = " + mode,
			"PREPARE it AS " + sql,
		} {
			if _, err := tx.Exec(t.Context(), setup, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		rows, err := tx.Query(t.Context(), "EXPLAIN EXECUTE it("+args+")", pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err
		}
		lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	require.NoError(t, err, sql)
	return strings.Join(lines, "\n")
}
