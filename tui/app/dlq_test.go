package app

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

// onLetters is a model that may act, on the view of dead letters.
func onLetters(t *testing.T, acts *letterActs, w, h int, change ...func(*Options)) *bundle {
	t.Helper()
	change = append([]func(*Options){func(o *Options) { o.Acts = acts }}, change...)
	b := started(t, sample(), w, h, change...)
	b.press("5")
	return b
}

func TestSourcesOfDeadLettersAreTurnedThrough(t *testing.T) {
	t.Parallel()
	b := onLetters(t, &letterActs{}, 140, 40)
	require.Contains(t, b.View(), "[ledger]")
	b.press("b")
	require.Contains(t, b.View(), "none was taken; S takes one, which touches the messages")
	b.press("S")
	require.Contains(t, b.View(), "[broker 10]")
	require.Contains(t, b.View(), "10 of 10 read")
	require.Contains(t, b.View(), "884301")
	require.Contains(t, b.View(), "✓ requeue")
	require.Contains(t, b.View(), "○ stale, discard")
	require.Contains(t, b.View(), "▲ replay to attune.events")
	require.Contains(t, b.View(), "✗ export only")
	b.press("b")
	require.Contains(t, b.View(), "[spool]")
	require.Contains(t, b.View(), "884401")
	b.press("b")
	require.Contains(t, b.View(), "[ledger]")
}

func TestASnapshotBesideAHandlerIsAQuestion(t *testing.T) {
	t.Parallel()
	acts := &letterActs{question: true}
	b := onLetters(t, acts, 140, 40)
	b.press("S")
	require.Equal(t, keymap.InConfirm, b.dialog.scope)
	require.Zero(t, acts.count())
	b.press("y")
	require.Equal(t, 1, acts.count())
	require.Contains(t, b.View(), "[broker 10]")
}

func TestASnapshotIsPossibleWhereActingIsLocked(t *testing.T) {
	t.Parallel()
	acts := &letterActs{}
	source := sample()
	source.audit = &monitor.Audit{Reading: source.overview.Reading}
	b := started(t, source, 140, 40, func(o *Options) { o.Acts = acts })
	b.press("5", "S")
	require.Contains(t, b.View(), "[broker 10]")
	b.press("R")
	require.Contains(t, b.View(), "it has no operator_audit")
	require.Equal(t, 1, acts.count(), "it was looked at, and nothing was done")

	b = started(t, source, 140, 40, func(o *Options) { o.Acts, o.DirectWrites = acts, true })
	b.press("5", "S", "R", "tab", "enter", "enter")
	require.Contains(t, b.View(), " RW ")
	b.press("esc", "2", "j", "A")
	require.Contains(t, b.View(), "only dead letters can be acted upon")
}

func TestAMarkOnAGroupMarksItsLetters(t *testing.T) {
	t.Parallel()
	acts := &letterActs{}
	b := onLetters(t, acts, 140, 40)
	b.press("S", "a")
	require.Contains(t, b.View(), "reason × action × worker × type × error")
	b.press("tab", " ")
	require.Contains(t, b.View(), "marked")
	marked := len(b.letters.Table().Marked())
	require.Greater(t, marked, 1)
	b.press("D")
	require.Equal(t, keymap.InConfirm, b.dialog.scope)
	order := acts.orders[len(acts.orders)-1]
	require.Equal(t, act.DiscardLetter, order.Kind)
	require.Len(t, order.Letters, marked, "the letters are frozen in the order")
	b.press("y")
	require.Empty(t, b.letters.Table().Marked(), "what was done with is not marked any more")
	b.press("u")
	require.Equal(t, act.UndoLetters, acts.orders[len(acts.orders)-1].Kind)
	require.Equal(t, "01J9ZK", acts.orders[len(acts.orders)-1].Target.Ref)
	b.press("esc", "k", " ")
	require.Len(t, b.letters.Table().Marked(), marked)
	b.press("k", " ")
	require.Empty(t, b.letters.Table().Marked(), "the same again takes the marks away")
}

func TestMarkedLettersOfTheLedgerAreActedOnTogether(t *testing.T) {
	t.Parallel()
	acts := &letterActs{}
	b := onLetters(t, acts, 140, 40)
	b.press(" ", " ", "R")
	order := acts.orders[len(acts.orders)-1]
	require.Equal(t, act.RequeueLetter, order.Kind)
	require.Equal(t, []int64{5, 4}, []int64{order.Targets[0].ID, order.Targets[1].ID})
	b.press("esc", "u")
	require.Equal(t, act.UndoLetters, acts.orders[len(acts.orders)-1].Kind)
	require.Len(t, acts.orders[len(acts.orders)-1].Targets, 2)
}

func TestDeadLettersAreFiltered(t *testing.T) {
	t.Parallel()
	b := onLetters(t, &letterActs{}, 140, 40)
	b.press("S", "/")
	b.press("verdict:stale", "enter")
	require.Equal(t, 1, b.letters.Len())
	b.press("/")
	b.input.SetValue("action:core.* from:worker*")
	b.press("enter")
	require.Equal(t, 8, b.letters.Len())
	b.press("/")
	b.input.SetValue("colour:red")
	b.press("enter")
	require.Contains(t, b.View(), "there is no field")
}

func TestDeadLettersAreFilteredInTheLanguageOfAllLists(t *testing.T) {
	t.Parallel()
	b := onLetters(t, &letterActs{}, 140, 40)
	for text, want := range map[string]int{
		"decision:waiting": 2, "!decision:waiting": 3, "reason:expired,poison": 4, "queue:worker.7.*": 3, "age>20h": 2, "age<1h | id:4": 3, "execution:884301": 1,
		"by:ann*": 1, "status:completed": 1, "try>0": 0, "try<=0": 3, "regex:/^worker-node/": 2, "event": 1, "verdict:decided": 2,
	} {
		require.NoError(t, b.letters.SetFilter(text), text)
		require.Equal(t, want, b.letters.Len(), text)
	}
	require.NoError(t, b.letters.SetFilter("reason:none"))
	require.Contains(t, b.View(), "None of 5 matches the filter")
	require.Contains(t, b.letters.Known("from"), "worker-node-02")
	b.press("/")
	b.input.SetValue("decis")
	b.input.CursorEnd()
	b.press("tab")
	require.Contains(t, b.input.Value(), "decision:")
}

func TestDeadLettersAreSorted(t *testing.T) {
	t.Parallel()
	b := onLetters(t, &letterActs{}, 140, 40)
	first := func() string { return b.letters.Key(0) }
	require.Contains(t, b.View(), "waiting first")
	b.press("s", "2")
	require.Equal(t, "3", first(), "who died last")
	require.Contains(t, b.View(), "sort died↓")
	b.press("s", "2")
	require.Equal(t, "1", first(), "who died first")
	b.press("s", "3")
	require.Equal(t, "3", first(), "by reason, otherwise as listed")
	b.press("s", "6")
	require.Contains(t, b.letters.Cells(0, nil)[9].Text, "✓", "what can be requeued first")
	b.press("S")
	require.Equal(t, 10, b.letters.Len(), "what lies on the broker is sorted too")
	b.press("s", "1")
	require.Contains(t, b.View(), "as read")
}

func TestOnlyLettersThatAskForSomebody(t *testing.T) {
	t.Parallel()
	b := onLetters(t, &letterActs{}, 140, 40)
	b.press("z")
	require.Equal(t, 2, b.letters.Len(), "those that wait for a person")
	require.Contains(t, b.View(), "problems")
	b.press("S")
	for i := range b.letters.Len() {
		require.NotContains(t, b.letters.Cells(i, nil)[9].Text, "stale")
	}
	require.Less(t, b.letters.Len(), 10)
	b.press("z")
	require.Equal(t, 10, b.letters.Len())
}

func TestALetterIsShownBesideItsRow(t *testing.T) {
	t.Parallel()
	b := onLetters(t, &letterActs{}, 140, 40)
	b.press("S", "enter")
	require.Equal(t, keymap.InLetter, b.view)
	view := b.View()
	for _, text := range []string{
		"1 expired  worker.7.executions  x1  first 2026-11-21 01:57:04Z", "time is the first death of its kind", "MESSAGE SAYS", "EXECUTION ROW 884301",
		"core.http_request", "SAME PROBLEM", "TARGET CHECK", "no memory or disk alarm", "[payload]", "PLAN PREVIEW", "row 884301: failed → requested", "‹redacted›",
	} {
		require.Contains(t, view, text)
	}
	require.NotContains(t, view, "s3cret")
	b.press("j")
	require.Contains(t, b.View(), "EXECUTION ROW 884302")
	b.press("tab", "tab")
	require.Contains(t, b.View(), "[headers]")
	b.press("j")
	require.Contains(t, b.View(), "EXECUTION ROW 884302", "rows are lines in there")
	b.press("esc", "esc", "esc") // the report of the snapshot, the document, the letter
	require.Equal(t, keymap.InDeadLetters, b.view)

	b.press("b", "b", "j", "j", "enter")
	require.Equal(t, int64(3), b.letter.ID())
	require.Contains(t, b.View(), "execution 884301 is repeated", "the letter of the ledger was read")
	b.press("j")
	require.Contains(t, b.View(), "884300")
}

func TestLettersOfTheBrokerFitEverywhere(t *testing.T) {
	t.Parallel()
	evil := "\x1b[2J\x1b]0;owned\a\u202Eevil\r\n世界" + strings.Repeat("界", 60)
	for name, snap := range map[string]*redrive.Snapshot{"sample": sampleSnapshot(), "evil": evilSnapshot(evil), "none": {At: frozen}} {
		b := onLetters(t, &letterActs{}, 140, 40, func(o *Options) { o.Theme = theme.Options{Name: "dark"} })
		b.press("S")
		b.apply(screen.FeedSnapshot, snap)
		for _, keys := range [][]string{{}, {"a"}, {"a", "tab", " "}, {"esc", "enter"}, {"tab", "tab"}, {"tab", "tab"}} {
			b.press(keys...)
			for _, w := range []int{20, 60, 71, 80, 97, 120, 141, 220} {
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

func TestGoldenFramesOfTheBrokersLetters(t *testing.T) {
	t.Parallel()
	for name, size := range map[string][2]int{"80x24": {80, 24}, "140x40": {140, 40}} {
		b := onLetters(t, &letterActs{}, size[0], size[1])
		b.press("S")
		b.env.Session = nil
		b.reports = nil
		b.press(" ", " ")
		requireGolden(t, "dlq_broker_"+name, b.View())
		b.press("gg", "enter")
		requireGolden(t, "letter_broker_"+name, b.View())
	}
}

// TestASmallTerminalHasLettersBeforeAllElse: the list has all the room that there is,
// below it stands what R would do, and tab brings the groups, which can be marked.
func TestASmallTerminalHasLettersBeforeAllElse(t *testing.T) {
	t.Parallel()
	b := started(t, sample(), 60, 15)
	b.press("5")
	require.Contains(t, b.View(), "884120", "the last of the letters")
	require.Contains(t, b.View(), "waits for a person: no part")
	require.NotContains(t, b.View(), "groups")
	b.press("tab")
	require.Contains(t, b.View(), "groups reason")
	require.Contains(t, b.View(), "PROBLEM")
	b.press(" ")
	require.Len(t, b.letters.Table().Marked(), 2)
	b.press("tab")
	require.Contains(t, b.View(), "2 marked: 1 can be requeued, 0 stale, 0 blocked, 1 other")
	require.NotContains(t, b.View(), "PROBLEM")
}

func TestGroupsAreMarkedInEightyColumns(t *testing.T) {
	t.Parallel()
	b := started(t, sample(), 80, 24)
	b.press("5", "tab", "j", " ")
	require.Contains(t, b.View(), "space marks a whole group")
	require.Equal(t, []string{"5"}, b.letters.Table().Marked())
}
