package act_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

var now = time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)

// applies lists the kinds of a menu that can be chosen.
func applies(menu act.Menu) []act.Kind {
	var kinds []act.Kind
	for _, item := range menu.Items {
		if item.Not == "" {
			kinds = append(kinds, item.Kind)
		}
	}
	return kinds
}

func TestActionsOfAnExecution(t *testing.T) {
	t.Parallel()
	for status, want := range map[lifecycle.Status][]act.Kind{
		lifecycle.StatusRequested: {act.FrontExecution, act.LaneExecution, act.CancelExecution, act.CancelTree},
		lifecycle.StatusScheduled: {act.CancelExecution, act.CancelTree},
		lifecycle.StatusRunning:   {act.CancelExecution, act.CancelTree},
		lifecycle.StatusCanceling: {act.CancelTree},
		lifecycle.StatusCompleted: {act.RetryExecution, act.CancelTree},
		lifecycle.StatusFailed:    {act.RetryExecution, act.CancelTree},
		lifecycle.StatusAbandoned: {act.RetryExecution, act.CancelTree},
	} {
		menu := act.ForExecution(&monitor.Execution{ID: 7, ActionRef: "core.echo", Status: string(status)})
		require.Equal(t, want, applies(menu), status)
		require.Equal(t, "execution 7 core.echo", menu.Target.Name)
	}
}

func TestActionsOfAQueue(t *testing.T) {
	t.Parallel()
	open := &monitor.Queue{ID: 1, ActionRef: "a.b", Queued: 3}
	require.Equal(t, []act.Kind{act.PauseQueue, act.LimitQueue, act.RepairQueue, act.ClearQueue},
		applies(act.ForQueue(open)))
	paused := &monitor.Queue{
		ID: 1, ActionRef: "a.b", Group: `{"k":1}`, Paused: true,
		LimitFrom: monitor.LimitSource{Kind: monitor.LimitOverride},
	}
	menu := act.ForQueue(paused)
	require.Equal(t, []act.Kind{act.ResumeQueue, act.LimitQueue, act.ResetQueue, act.RepairQueue}, applies(menu))
	require.Equal(t, act.Target{Name: `queue a.b {"k":1}`, Ref: `a.b {"k":1}`, ID: 1, Action: "a.b", Group: `{"k":1}`},
		menu.Target)
}

func TestActionsOfAWorker(t *testing.T) {
	t.Parallel()
	beat := now.Add(-time.Second)
	old := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		worker monitor.Worker
		want   []act.Kind
	}{
		"active": {monitor.Worker{Status: "active", Heartbeat: &beat}, []act.Kind{act.CordonWorker, act.DrainWorker}},
		"cordoned": {
			monitor.Worker{Status: "active", Heartbeat: &beat, Cordoned: true},
			[]act.Kind{act.UncordonWorker, act.DrainWorker},
		},
		"draining": {
			monitor.Worker{Status: "active", Heartbeat: &beat, Cordoned: true, Draining: true},
			[]act.Kind{act.UncordonWorker},
		},
		"stale": {
			monitor.Worker{Status: "active", Heartbeat: &old},
			[]act.Kind{act.CordonWorker, act.DrainWorker, act.ForgetWorker},
		},
		"inactive": {
			monitor.Worker{Status: "inactive", Heartbeat: &old},
			[]act.Kind{act.CordonWorker, act.ForgetWorker},
		},
	} {
		require.Equal(t, c.want, applies(act.ForWorker(&c.worker, now, 90*time.Second)), name)
	}
}

func TestActionsOfADeadLetter(t *testing.T) {
	t.Parallel()
	waits := &monitor.LedgerEntry{ID: 3, Decision: monitor.DecisionOpen}
	require.Equal(t, []act.Kind{
		act.RequeueDeadLetter, act.DiscardDeadLetter, act.SendDeadLetters,
		act.DiscardAllDeadLetters,
		act.TakeDeadLetters,
	}, applies(act.ForDeadLetter(waits, 0)))
	require.Equal(t, []act.Kind{act.RequeueDeadLetter, act.DiscardAllDeadLetters, act.TakeDeadLetters},
		applies(act.ForDeadLetter(&monitor.LedgerEntry{Decision: "failed"}, 0)))
}

func TestActionsOfATakenOrDiscardedDeadLetter(t *testing.T) {
	t.Parallel()
	taken := &monitor.LedgerEntry{ID: 3, Decision: monitor.DecisionOpen, TakenFrom: monitor.DeadLetterQueue}
	require.Contains(t, applies(act.ForDeadLetter(taken, 0)), act.ReturnDeadLetters)
	discarded := &monitor.LedgerEntry{ID: 3, Decision: "discarded", TakenFrom: monitor.DeadLetterQueue}
	require.Equal(t, []act.Kind{
		act.RequeueDeadLetter, act.UndoDeadLetters, act.DiscardAllDeadLetters,
		act.TakeDeadLetters,
	},
		applies(act.ForDeadLetter(discarded, 0)))
	require.Equal(t, []act.Kind{act.TakeDeadLetters}, applies(act.ForNoDeadLetter(50_000)))
	require.Equal(t, []act.Kind{act.TakeDeadLetters, act.PurgeBroker}, applies(act.ForNoDeadLetter(50_001)))
}

func TestAges(t *testing.T) {
	t.Parallel()
	items := act.ForQueue(&monitor.Queue{Queued: 1}).Items
	age := items[len(items)-1].Fields[0]
	require.Equal(t, act.FieldOlderThan, age.Name)
	for _, good := range []string{"", " 10m ", "2h"} {
		require.NoError(t, age.Check(good), good)
	}
	for _, bad := range []string{"10", "-1m", "0s", "soon"} {
		require.EqualError(t, age.Check(bad), strconv.Quote(bad)+" is not an age such as 90s, 10m, 2h or 3d")
	}
}

func TestAuditText(t *testing.T) {
	t.Parallel()
	require.Equal(t, "audit 7", act.AuditText([]int64{7}))
	require.Equal(t, "audits 7, 8", act.AuditText([]int64{7, 8}))
	require.Equal(t, "audits 3, 7–9, 12, 13, 11", act.AuditText([]int64{3, 7, 8, 9, 12, 13, 11}))
}

// The title names every target, not only the selected row.
func TestTitlesNameAllThatIsTouched(t *testing.T) {
	t.Parallel()
	touched := map[act.Kind]string{}
	for _, menu := range []act.Menu{
		act.ForDeadLetter(&monitor.LedgerEntry{ID: 7}, triage.PurgeOffered+1),
		act.ForQueue(&monitor.Queue{ActionRef: "demo.a", Group: "tenant=1", Queued: 3}),
	} {
		for _, item := range menu.Items {
			if item.Touches != "" {
				touched[item.Kind] = item.Label + " " + item.Touches
			}
		}
	}
	require.Equal(t, map[act.Kind]string{
		act.DiscardAllDeadLetters: "discard all waiting dead letters that match",
		act.PurgeBroker:           "purge all messages of attune.dlx.queue",
		act.RepairQueue:           "repair all queues of demo.a",
		act.ClearQueue:            "clear the waiting executions of queue demo.a tenant=1",
	}, touched)
}

// The form comes from the row under the cursor, which need not be marked.
func TestMarkedInquiriesAreAnsweredAlsoFromAnAnsweredOne(t *testing.T) {
	t.Parallel()
	one := act.ForInquiry(&monitor.InquiryDetail{
		Inquiry: monitor.Inquiry{ID: 4, Status: monitor.InquiryResponded, Prompt: "deploy?"},
	}, &inquiry.AnswerForm{})
	require.NotEmpty(t, one.Items[0].Not)
	menu := act.ForMarkedInquiries([]act.Target{{ID: 1}, {ID: 2}}, one)
	require.Empty(t, menu.Items[0].Not, "only planning finds out about the marked ones")
	require.Equal(t, "All marked questions get this answer. The form is that of inquiry 4:\ndeploy?", menu.Items[0].About)
	require.NotEmpty(t, one.Items[0].Not, "the menu of one is unchanged")
}
