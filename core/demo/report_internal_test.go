package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/testkit"
)

// TestTheDemoDoesNotPassWithWhatNobodyAskedFor: an end of no expected kind, a requested
// id without a row, a fault that did not happen and too few completed executions each
// fail the run, and the summary names them.
func TestTheDemoDoesNotPassWithWhatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	out := &bytes.Buffer{}
	d := &Demo{cfg: Config{Out: out, Duration: time.Minute}, store: testkit.Store(t), begun: time.Now()}
	action := testkit.Action(t, d.store, "demo.any")
	ended := func(ref string, status attune.Status, result string) int64 {
		e := testkit.Execution(t, d.store, testkit.ActionRow{ID: action.ID, Ref: ref}, func(r *testkit.ExecutionRow) {
			r.Status, r.Result = status, json.RawMessage(result)
		})
		return e.ID
	}
	var left queues
	summary := func() error {
		out.Reset()
		c, err := d.count(t.Context())
		require.NoError(t, err)
		return d.summary(t.Context(), c, nil, left)
	}
	d.requested = []int64{
		ended("core.echo", attune.StatusCompleted, `{}`),
		ended("core.fail", attune.StatusFailed, `{"error": "failing on purpose"}`),
		ended("shop.charge", attune.StatusFailed, `{"error": "the bank is away\n"}`),
	}
	require.NoError(t, summary(), out.String())
	require.Regexp(t, `on purpose +1\n +refused by the bank +1\n`, out.String())

	left.left = []string{"worker.7.packs: 1 ready, 0 unacknowledged"}
	require.ErrorIs(t, summary(), ErrLost)
	require.Contains(t, out.String(), "queue not empty       worker.7.packs: 1 ready")
	left.left = nil

	d.cfg.AtLeast = 2
	require.ErrorIs(t, summary(), ErrLost)
	require.Contains(t, out.String(), "not as promised       1 executions completed; at least 2 have to")
	d.cfg.AtLeast = 0

	d.requested = append(d.requested, 4711)
	require.ErrorIs(t, summary(), ErrLost)
	require.Contains(t, out.String(), "1 requested executions have no row, such as [4711]")
	d.requested = d.requested[:3]

	d.miss("kill -9 executor-1", context.DeadlineExceeded)
	require.ErrorIs(t, summary(), ErrLost)
	require.Contains(t, out.String(), "this fault did not happen: kill -9 executor-1: ")
	d.undone = nil

	stray := ended("core.echo", attune.StatusFailed, `{"error": "no workers available"}`)
	require.ErrorIs(t, summary(), ErrLost)
	require.Contains(t, out.String(), "1 executions ended as nobody asked for, such as ["+strconv.FormatInt(stray, 10)+"]: core.echo failed: no workers available")
	testkit.Exec(t, d.store, `insert into lost_work (cause, outcome, execution, attempt, action_ref) values ('worker_gone', 'failed', $1, 1, 'core.echo')`, stray)
	require.ErrorIs(t, summary(), ErrLost)
	require.Contains(t, out.String(), "were lost with a killed worker, and none was killed")
	d.workerKilled = true
	require.NoError(t, summary(), out.String())
}
