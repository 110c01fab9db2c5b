package engine_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// The budget of one execution, including its request and its worker. Lower it with the measured costs: they were
// 16.1, 3.0 and 7.0 when it was set, with the loops of the engine running.
const (
	budgetStatements = 18.0
	budgetCommits    = 3.5 // of transactions with more than one statement
	budgetTrips      = 7.2
	// The row of an execution is written at its request, its grant, its start and its end.
	budgetInserts = 1
	budgetUpdates = 3
)

// budgetWAL is how many bytes of WAL one execution may cost, without images of whole
// pages, which depend on when the server had its last checkpoint.
const budgetWAL = 6300.0 // 5,750 when it was set

// requireWAL counts the records that executions make. Loops of the engine write too, the more
// the longer it takes: the least of three series counts.
func requireWAL(t *testing.T, a *account) {
	t.Helper()
	if !a.inspectsWAL(t) {
		return
	}
	least := math.Inf(1)
	for series := 0; series < 3 && least > budgetWAL; series++ {
		least = min(least, walOf(t, a))
	}
	require.NotZero(t, least)
	if !testkit.Adopted() { // existing installations have more indexes and triggers of their own
		require.LessOrEqual(t, least, budgetWAL)
	}
}

// walOf is how many bytes of WAL an execution costs, and logs of which records they are.
func walOf(t *testing.T, a *account) (total float64) {
	t.Helper()
	const executions = 10
	began := a.position(t)
	for range executions {
		a.run(t)
	}
	var text strings.Builder
	for _, r := range a.records(t, began, a.position(t)) {
		total += r.Bytes / executions
		fmt.Fprintf(&text, "\n%6.0f bytes in %4.1f %s", r.Bytes/executions, r.Count/executions, r.Kind)
	}
	t.Logf("an execution costs %.0f bytes of WAL:%s", total, text.String())
	return total
}

// Executions run one after the other, from request to released slot, and keep the budget. The statements of an idle
// engine and worker are measured and subtracted.
func TestAnExecutionKeepsItsBudgetOfStatements(t *testing.T) {
	a := newAccount(t)
	a.engine(t)
	a.worker(t, "w1", 5)
	a.warmUp(t)
	requireWAL(t, a)
	for _, sql := range []string{
		`CREATE TABLE written (operation text)`,
		`CREATE FUNCTION note_written() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
			BEGIN INSERT INTO written VALUES (TG_OP); RETURN NULL; END $$`,
		`CREATE TRIGGER note_written AFTER INSERT OR UPDATE ON execution FOR EACH ROW EXECUTE FUNCTION note_written()`,
	} {
		testkit.Exec(t, a.direct, sql)
	}
	// A busy machine adds to the statements of loops: the best of three series counts.
	for series := 1; ; series++ {
		each := budgetSeries(t, a)
		if each.statements <= budgetStatements && each.commits <= budgetCommits && each.trips <= budgetTrips {
			return
		}
		require.Less(t, series, 3, "an execution costs more than %.1f statements, %.1f commits and %.1f round trips",
			budgetStatements, budgetCommits, budgetTrips)
	}
}

// budgetSeries returns the cost of one execution without the statements of an idle engine.
func budgetSeries(t *testing.T, a *account) spent {
	t.Helper()
	const executions = 60
	a.published(t) // so that no rows of earlier executions are deleted during the count
	testkit.Exec(t, a.direct, `TRUNCATE written`)
	a.meter.forget()
	began, before := time.Now(), a.meter.read()
	for range executions {
		a.run(t)
	}
	a.published(t)
	took, cost := time.Since(began), a.meter.read().minus(before)
	most := a.meter.most(executions)
	before = a.meter.read()
	time.Sleep(took) // measures the time in which nothing is to be done
	each := cost.minus(a.meter.read().minus(before)).times(1.0 / executions)
	// Published rows of the outbox are deleted by the next execution if it comes soon, and
	// by a statement of the relay otherwise: how many is a matter of pace.
	deletions := float64(a.meter.names()["DeleteOutbox"]) / executions
	require.LessOrEqual(t, deletions, 2.0, "one for the rows of a transaction")
	each = each.minus(spent{statements: deletions, trips: deletions})
	t.Logf("an execution costs %.1f statements, %.1f commits, %.1f round trips, and %.1f deletions of its outbox rows",
		each.statements, each.commits, each.trips, deletions)
	t.Logf("what is asked while nothing is to be done included:%s", most)
	for operation, budget := range map[string]int{"INSERT": budgetInserts, "UPDATE": budgetUpdates} {
		require.Equal(t, executions*budget,
			testkit.Count(t, a.direct, `SELECT count(*) FROM written WHERE operation = $1`, operation), operation)
	}
	return each
}
