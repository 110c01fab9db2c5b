package worker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// A result waits for a database that temporarily cannot write: it is neither lost nor treated as refused.
func TestAResultOutlastsAServerThatCannotWrite(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{"the disk is full": "53100", "it became a standby": "25006"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			w := b.worker(t)
			tries, allow := testkit.Refuse(t, b.store, "execution", "NEW.status IN ('completed', 'failed')", code)
			id := b.schedule(t, w, b.core(t, "core.echo"), map[string]any{"message": "worth keeping"})
			b.dispatch(t, w, id)
			testkit.Eventually(t, func() bool { return tries() > 2 }, testkit.TestTimeout)
			allow()
			testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id).Terminal() },
				testkit.TestTimeout)
			require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, id))
			require.Equal(t, 1,
				testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE result::text LIKE '%worth keeping%'`))
		})
	}
}

// The database has started an execution, but its answer was lost: the repeated statement finds its own start, and the
// execution runs.
func TestAStartWhoseAnswerWasLostRuns(t *testing.T) {
	b := setup(t)
	w := b.worker(t)
	tries, _ := testkit.Refuse(t, b.store, "execution", "NEW.status = 'running'", "53100")
	id := b.schedule(t, w, b.core(t, "core.echo"), map[string]any{"message": "once"})
	b.dispatch(t, w, id)
	testkit.Eventually(t, func() bool { return tries() > 0 }, testkit.TestTimeout)
	tx := testkit.Begin(t, b.store) // at once for the worker, which repeats the statement
	_, err := tx.Exec(t.Context(), `DROP TRIGGER refuse_update ON execution`)
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `UPDATE execution SET status = 'running', started_at = now() WHERE id = $1`, id)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id).Terminal() }, testkit.TestTimeout)
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, id))
}

// The database has ended an execution, but its answer was lost: the repeated statement finds its own end, and the
// worker reports it.
func TestAnEndWhoseAnswerWasLostIsReported(t *testing.T) {
	b := setup(t)
	w := b.worker(t)
	tries, _ := testkit.Refuse(t, b.store, "execution", "NEW.status = 'completed'", "53100")
	id := b.schedule(t, w, b.core(t, "core.noop"), nil)
	b.dispatch(t, w, id)
	testkit.Eventually(t, func() bool { return tries() > 0 }, testkit.TestTimeout)
	tx := testkit.Begin(t, b.store) // at once for the worker, which repeats the statement
	_, err := tx.Exec(t.Context(), `DROP TRIGGER refuse_update ON execution`)
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `UPDATE execution SET status = 'completed', result = '{}' WHERE id = $1`, id)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	status, _ := b.await(t, id)
	require.Equal(t, lifecycle.StatusCompleted, status)
}
