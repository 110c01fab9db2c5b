package scheduler_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// asking is a step that only chooses a worker.
type asking struct {
	candidate admission.Candidate
	fence     bool
	except    int64

	verdict *placement.Verdict
}

func (asking) Executions() []int64 { return nil }

func (a asking) Plan(ctx context.Context, plan *scheduler.Plan) error {
	return plan.LoadRules(ctx, []int64{a.candidate.ActionID}, nil)
}

func (a asking) Apply(batch *scheduler.Batch) {
	*a.verdict = batch.Choose(a.candidate, a.fence, a.except)
}

// A batch finds another worker for an execution that holds its slot: with fencing if required, and not the worker
// that it leaves. It ends no execution.
func TestABatchFindsAnotherWorker(t *testing.T) {
	b := setup(t)
	fences := map[string]any{"attempt_fence": true}
	left := testkit.Worker(t, b.store, "left", announces(1, fences))
	other := testkit.Worker(t, b.store, "other", announces(1, fences))
	plain := testkit.Worker(t, b.store, "plain", announces(9, inZone("a")))
	action := testkit.Action(t, b.store, "pk.a")
	choose := func(a asking) placement.Verdict {
		a.verdict = &placement.Verdict{}
		if a.candidate.ActionID == 0 {
			a.candidate.ActionID, a.candidate.ActionRef = action.ID, action.Ref
		}
		_, err := b.replica(t).Run(testkit.Context(t), a)
		require.NoError(t, err)
		return *a.verdict
	}
	to := func(worker int64) placement.Verdict {
		return placement.Verdict{Outcome: placement.Placed, Worker: worker}
	}
	require.Equal(t, to(other.ID), choose(asking{fence: true, except: left.ID}))
	require.Equal(t, to(plain.ID),
		choose(asking{candidate: admission.Candidate{Avoid: []int64{left.ID}}, except: other.ID}))
	require.Equal(t, to(plain.ID),
		choose(asking{
			candidate: admission.Candidate{Placement: placement.Own{Selector: []byte(`{"zone": "a"}`)}},
			except:    left.ID,
		}))

	none := choose(asking{
		candidate: admission.Candidate{Placement: placement.Own{Selector: []byte(`{"zone": "a"}`)}}, fence: true,
		except: left.ID,
	})
	require.Equal(t, placement.Incompatible, none.Outcome)
	require.Equal(t, "no compatible worker: 1 live worker does not refuse dispatches of older attempts; "+
		"1 lacks the label zone=a; 1 is where it is to be taken from", none.Reason)
	bad := choose(asking{candidate: admission.Candidate{Placement: placement.Own{Selector: []byte(`[]`)}}})
	require.Equal(t, placement.Incompatible, bad.Outcome)
	require.Contains(t, bad.Reason, "no worker fits: execution.worker_selector: it must be an object")
	gone := choose(asking{candidate: admission.Candidate{ActionID: 4711, ActionRef: "pk.gone"}})
	require.Equal(t, placement.Verdict{Outcome: placement.Incompatible, Reason: "action not found"}, gone)

	testkit.Exec(t, b.store, `UPDATE worker_load SET assigned = 3 WHERE worker = $1`, other.ID)
	require.Equal(t, placement.Busy, choose(asking{fence: true, except: left.ID}).Outcome)
	testkit.Exec(t, b.store, `UPDATE worker SET draining = true WHERE id = $1`, other.ID)
	absent := choose(asking{fence: true, except: left.ID})
	require.Equal(t, placement.Incompatible, absent.Outcome)
	require.True(t, absent.Absent)
	require.Contains(t, absent.Reason, "other would fit but is draining")
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'failed'`))
}
