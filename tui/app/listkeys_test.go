package app

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// filtered types a filter into the open list.
func (b *bundle) filtered(text string) {
	b.t.Helper()
	b.press("/")
	b.typed(text)
	b.press("enter")
}

func TestSinceLeavesTheRestOfTheFilterAsItWasTyped(t *testing.T) {
	b := started(t, sample(), 80, 24)
	require.NoError(t, b.executions.SetFilter(`reason:"a b" age<1h age>10m | try>2`))
	b.enter("since 15m")
	require.Equal(t, `reason:"a b" age>10m age<15m | try>2 age<15m`, b.executions.Filter())
	b.enter("since off")
	require.Equal(t, `reason:"a b" age>10m | try>2`, b.executions.Filter())
}

// The log is filtered like all lists, over its loaded part.
func TestTheLogIsFiltered(t *testing.T) {
	source := sample()
	audit := *source.audit
	audit.List = nil
	for i := range int64(500) {
		e := monitor.AuditEntry{
			ID: 900 - i, At: frozen, Actor: "ann", Action: "queue.pause", Target: "core.echo",
			Outcome: "done",
		}
		if i%100 == 99 {
			e.Actor, e.Action, e.Outcome, e.Error = "bob", "worker.drain", "failed", "gone away"
		}
		audit.List = append(audit.List, e)
	}
	source.audit = &audit
	b, _, _ := carrying(t, source)
	b.press("L")
	b.filtered("who:bob outcome:failed error:gone")
	require.Equal(t, 2, b.operations.Len())
	require.Contains(t, b.frame()[2], "2 match /who:bob")
	b.press("G", "G", "G")
	require.Equal(t, 5, b.operations.Len(), "older ones are read for it")
	require.Len(t, b.exported(t), 5, "and written")
	b.press("esc", "/") // first the report is closed
	b.typed("who:nobody")
	require.Contains(t, b.View(), "No operation matches /who:bob outcome:failed error:gone who:nobody.")
	b.press("enter", "esc")
	require.Empty(t, b.operations.Filter(), "esc clears it")
	require.Equal(t, keymap.InLog, b.view)
	b.press("esc")
	require.Equal(t, keymap.InOverview, b.view)
}

// TestOneOperationIsOneRowOfTheLog: 200 retries of one run are a row that unfolds, and what
// others did before it is visible.
func TestOneOperationIsOneRowOfTheLog(t *testing.T) {
	source := sample()
	audit := *source.audit
	audit.List = nil
	for i := range int64(450) {
		e := monitor.AuditEntry{
			ID: 900 - i, At: frozen.Add(-time.Duration(i) * 50 * time.Millisecond), Actor: "ann@ops",
			Source: "attune-tui", Action: "execution.retry",
			TargetType: "execution", Target: "execution " + strconv.FormatInt(5_000-i, 10), Outcome: "done",
			Reason: "disk is free",
		}
		if i >= 448 {
			e.Actor, e.Action, e.TargetType, e.Target = "bob@ops", "queue.pause", "queue", "core.echo"
		}
		audit.List = append(audit.List, e)
	}
	source.audit = &audit
	b, _, _ := carrying(t, source)
	b.press("L")
	for range 3 { // older pages are read without being asked for
		b.send(dueMsg{feed: screen.FeedAudit, gen: b.chain(screen.FeedAudit).gen})
	}
	require.Regexp(t, `✓ done +retry execution +▸ 448 executions +ann@ops`, b.View())
	require.Equal(t, 2, strings.Count(b.View(), "bob@ops"))
	rows := b.operations.Len()
	require.Len(t, b.exported(t), rows+447, "a file has each of them")
	b.press("esc", "g", "g")
	for !strings.Contains(b.View(), "enter = unfold") { // operations of this session come first
		b.press("j")
	}
	rows = b.operations.Len() // with the export
	require.Contains(t, b.View(), "448 done, in 22s")
	require.Contains(t, b.View(), "453 to 900 by ann@ops")
	b.press("enter")
	require.Equal(t, rows+448, b.operations.Len())
	require.Contains(t, b.View(), "▾ 448 executions")
	require.Contains(t, b.View(), "execution 4999")
	require.Len(t, b.exported(t), rows+447, "unfolded or not")
	b.press("esc", "j", "enter")
	require.Contains(t, b.View(), "RECORD")
	b.press("esc", "k", "enter")
	require.Equal(t, rows+1, b.operations.Len())
}

// esc clears a filter before it goes up; q goes up.
func TestEscClearsTheFilterFirst(t *testing.T) {
	b := started(t, sample(), 100, 30)
	b.press("4", "j", "o", "x")
	b.filtered("status:failed")
	b.press("esc")
	require.Equal(t, keymap.InExecutions, b.view)
	require.Empty(t, b.executions.Filter())
	b.press("esc")
	require.Equal(t, keymap.InWorkers, b.view)
	b.press("o", "x")
	b.press("q")
	require.Equal(t, keymap.InWorkers, b.view)
	require.Equal(t, "worker:7", b.executions.Filter(), "q leaves the filter")
}

// The rows of a queue and of a worker are searched.
func TestRowsOfAQueueAreSearched(t *testing.T) {
	b := started(t, sample(), 140, 40)
	b.open(keymap.InQueue)
	b.press("tab")
	b.filtered("884160")
	require.EqualValues(t, 884160, b.queue.SelectedID())
	b.press("/")
	b.send(keyMsg("ctrl+u"))
	b.typed("retry of")
	b.press("enter")
	first := b.queue.SelectedID()
	b.press("n")
	second := b.queue.SelectedID()
	require.Greater(t, second, first)
	b.press("N")
	require.Equal(t, first, b.queue.SelectedID())
	b.filtered("zzz")
	b.press("k")
	b.press("j")
	require.Contains(t, b.messages(), "zzz")
	require.Equal(t, first, b.queue.SelectedID())
	b.now = b.now.Add(toastTime)
	b.open(keymap.InWorker)
	b.filtered("8")
	require.NotContains(t, b.messages(), "Nothing here has")
}

// x leads to the tree of whatever is about an execution, and says so where nothing is.
func TestTheTreeIsOpenedFromEveryRowOfAnExecution(t *testing.T) {
	t.Parallel()
	for _, view := range []string{"3", "5", "6", "8"} {
		b := started(t, sample(), 140, 40)
		b.press(view)
		if view == "5" {
			b.filtered("execution:884301")
		}
		b.press("x")
		require.Equal(t, keymap.InXray, b.view, view)
		b.press("esc")
		require.NotEqual(t, keymap.InXray, b.view)
	}
	for _, view := range []string{"1", "7"} {
		b := started(t, sample(), 140, 40)
		b.press(view, "x")
		require.NotEqual(t, keymap.InXray, b.view)
		require.Contains(t, b.messages(), "has no execution", view)
	}
}

// v leaves the list of alerts and of dead letters to itself.
func TestTheListIsLeftToItself(t *testing.T) {
	t.Parallel()
	for _, view := range []string{"5", "7"} {
		b := started(t, sample(), 140, 40)
		b.press(view)
		before := b.View()
		b.press("v")
		require.Less(t, strings.Count(b.View(), "─ "), strings.Count(before, "─ "), view)
		b.press("v")
		require.Equal(t, before, b.View(), view)
	}
}

// u undoes from any view, and P is about the rows that the filter matches.
func TestDeadLettersAreDiscardedByFilterAndReopenedFromAnyView(t *testing.T) {
	acts := &deadLetterActs{}
	source := longLedger(900)
	b := started(t, source, 140, 40, func(o *Options) { o.Acts = acts })
	b.press("5")
	b.filtered("action:mail.send")
	b.press("P")
	require.Equal(t, keymap.InConfirm, b.stage())
	request := acts.requests[len(acts.requests)-1]
	require.Equal(t, act.DiscardDeadLetter, request.Kind)
	require.Len(t, request.Targets, 300, "frozen by their ids, also unlisted ones")
	b.press("esc", "1", "u")
	require.Equal(t, keymap.InOverview, b.view)
	require.Contains(t, b.messages(), "has nothing to undo")
}

// TestAnOpenedViewIsSortedAgain: rows keep their places after a key in their list, not after the key that opens it.
func TestAnOpenedViewIsSortedAgain(t *testing.T) {
	b := started(t, sample(), 100, 30)
	b.press("2")
	require.Equal(t, "47", b.queues.Key(0), "the longest head")
	b.press("3")
	list := *b.source.queues
	list.List = slices.Clone(list.List)
	for i := range list.List {
		if list.List[i].ID == 45 {
			list.List[i].Oldest = ago(time.Hour)
		}
	}
	b.source.queues = &list
	b.now = b.now.Add(time.Second)
	b.press("2")
	require.Equal(t, "45", b.queues.Key(0))
	b.press("j")
	list.List = slices.Clone(list.List)
	for i := range list.List {
		if list.List[i].ID == 42 {
			list.List[i].Oldest = ago(2 * time.Hour)
		}
	}
	b.now = b.now.Add(time.Second)
	b.run(b.refresh())
	require.Equal(t, "45", b.queues.Key(0), "after a key in the list rows stay")
}

// TestTheOldestQuestionStaysUnderAnUnmovedCursor: when the first question is answered, the cursor is on the next one
// that waits, not on the answered one further down.
func TestTheOldestQuestionStaysUnderAnUnmovedCursor(t *testing.T) {
	b := started(t, sample(), 100, 30)
	b.press("8")
	first, second := b.inquiries.Key(0), b.inquiries.Key(1)
	require.Equal(t, first, b.inquiries.Table().Key())
	page := *b.source.flows.page
	page.List = slices.Clone(page.List)
	for i := range page.List {
		if strconv.FormatInt(page.List[i].ID, 10) == first {
			page.List[i].Status = monitor.InquiryResponded
		}
	}
	b.source.flows.page = &page
	b.now = b.now.Add(screen.SettleTime)
	b.run(b.refresh())
	require.Equal(t, second, b.inquiries.Table().Key())
}
