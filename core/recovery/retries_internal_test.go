package recovery

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// river 1318: retries that another program ended or deleted before their time do not stay due for
// ever, and do not hide due ones.
func TestRetriesEndedByOthersHideNoDueOnes(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	testkit.Exec(t, st,
		`INSERT INTO execution (action, action_ref, status) SELECT $1, 'pk.a', 'failed' FROM generate_series(1, 602)`, action.ID)
	testkit.Exec(t, st, `INSERT INTO execution (action, action_ref, retry_count, original_execution)
		SELECT $1, 'pk.a', 1, id FROM execution`, action.ID)
	testkit.Exec(t, st, `INSERT INTO execution_retry (failed, execution, reason, due)
		SELECT original_execution, id, 'x', now() - make_interval(secs => 1000 - id / 10) FROM execution WHERE retry_count = 1`)
	testkit.Exec(t, st, `UPDATE execution SET status = 'cancelled' WHERE retry_count = 1 AND original_execution <= 550`)
	testkit.Exec(t, st, `DELETE FROM execution WHERE retry_count = 1 AND original_execution BETWEEN 551 AND 600`)
	testkit.Exec(t, st, `UPDATE execution_retry SET due = now() + interval '1 hour' WHERE failed = 602`)
	var brought []int64
	r := NewRetries(st, func(_ context.Context, found Found) error {
		brought = append(brought, found.Requested...)
		return nil
	}, testkit.Logger(t), nil)
	require.NoError(t, r.tick(testkit.Context(t)))
	require.Len(t, brought, 1)
	require.Equal(t, 601, testkit.Count(t, st, `SELECT original_execution FROM execution WHERE id = $1`, brought[0]))
	require.Equal(t, 2, testkit.Count(t, st, `SELECT count(*) FROM execution_retry WHERE waiting`))

	// A postponed retry wakes the loop, but not after its end.
	require.NoError(t, r.Start(testkit.Context(t)))
	r.Soon(time.Hour)
	r.Soon(time.Millisecond)
	r.Stop()
	r.Soon(time.Millisecond)
}
