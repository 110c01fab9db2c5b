package placement_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/placement"
)

func sized(id int64, capacity, assigned int, change ...func(*placement.Worker)) placement.Worker {
	w := placement.Worker{ID: id, Name: fmt.Sprintf("worker-%d", id), Capacity: capacity, Assigned: assigned}
	for _, c := range change {
		c(&w)
	}
	return w
}

func host(name string) func(*placement.Worker) {
	return func(w *placement.Worker) { w.Host = name }
}

func inZone(zone string) func(*placement.Worker) {
	return func(w *placement.Worker) { w.Labels = map[string]string{"zone": zone} }
}

func stands(standing placement.Standing, note string) func(*placement.Worker) {
	return func(w *placement.Worker) { w.Standing, w.Note = standing, note }
}

// A retry goes to a worker on which no attempt failed, then to one at
// least on another host, and waits for such a one rather than go back.
func TestWorkersThatFailedAreAvoidedWhileOthersFit(t *testing.T) {
	t.Parallel()
	fleet := placement.NewFleet([]placement.Worker{
		sized(1, 1, 0, host("a")), sized(2, 1, 0, host("a")), sized(3, 1, 0, host("b")),
	}, 0)
	again := placement.Need{Avoid: []int64{1}}
	for range 3 { // 1 and the headroom
		require.Equal(t, int64(3), fleet.Choose(again).Worker, "another host")
	}
	verdict := fleet.Choose(again)
	require.Equal(t, placement.Verdict{
		Outcome: placement.Busy,
		Reason:  "waiting for a worker: the only fitting worker on which it has not failed is busy",
	}, verdict, "it waits, although two are idle")
	require.Equal(t, int64(1), fleet.Choose(placement.Need{}).Worker, "others do not")

	sameHost := []placement.Worker{sized(1, 1, 0, host("a")), sized(2, 1, 3, host("a"))}
	fleet = placement.NewFleet(sameHost, 0)
	require.Equal(t, placement.Busy, fleet.Choose(again).Outcome, "another worker of the host goes before it")
	fleet.Release(2)
	require.Equal(t, int64(2), fleet.Choose(again).Worker)

	require.Equal(t, int64(1), choose(again, sized(1, 1, 0, host("a"))).Worker, "better there than nowhere")
	both := placement.Need{Avoid: []int64{1, 3}}
	require.Equal(t, int64(2), choose(both, sized(1, 1, 0), sized(2, 9, 8), sized(3, 1, 0)).Worker, "no host is known")
	require.Equal(t, "waiting for a worker: all 2 fitting workers on which it has not failed are busy",
		choose(again, sized(1, 1, 0), sized(2, 1, 3), sized(3, 1, 3)).Reason)
	gone := sized(1, 1, 0, host("a"), stands(placement.Inactive, ""))
	require.Equal(t, int64(3), choose(again, gone, sized(2, 1, 0, host("a")), sized(3, 1, 1, host("b"))).Worker,
		"the host of a worker that is not there any more")
	for _, standing := range []placement.Standing{placement.Deaf, placement.Suspect, placement.Cordoned} {
		require.Equal(t, int64(1), choose(again, sized(1, 1, 0), sized(2, 1, 0, stands(standing, ""))).Worker,
			"no other worker is assigned anything: %v", standing)
	}
	shell := placement.NewNeed(placement.Spec{Runtimes: []string{"shell"}})
	shell.Avoid = []int64{1}
	able := sized(1, 1, 0)
	able.Runtimes = []string{"shell"}
	require.Equal(t, int64(1), choose(shell, able, sized(2, 1, 0)).Worker, "the other does not fit")
}

func TestPreferencesAddUpAndAreSoft(t *testing.T) {
	t.Parallel()
	need := placement.NewNeed(affinity(`{"preferred": [
		{"weight": 5, "preference": {"match_labels": {"zone": "a"}}},
		{"preference": {"match_expressions": [{"key": "zone", "operator": "exists"}]}},
		{"weight": 5, "preference": {"match_labels": {"zone": "b"}}},
		{"weight": 1, "preference": {"match_labels": {"zone": "b"}}}]}`))
	fleet := placement.NewFleet([]placement.Worker{
		sized(1, 4, 0), sized(2, 4, 0, inZone("a")), sized(3, 1, 2, inZone("b")),
	}, 0)
	require.Equal(t, int64(3), fleet.Choose(need).Worker, "7 is more than 6, however loaded")
	require.Equal(t, int64(2), fleet.Choose(need).Worker, "the preferred one is full: the next is taken before waiting")
	for range 5 {
		require.Equal(t, int64(2), fleet.Choose(need).Worker)
	}
	require.Equal(t, int64(1), fleet.Choose(need).Worker, "no preference met")
}

func TestATaintThatOnlyAsksIsLastAmongEquals(t *testing.T) {
	t.Parallel()
	asks := func(w *placement.Worker) {
		w.Taints = []placement.Taint{{Key: "spot", Effect: placement.PreferNoSchedule}}
	}
	workers := []placement.Worker{sized(1, 4, 0, asks), sized(2, 1, 1)}
	fleet := placement.NewFleet(workers, 0)
	require.Equal(t, int64(2), fleet.Choose(placement.Need{}).Worker)
	require.Equal(t, int64(2), fleet.Choose(placement.Need{}).Worker)
	require.Equal(t, int64(1), fleet.Choose(placement.Need{}).Worker, "the other is full")
	require.Equal(t, int64(1), choose(placement.Need{}, sized(1, 1, 1), sized(2, 4, 0, asks)).Worker,
		"whichever comes first")
	tolerates := placement.NewNeed(tolerates(`[{"key": "spot", "operator": "exists"}]`))
	require.Equal(t, int64(1), choose(tolerates, workers...).Worker)
	prefers := placement.NewNeed(
		affinity(`{"preferred": [{"preference": {"match_labels": {"zone": "a"}}}]}`))
	require.Equal(t, int64(1), choose(prefers, sized(1, 4, 3, asks, inZone("a")), sized(2, 1, 0)).Worker,
		"a preference is stronger than a taint that only asks")
}

func TestFenceAndExceptAreHard(t *testing.T) {
	t.Parallel()
	fences := func(w *placement.Worker) { w.AttemptFence = true }
	workers := []placement.Worker{sized(1, 4, 0), sized(2, 4, 3, fences)}
	fleet := placement.NewFleet(workers, 0)
	require.Equal(t, int64(1), fleet.Choose(placement.Need{}).Worker)
	require.Equal(t, int64(2), fleet.Choose(placement.Need{Fence: true}).Worker)
	require.Equal(t, int64(2), fleet.Choose(placement.Need{Except: 1}).Worker)
	require.Equal(t, placement.Verdict{
		Outcome: placement.Incompatible,
		Reason:  "no compatible worker: 1 live worker does not refuse dispatches of older attempts; 1 is where it is to be taken from",
	}, fleet.Choose(placement.Need{Fence: true, Except: 2}))
	require.Equal(t, placement.Busy, choose(placement.Need{Except: 1}, sized(1, 9, 0), sized(2, 1, 3)).Outcome)
	require.Equal(t, placement.Verdict{
		Outcome: placement.Incompatible, Reason: "no compatible worker: 1 live worker is where it is to be taken from",
	}, choose(placement.Need{Except: 1}, sized(1, 9, 0)))
	alone := placement.NewFleet([]placement.Worker{sized(1, 9, 0)}, 0)
	shell := placement.NewNeed(placement.Spec{Runtimes: []string{"shell"}})
	leaving := shell
	leaving.Except = 1
	require.Contains(t, alone.Choose(leaving).Reason, "1 live worker is where it is to be taken from")
	require.Contains(t, alone.Choose(shell).Reason, "1 live worker lacks runtime shell",
		"what was said to others is not said to it")
	verdict := choose(placement.Need{Except: 1}, sized(1, 9, 0, stands(placement.Silent, "")))
	require.Equal(t, placement.Verdict{Outcome: placement.NoWorkers, Reason: "no workers available"}, verdict,
		"it is not named as who would fit")
}

// A verdict describes workers that are alive and get nothing, and missing ones.
func TestVerdictsNameWhoWouldFit(t *testing.T) {
	t.Parallel()
	shell := placement.NewNeed(placement.Spec{Runtimes: []string{"shell"}})
	has := func(runtime string) func(*placement.Worker) {
		return func(w *placement.Worker) { w.Runtimes = []string{runtime} }
	}
	for name, c := range map[string]struct {
		workers []placement.Worker
		want    placement.Verdict
	}{
		"only suspects fit": {
			[]placement.Worker{sized(1, 1, 0, has("shell"), stands(placement.Suspect, "no queue")), sized(2, 1, 0)},
			placement.Verdict{
				Outcome: placement.Busy,
				Reason:  "waiting for a worker: the fitting workers receive no work now: worker-1 is suspected (no queue)",
			},
		},
		"a full one and one that hears nothing": {
			[]placement.Worker{sized(1, 1, 0, has("shell"), stands(placement.Deaf, "")), sized(2, 1, 3, has("shell"))},
			placement.Verdict{
				Outcome: placement.Busy,
				Reason:  "waiting for a worker: the only fitting worker is busy; worker-1 is cut off from the broker",
			},
		},
		"all full": {
			[]placement.Worker{sized(1, 1, 3, has("shell")), sized(2, 1, 4, has("shell"))},
			placement.Verdict{Outcome: placement.Busy, Reason: "waiting for a worker: all 2 fitting workers are busy"},
		},
		"an absent one would fit": {
			[]placement.Worker{sized(1, 1, 0), sized(5, 1, 0, has("shell"), stands(placement.Cordoned, ""))},
			placement.Verdict{
				Outcome: placement.Incompatible, Absent: true,
				Reason: "no workers available that fit: worker-5 would fit but is cordoned; 1 live worker lacks runtime shell",
			},
		},
		"many absent ones would": {
			[]placement.Worker{
				sized(1, 1, 0), sized(2, 1, 0, has("shell"), stands(placement.Silent, "")),
				sized(3, 1, 0, has("shell"), stands(placement.Draining, "")),
				sized(4, 1, 0, has("shell"), stands(placement.Inactive, "")),
				sized(5, 1, 0, has("shell"), stands(placement.Cordoned, "")),
			},
			placement.Verdict{
				Outcome: placement.Incompatible, Absent: true,
				Reason: "no workers available that fit: 4 workers would fit but are not there: " +
					"worker-2 is silent, worker-3 is draining, worker-4 is inactive, and 1 more; 1 live worker lacks runtime shell",
			},
		},
		"an absent one that would not fit is not named": {
			[]placement.Worker{sized(1, 1, 0), sized(5, 1, 0, has("python"), stands(placement.Cordoned, ""))},
			placement.Verdict{
				Outcome: placement.Incompatible,
				Reason:  "no compatible worker: 1 live worker lacks runtime shell",
			},
		},
		"none is live": {
			[]placement.Worker{
				sized(5, 1, 0, has("shell"), stands(placement.Silent, "")),
				sized(6, 1, 0, stands(placement.Silent, "")),
			},
			placement.Verdict{
				Outcome: placement.NoWorkers, Reason: "no workers available", Absent: true,
				Detail: "worker-5 would fit but is silent",
			},
		},
		"none is registered": {nil, placement.Verdict{Outcome: placement.NoWorkers, Reason: "no workers available"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fleet := placement.NewFleet(c.workers, 0)
			require.Equal(t, c.want, fleet.Choose(shell))
			require.Equal(t, c.want, fleet.Choose(shell), "and again")
		})
	}
}

// A verdict counts its reasons, the most frequent first, and names few of them.
func TestReasonsAreCountedAndBounded(t *testing.T) {
	t.Parallel()
	need := placement.NewNeed(placement.Spec{
		Runtimes: []string{"python"}, Version: ">=3.11",
		Own: placement.Own{
			Selector: []byte(`{"zone": "a"}`),
		},
	})
	workers := []placement.Worker{
		worker(1, `{}`), worker(2, `{"runtimes": ["python"], "runtime_versions": {"python": ["3.9"]}}`),
		worker(3, `{"runtimes": ["python"], "runtime_versions": {"python": ["3.12"]}}`),
		worker(4, `{"runtimes": ["python"], "runtime_versions": {"python": ["3.12"]}, "labels": {"zone": "a"}, "taints": [{"key": "gpu", "value": "true"}]}`),
	}
	require.Equal(t, "no compatible worker: 2 live workers lack runtime python >=3.11; 1 lacks the label zone=a; "+
		"1 has the taint gpu=true:no_schedule that is not tolerated", choose(need, workers...).Reason)
	var many []placement.Worker
	for id := range int64(20) {
		many = append(many, sized(id+1, 1, 0, func(w *placement.Worker) {
			w.Taints = []placement.Taint{{Key: fmt.Sprintf("t%02d", id), Effect: placement.NoSchedule}}
		}))
	}
	reason := choose(placement.Need{}, many...).Reason
	require.Contains(t, reason, "t03:no_schedule that is not tolerated; 16 do not fit for other reasons")
	require.NotContains(t, reason, "t04")
}

func TestExplainAnswersForEveryWorker(t *testing.T) {
	t.Parallel()
	need := placement.NewNeed(placement.Spec{
		Runtimes: []string{"shell"},
		Own: placement.Own{
			Affinity: []byte(`{"preferred": [{"weight": 7, "preference": {"match_labels": {"zone": "a"}}}]}`),
		},
	})
	need.Avoid = []int64{1}
	shell := func(w *placement.Worker) { w.Runtimes = []string{"shell"} }
	fleet := placement.NewFleet([]placement.Worker{
		sized(1, 2, 0, shell, host("a")), sized(2, 2, 0, shell, host("a")),
		sized(3, 10, 12, shell, host("b"), inZone("a")), sized(4, 2, 0),
		sized(5, 2, 0, shell, stands(placement.Cordoned, "by alice (disk)")),
		sized(6, 2, 0, shell, stands(placement.Suspect, "no queue")),
		sized(7, 4, 1, shell, host("c")), sized(8, 2, 2, stands(placement.Silent, "")),
	}, 0)
	want := []struct {
		answer placement.Answer
		reason string
	}{
		{placement.AnswerAvoided, "avoided, since an earlier attempt failed on it"},
		{placement.AnswerAvoided, "avoided, since an earlier attempt failed on its host a"},
		{placement.AnswerFull, "busy 10 of 10 (+2 waiting)"},
		{placement.AnswerRejected, "lacks runtime shell"},
		{placement.AnswerAbsent, "cordoned by alice (disk)"},
		{placement.AnswerWaited, "suspected (no queue)"},
		{placement.AnswerRoom, "has room, 1 of 4"},
		{placement.AnswerAbsent, "silent, and lacks runtime shell"},
	}
	got := fleet.Explain(need)
	require.Len(t, got, len(want))
	for i, w := range want {
		require.Equal(t, int64(i+1), got[i].Worker.ID)
		require.Equal(t, w.answer, got[i].Answer, got[i].Worker.Name)
		require.Equal(t, w.reason, got[i].Reason)
	}
	require.Equal(t, 7, got[2].Weight)
	require.Equal(t, "busy", got[2].Kind)
	require.Equal(t, "cordoned", got[4].Kind)
	require.True(t, got[4].Fits)
	require.False(t, got[7].Fits)
	require.Equal(t, int64(7), fleet.Choose(need).Worker, "an explanation takes no capacity and agrees with the choice")
}
