package app

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
)

// onDeadLetters is a model that may act, on the view of dead letters.
func onDeadLetters(t *testing.T, acts *deadLetterActs) *bundle {
	t.Helper()
	b := started(t, sample(), 140, 40, func(o *Options) { o.Acts = acts })
	b.press("5")
	return b
}

func TestMessagesAreTakenByKey(t *testing.T) {
	acts := &deadLetterActs{}
	b := onDeadLetters(t, acts)
	b.press("S")
	require.Equal(t, keymap.InForm, b.stage())
	require.Contains(t, b.View(), "attune.dlx.queue")
	b.press("tab")
	b.typed("100")
	b.press("enter")
	request := acts.requests[len(acts.requests)-1]
	require.Equal(t, act.TakeDeadLetters, request.Kind)
	require.Equal(t, map[string]string{act.FieldQueue: monitor.DeadLetterQueue, act.FieldFirst: "100"}, request.Values)
	b.press("y")
	require.Equal(t, 1, acts.count())
	b.press("u")
	require.Equal(t, act.UndoDeadLetters, acts.requests[len(acts.requests)-1].Kind)
	require.Len(t, acts.requests[len(acts.requests)-1].Targets, 2)
}

// TestAnEmptyLedgerIsFilledByKey: actions on the broker's queue need no row.
func TestAnEmptyLedgerIsFilledByKey(t *testing.T) {
	source := sample()
	source.dead.Ledger.Recent, source.dead.Queue.Ready = nil, 12
	b := started(t, source, 100, 30, func(o *Options) { o.Acts = &deadLetterActs{} })
	b.press("5")
	require.Contains(t, b.View(), "None in the ledger; 12 lie on the broker: S takes them.")
	b.press("S")
	require.Equal(t, keymap.InForm, b.stage())
	b.press("esc", "esc", "A")
	require.Contains(t, b.View(), "only above 50000 messages; S takes them")
}

// Without a ledger the dashboard only reads, and names the remedy.
func TestWithoutALedgerTheDashboardOnlyReads(t *testing.T) {
	source := sample()
	source.dead.Ledger = nil
	source.audit = &monitor.Audit{Reading: source.overview.Reading}
	b := started(t, source, 140, 40, func(o *Options) { o.Acts = &deadLetterActs{} })
	b.press("5")
	require.Contains(t, b.View(), "there is no ledger here: this dashboard only reads")
	require.Contains(t, b.View(), "`attune-executor migrate up` adds")
	require.Contains(t, b.View(), "dead_letter (the ledger)")
	b.press("S")
	require.Empty(t, b.stage())
	require.Contains(t, b.View(), "has no tables of attune-executor")
}

func TestAMarkOnAGroupMarksItsDeadLetters(t *testing.T) {
	acts := &deadLetterActs{}
	b := onDeadLetters(t, acts)
	b.press("a")
	require.Contains(t, b.View(), "reason × action × worker × type × error")
	b.press("a", "tab", " ") // by reason
	require.Contains(t, b.View(), "marked")
	marked := len(b.deadLetters.Table().Marked())
	require.Greater(t, marked, 1)
	b.press("D")
	require.Equal(t, keymap.InConfirm, b.stage())
	request := acts.requests[len(acts.requests)-1]
	require.Equal(t, act.DiscardDeadLetter, request.Kind)
	require.Len(t, request.Targets, marked, "the dead letters are frozen in the request")
	b.press("y")
	require.Empty(t, b.deadLetters.Table().Marked(), "finished rows are not marked any more")
	b.press("u")
	require.Contains(t, b.View(), "[ reopen ]")
	require.Equal(t, act.UndoDeadLetters, acts.requests[len(acts.requests)-1].Kind)
	b.press("esc", "k", " ")
	require.Len(t, b.deadLetters.Table().Marked(), marked)
	b.press("k", " ")
	require.Empty(t, b.deadLetters.Table().Marked(), "the same again takes the marks away")
}

func TestMarkedDeadLettersOfTheLedgerAreActedOnTogether(t *testing.T) {
	acts := &deadLetterActs{}
	b := onDeadLetters(t, acts)
	b.press(" ", " ", "R")
	request := acts.requests[len(acts.requests)-1]
	require.Equal(t, act.RequeueDeadLetter, request.Kind)
	require.Equal(t, []int64{5, 4}, []int64{request.Targets[0].ID, request.Targets[1].ID})
	b.press("esc", "u")
	require.Equal(t, act.UndoDeadLetters, acts.requests[len(acts.requests)-1].Kind)
	require.Len(t, acts.requests[len(acts.requests)-1].Targets, 2)
}

func TestDeadLettersAreFiltered(t *testing.T) {
	b := onDeadLetters(t, &deadLetterActs{})
	b.press("/")
	b.press("verdict:decided", "enter")
	require.Equal(t, 2, b.deadLetters.Len())
	b.press("/")
	b.line().Set("colour:red", len("colour:red"))
	b.press("enter")
	require.Contains(t, b.View(), "there is no field")
}

func TestDeadLettersAreFilteredInTheLanguageOfAllLists(t *testing.T) {
	b := onDeadLetters(t, &deadLetterActs{})
	for text, want := range map[string]int{
		"decision:waiting": 2, "!decision:waiting": 3, "reason:expired,poison": 4, "queue:worker.7.*": 3, "age>20h": 2,
		"age<1h | id:4": 3, "execution:884301": 1,
		"by:ann*": 1, "status:completed": 1, "try>0": 0, "try<=0": 3, "regex:/^worker-node/": 2, "event": 1,
		"verdict:decided":     2,
		"from:worker-node-02": 2, "worker:worker-node-02": 2, "worker:rack7": 0,
	} {
		require.NoError(t, b.deadLetters.SetFilter(text), text)
		require.Equal(t, want, b.deadLetters.Len(), text)
	}
	require.NoError(t, b.deadLetters.SetFilter("reason:none"))
	require.Contains(t, b.View(), "No dead letter matches /reason:none.")
	require.Contains(t, b.deadLetters.Known("from"), "worker-node-02")
	b.press("/")
	b.line().Set("decis", len("decis"))
	b.press("tab")
	require.Contains(t, b.line().Value(), "decision:")
}

// List, groups and marks say which dead letters would end here again, and of which that is unknown.
func TestDeadLettersThatWouldEndHereAgainAreNotGreen(t *testing.T) {
	source := sample()
	list := source.dead.Ledger.Recent
	again := list[0]
	again.ID, again.Verdict.Advice, again.Verdict.Problem = 6, monitor.AdviseFix, "no consumer · died 4 times"
	list[0].Verdict.Unknown = "refused"
	source.dead.Ledger.Recent = append([]monitor.LedgerEntry{again}, list...)
	b := started(t, source, 140, 40)
	b.press("5")
	require.Regexp(t, `waiting +▲ no consumer · died 4 ti…`, b.View())
	require.Regexp(t, `waiting +\? send to attune.events`, b.View())
	require.Regexp(t, `rejected +- +attune.events.queue +2 +2 ▲ 1 no consumer · died 4 times, …`, b.View())
	b.press(" ", " ")
	require.Contains(t, b.View(), "2 marked: 1 can be requeued, 1 would end here again, 0 stale")
}

// In 80 columns the verdict stays and other columns are dropped.
func TestTheVerdictStaysInEightyColumns(t *testing.T) {
	t.Parallel()
	for _, marks := range []string{"", " "} {
		b := started(t, sample(), 80, 24)
		b.press("5", marks)
		require.Regexp(t, `DIED.* REASON .*ACTION .*EXECUTION .*VERDICT`, b.View())
		require.Contains(t, b.View(), "requeue")
		require.NotContains(t, b.View(), "TYPE")
		require.NotContains(t, b.View(), " NOW")
	}
}

// TestMarksHideNoReason: at every width the list shows REASON and VERDICT, by which an operator
// decides, also while rows are marked.
func TestMarksHideNoReason(t *testing.T) {
	t.Parallel()
	for _, width := range []int{64, 70, 71, 72, 73, 80, 100, 120, 140} {
		b := started(t, sample(), width, 34)
		b.press("5")
		require.Regexp(t, `DIED.* REASON .*ACTION .*VERDICT`, b.View(), "width %d", width)
		b.press("*")
		require.Regexp(t, `DIED.* REASON .*ACTION .*VERDICT`, b.View(), "width %d, with marks", width)
	}
}

func TestDeadLettersAreSorted(t *testing.T) {
	b := onDeadLetters(t, &deadLetterActs{})
	first := func() string { return b.deadLetters.Key(0) }
	require.Contains(t, b.View(), "waiting first")
	b.press("s", "2")
	require.Equal(t, "3", first(), "the newest")
	require.Contains(t, b.View(), "sort died↓")
	b.press("s", "2")
	require.Equal(t, "1", first(), "the oldest")
	b.press("s", "3")
	require.Equal(t, "3", first(), "by reason, otherwise as listed")
	b.press("s", "6")
	require.Contains(t, b.deadLetters.Cells(0, nil)[9].Text, "✓", "rows that can be requeued first")
}

func TestOnlyDeadLettersThatNeedAnOperator(t *testing.T) {
	b := onDeadLetters(t, &deadLetterActs{})
	b.press("z")
	require.Equal(t, 2, b.deadLetters.Len(), "the ones that wait for an operator")
	require.Contains(t, b.View(), "problems")
	b.press("z")
	require.Equal(t, 5, b.deadLetters.Len())
}

func TestADeadLetterIsShownBesideItsRow(t *testing.T) {
	b := onDeadLetters(t, &deadLetterActs{})
	b.press("j", "j", "enter")
	require.Equal(t, keymap.InDeadLetter, b.view)
	require.Equal(t, int64(3), b.deadLetter.ID())
	view := b.View()
	for _, text := range []string{
		"1 expired  worker.7.executions  x1  first 2026-11-21 01:56:59Z", "time is the first death of its kind",
		"MESSAGE SAYS", "EXECUTION ROW 884301",
		"core.http_request", "SAME PROBLEM", "TARGET CHECK", "no memory or disk alarm", "[payload]", "PLAN PREVIEW",
		"execution 884301 is repeated", "‹redacted›",
	} {
		require.Contains(t, view, text)
	}
	require.NotContains(t, view, "s3cret")
	b.press("tab", "tab")
	require.Contains(t, b.View(), "[headers]")
	b.press("j")
	require.Contains(t, b.View(), "EXECUTION ROW 884301", "rows are lines in there")
	b.press("esc", "j")
	require.Contains(t, b.View(), "884300")
	b.press("esc")
	require.Equal(t, keymap.InDeadLetters, b.view)
}

func TestDeadLettersFitEverywhere(t *testing.T) {
	t.Parallel()
	evil := "\x1b[2J\x1b]0;owned\a\u202Eevil\r\n世界" + strings.Repeat("界", 60)
	for name, spoil := range map[string]bool{"sample": false, "evil": true} {
		source := sample()
		for i := range source.dead.Ledger.Recent {
			if l := &source.dead.Ledger.Recent[i]; spoil {
				l.Type, l.Reason, l.Queue, l.Exchange, l.RoutingKey, l.ActionRef, l.WorkerName, l.Detail = evil, evil,
					evil, evil, evil, evil, evil, evil
			}
		}
		b := started(t, source, 140, 40,
			func(o *Options) { o.Acts, o.Theme = &deadLetterActs{}, theme.Options{Name: "dark"} })
		b.press("5")
		for _, keys := range [][]string{
			{},
			{"a"},
			{"a", "tab", " "},
			{"esc", "enter"},
			{"tab", "tab"},
			{"tab", "tab"},
		} {
			b.press(keys...)
			for _, w := range testkit.Some(t, []int{20, 60, 71, 80, 97, 120, 141, 220}, 3) {
				for _, h := range []int{6, 15, 24, 31, 70} {
					b.now = b.now.Add(time.Second)
					b.Update(clockMsg{})
					b.width, b.height = w, h
					frame := requireFits(t, b, w, h)
					for _, bad := range []string{"\a", "\r", "\u202e", "\x1b[2J"} {
						require.NotContains(t, frame, bad, name)
					}
				}
			}
			b.width, b.height = 140, 40
		}
	}
}

// TestASmallTerminalShowsDeadLettersFirst: the list has all the room that there is,
// below it stands what R would do, and tab brings the groups, which can be marked.
func TestASmallTerminalShowsDeadLettersFirst(t *testing.T) {
	b := started(t, sample(), 60, 15)
	b.press("5")
	require.Contains(t, b.View(), " 1d03h expired ", "the last of the dead letters")
	require.Contains(t, b.View(), "waits for a person: no part")
	require.NotContains(t, b.View(), "groups")
	b.press("tab")
	require.Contains(t, b.View(), "groups reason")
	require.Contains(t, b.View(), "PROBLEM")
	b.press(" ")
	require.Len(t, b.deadLetters.Table().Marked(), 2)
	b.press("tab")
	require.Contains(t, b.View(), "2 marked: 1 can be requeued, 0 stale, 0 blocked, 1 other")
	require.NotContains(t, b.View(), "PROBLEM")
}

func TestGroupsAreMarkedInEightyColumns(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("5", "tab", "j", " ")
	require.Contains(t, b.View(), "space marks a whole group")
	require.Equal(t, []string{"5"}, b.deadLetters.Table().Marked())
}

// TestTheReceiptOfADiscardIsUndoneAsAWhole: the cursor is on one of the discarded rows, or on an older one.
func TestTheReceiptOfADiscardIsUndoneAsAWhole(t *testing.T) {
	acts := &deadLetterActs{}
	b := onDeadLetters(t, acts)
	undone := func() []act.Target {
		request := acts.requests[len(acts.requests)-1]
		require.Equal(t, act.UndoDeadLetters, request.Kind)
		return request.Targets
	}
	b.press(" ", " ", "D", "y")
	for i := range b.source.dead.Ledger.Recent {
		b.source.dead.Ledger.Recent[i].Decision = deadletter.Discarded
	}
	b.press("r", "gg", "u")
	require.Len(t, undone(), 2, "its receipt is shown")
	b.press("esc", "esc", "u")
	require.Len(t, undone(), 2, "the row is a part of it")
	b.press("esc", "G", "u")
	require.Empty(t, undone(), "another row, long after the receipt")
}
