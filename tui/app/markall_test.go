package app

import (
	"errors"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

func TestTheStarMarksEverythingThatMatches(t *testing.T) {
	b := started(t, huge(3_500), 100, 30)
	b.press("3", "*")
	table := b.executions.Table()
	require.Equal(t, 3_500, table.Marks())
	require.Equal(t, 200, b.executions.Len(), "they are marked without being listed")
	require.Contains(t, b.messages(), "All 3\u2009500 that match now are marked.")
	b.now = b.now.Add(toastTime)
	b.press("j")
	require.Equal(t, "3\u2009500 marked", b.messages(), "rows that were not loaded are marked too")
	menu, ok := b.executions.Acts()
	require.True(t, ok)
	require.Len(t, menu.Targets, 3_500)
	require.Equal(t, "3500 marked executions", menu.Target.Name)
	b.press("\\")
	require.Zero(t, table.Marks())
	require.Equal(t, keymap.InExecutions, b.view)
}

// The star also marks rows that were not loaded, in every list that is read by pages.
func TestTheStarMarksAllOfWorkflowsInquiriesAndDeadLetters(t *testing.T) {
	source := longFlows()
	b := started(t, source, 140, 40)
	b.press("6", "*")
	require.Equal(t, 902, b.workflows.Table().Marks())
	menu, _ := b.workflows.Acts()
	require.Len(t, menu.Targets, 902)
	b.press("8", "*")
	require.Equal(t, 800, b.inquiries.Table().Marks())
	require.Len(t, b.exported(t), 800, "rows that were not loaded are exported too")
	b = started(t, longLedger(1_500), 140, 40)
	b.press("5", "/")
	b.typed("action:mail.send")
	b.press("enter", "*")
	require.Equal(t, 500, b.deadLetters.Table().Marks(), "no more than the filter lets through")
	require.Contains(t, b.messages(), "All 500 that match now are marked.")
	menu, _ = b.deadLetters.Acts()
	require.Len(t, menu.Targets, 500)
	require.Equal(t, "dead letter 3", menu.Targets[499].Name)
	require.Len(t, b.exported(t), 500)
}

func TestTheStarMarksAtMostTheTargetsOfOnePlan(t *testing.T) {
	b := started(t, huge(act.MaxTargets+1), 100, 30)
	b.press("3", "*")
	require.Equal(t, act.MaxTargets, b.executions.Table().Marks())
	require.Contains(t, b.messages(),
		"The first 5\u2009000 are marked, which is the most that one plan takes; more match.")
	b = started(t, huge(act.MaxTargets), 100, 30)
	b.press("3", "*")
	require.Contains(t, b.messages(), "All 5\u2009000 that match now are marked.")
	b = started(t, huge(500), 100, 30)
	b.source.bounded = true
	b.press("3", "*")
	require.Contains(t, b.messages(), "500 are marked; the search stopped at its bound; older matches may exist.")
}

// Rows that are read for the star mark neither another list nor another filter. Unmarking stops the read.
func TestRowsReadForMarkingBelongToTheirList(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(b *bundle){
		"filter": func(b *bundle) { b.filter("status:failed") }, "problems": func(b *bundle) { b.press("z") },
		"order": func(b *bundle) { b.press("s", "2") }, "unmark": func(b *bundle) { b.press("\\") },
		"again": func(b *bundle) { b.markAll() },
	} {
		b := started(t, huge(900), 100, 30)
		b.press("3")
		held := b.hold("*")
		require.Contains(t, b.messages(), "marking all that match · esc stops", name)
		loaded := b.executions.Table().Marks()
		meanwhile(b)
		if name == "unmark" {
			loaded = 0
		}
		b.answers(held)
		require.Equal(t, loaded, b.executions.Table().Marks(), name)
	}
	b := started(t, huge(900), 100, 30)
	b.press("3")
	b.source.fail = map[screen.Feed]error{screen.FeedExecutions: errors.New("no answer within 1.5s")}
	b.press("*")
	require.Contains(t, b.messages(), "Only loaded rows are marked: no answer within 1.5s")
	require.Equal(t, 200, b.executions.Table().Marks())
	b.press("1")
	require.Nil(t, b.markAll(), "there is nothing to mark")
}

// The foot says how many match, once for each question and not with every poll.
func TestTheFootSaysHowManyMatch(t *testing.T) {
	b := started(t, huge(6_204), 100, 30)
	b.press("3")
	require.Contains(t, b.View(), " 200 of 6\u2009204 loaded, more below")
	n := len(b.source.counted)
	b.press("j", "j", "r")
	require.LessOrEqual(t, len(b.source.counted), n+1)
	b.filtered("status:failed")
	require.NotEmpty(t, b.source.counted[len(b.source.counted)-1].Statuses, "it is counted again")
	b = started(t, huge(monitor.MatchBound+5), 100, 30)
	b.press("3")
	require.Contains(t, b.View(), " 200 of 10\u2009000+ loaded")
	b = started(t, huge(201), 100, 30)
	b.press("3")
	require.Contains(t, b.View(), " 200 of 201 loaded, more below")
	b.source.list = b.source.list[:200]
	b.send(dueMsg{feed: screen.FeedMatches, gen: b.chain(screen.FeedMatches).gen})
	require.Contains(t, b.View(), " 200 loaded")
	require.NotContains(t, b.View(), "more below", "a full page may be all")
	b = started(t, huge(9), 100, 30)
	b.press("3")
	require.Contains(t, b.View(), " 9 loaded")
	require.Empty(t, b.source.counted, "all are there: nothing is counted")
}

func TestExecutionsAreReadFromTheOldestUp(t *testing.T) {
	b := started(t, huge(1_000), 100, 30)
	b.press("3", "s", "2")
	require.True(t, b.source.filters[len(b.source.filters)-1].Oldest)
	require.Equal(t, "1", b.executions.Key(0))
	title := func() string { return b.frame()[2] }
	require.Contains(t, title(), "oldest first")
	for range 6 {
		b.press("G")
	}
	require.Equal(t, 1_000, b.executions.Len())
	require.Equal(t, "1000", b.executions.Key(999))
	b.press("j", "k")
	b.press("r")
	require.Equal(t, 1_000, b.executions.Len(), "the visible page is read again in its place")
	require.Contains(t, b.View(), "gg returns to the oldest")
	b.press("s", "2")
	require.Contains(t, title(), "newest first", "the same again reverses")
	require.Equal(t, "1000", b.executions.Key(0))
	require.True(t, b.executions.Table().AtTop())
	b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	require.NotEmpty(t, b.View())
}

func TestOlderOperationsAreReadPageByPage(t *testing.T) {
	source := sample()
	audit := *source.audit
	audit.List = nil
	for i := range int64(500) {
		audit.List = append(audit.List, monitor.AuditEntry{
			ID: 900 - i, At: frozen.Add(-time.Duration(i) * time.Minute),
			Actor: "ann", Action: "queue.pause", Outcome: "done",
		})
	}
	source.audit = &audit
	b := started(t, source, 100, 30)
	b.press("L")
	require.Contains(t, b.frame()[2], "200 recorded+")
	for range 4 {
		b.press("G")
	}
	require.Contains(t, b.frame()[2], "500 recorded ")
	require.Equal(t, "audit 401", b.table().Key())
	b.press("r")
	require.Equal(t, "audit 401", b.table().Key())
	require.Contains(t, b.frame()[2], "500 recorded ", "old rows stay while the newest are read again")
}
