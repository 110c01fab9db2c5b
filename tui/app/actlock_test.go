package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

func TestActingIsLockedWithAReason(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(o *Options, s *fakeSource)
		why    string
	}{
		"read only": {
			func(o *Options, _ *fakeSource) { o.ReadOnly = "the dashboard was started with --read-only" },
			"started with --read-only",
		},
		"not ours": {
			func(_ *Options, s *fakeSource) { s.audit = &monitor.Audit{Reading: s.overview.Reading} },
			"has no tables of attune-executor",
		},
		"older": {func(_ *Options, s *fakeSource) { s.audit.Current = false }, "lacks tables of this version"},
		"adopted": {
			func(_ *Options, s *fakeSource) { s.audit.Adopted, s.audit.Replicas = true, 0 },
			"no replica of attune-executor runs on this adopted installation",
		},
		"down": {func(_ *Options, s *fakeSource) {
			s.fail = map[screen.Feed]error{screen.FeedAudit: errors.New("connection refused")}
		}, "has not answered yet: connection refused"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			acts, source := &fakeActs{}, sample()
			if c.why == "has not answered yet: connection refused" {
				source.audit = nil
			}
			b := started(t, source, 140, 40, func(o *Options) { o.Acts = acts; c.change(o, source) })
			b.press("2", "j", "A")
			require.Empty(t, b.stage())
			require.Contains(t, b.View(), "Acting is disabled:")
			require.Contains(t, b.View(), c.why)
			require.Contains(t, b.View(), " RO ")
			require.NotContains(t, b.frame()[39], "A act")
			require.Empty(t, acts.requests)
		})
	}
}

func TestActingIsPossibleWhereTheSchemaIsOurs(t *testing.T) {
	b := acting(t, &fakeActs{}, 80, 24)
	require.Contains(t, b.View(), " RW ")
	require.Contains(t, b.frame()[23], "A act")
}

func TestEveryViewThatNamesTheActKeyHasRowsToActUpon(t *testing.T) {
	b := acting(t, &fakeActs{}, 100, 30)
	for _, view := range keymap.Scopes {
		action, _ := keymap.BuiltIn.Lookup(view, "A")
		_, can := b.screens[view].(screen.Actionable)
		if rows, listed := b.screens[view].(interface{ Actable() bool }); listed {
			can = rows.Actable()
		}
		require.Equal(t, action == keymap.Act, can, view)
	}
}

func TestEveryMenuHasLettersThatDoNotMoveItsCursor(t *testing.T) {
	t.Parallel()
	for _, view := range []screen.View{
		keymap.InQueues, keymap.InQueue, keymap.InExecutions, keymap.InExecution, keymap.InWorkers,
		keymap.InDeadLetters,
		keymap.InWorkflows, keymap.InInquiries,
	} {
		b := acting(t, &fakeActs{}, 100, 30)
		b.open(view)
		b.press("j", "A") // the first of the workers is a queue that none owns
		require.Equal(t, keymap.InMenu, b.stage(), view)
		seen := map[string]bool{}
		for _, item := range onTop[*actMenu](b).acts.Items {
			require.Len(t, item.Key, 1)
			require.False(t, seen[item.Key], "%s %s", view, item.Key)
			seen[item.Key] = true
			action, _ := keymap.BuiltIn.Lookup(keymap.InMenu, item.Key)
			require.Equal(t, keymap.None, action, "%s of %s is taken", item.Key, item.Label)
		}
	}
}

func TestLettersThatArriveTogetherAreSeparateKeys(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("jAp")
	require.Equal(t, keymap.InConfirm, b.stage())
	require.Equal(t, "core.http_request", acts.requests[0].Target.Action)
	b.send(tea.KeyMsg{Type: tea.KeyEsc, Alt: true})
	require.Empty(t, b.stage(), "and two escapes are one")
	b.press("G", "gg")
	require.Equal(t, "47", b.queues.Key(0))
	b.press("A")
	require.Contains(t, onTop[*actMenu](b).acts.Target.Name, "pack.sync")
}

// A terminal sends Alt and a letter as Escape and the letter.
func TestEscapeAndALetterThatArriveTogetherAreTwoKeys(t *testing.T) {
	alt := func(letter rune) tea.KeyMsg {
		return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{letter}, Alt: true}
	}
	b := acting(t, &fakeActs{}, 80, 24)
	b.press("jAp")
	require.Equal(t, keymap.InConfirm, b.stage())
	b.send(alt('A'))
	require.Equal(t, keymap.InMenu, b.stage(), "the question is left and the menu opened")
	b.press("esc")
	b.send(alt('3'))
	require.Equal(t, keymap.InExecutions, b.view)
	b.press("/")
	b.typed("two words")
	b.send(alt('b'))
	require.IsType(t, &filterLine{}, b.top(), "a text field keeps its keys with Alt")
}

func TestDeadLettersHaveKeysOfTheirOwn(t *testing.T) {
	acts := &fakeActs{}
	source := sample()
	for i := range source.dead.Ledger.Recent {
		source.dead.Ledger.Recent[i].Decision = "failed"
	}
	b := started(t, source, 80, 24, func(o *Options) { o.Acts = acts })
	b.press("5", "R")
	require.Equal(t, keymap.InConfirm, b.stage())
	require.Equal(t, act.RequeueDeadLetter, acts.requests[0].Kind)
	b.press("esc", "D")
	require.Equal(t, keymap.InMenu, b.stage(), "it is decided, and the menu says so")
	require.Contains(t, b.View(), "▲ discard: it is decided")
	b.press("esc", "P")
	require.Equal(t, keymap.InForm, b.stage())
	require.Contains(t, b.View(), "expired")
	b.press("esc", "esc", "2", "R")
	require.Empty(t, b.stage(), "elsewhere they mean nothing")
	require.Len(t, acts.requests, 1)
}

func TestAHiddenPlanCannotBeConfirmed(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	b.send(tea.WindowSizeMsg{Width: 40, Height: 10})
	b.press("y", "tab", "enter")
	require.Zero(t, acts.count())
	b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	require.Equal(t, keymap.InConfirm, b.stage())
	b.send(tea.WindowSizeMsg{Width: 40, Height: 10})
	b.press("esc", "A")
	require.Empty(t, b.stage())
}

func TestPastedTextConfirmsNothing(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	b.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("y"), Paste: true})
	require.Zero(t, acts.count())
	b.press("shift+tab")
	b.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("ticket\n4711\x1b[31m"), Paste: true})
	require.NotContains(t, b.View(), "\x1b[31m")
	require.True(t, strings.HasPrefix(onTop[*question](b).confirm.Reason(), "ticket"))
}

func TestTheLogJoinsThisSessionWithTheAudit(t *testing.T) {
	b := acting(t, &fakeActs{}, 100, 30)
	b.press("j", "A", "p", "tab")
	b.typed("disk")
	b.press("tab")
	b.press("tab", "enter")
	require.Equal(t, "disk", b.last().Reason)
	b.source.audit.List = append([]monitor.AuditEntry{{
		ID: 312, At: frozen, Actor: "me@here", Source: "attune-tui", Action: "queue.pause", Target: "core.http_request",
		Outcome: "done",
	}}, b.source.audit.List...)
	b.press("esc", "L")
	require.Equal(t, keymap.InLog, b.view)
	view := b.View()
	require.Equal(t, 1, strings.Count(view, " 312 "), "the same act stands once")
	require.Contains(t, view, "pause queue")
	require.Contains(t, view, "bob@ops-1")
	require.Contains(t, view, "✗ failed")
	b.press("j", "enter")
	require.Contains(t, b.View(), "RECORD")
	require.Contains(t, b.View(), "‹redacted›")
	require.NotContains(t, b.View(), "s3cret")
	b.press("esc")
	require.NotContains(t, b.View(), "RECORD")
	b.press("esc")
	require.Equal(t, keymap.InQueues, b.view)
}

func TestWhyAnExecutionWaitsCanBeReadInFull(t *testing.T) {
	s := sample()
	s.detail = waitingDetail(s.overview.Reading)
	b := started(t, s, 80, 24)
	b.run(b.effect(screen.OpenExecution(884294)))
	require.Contains(t, b.View(), "W shows all")
	b.press("W")
	require.Contains(t, b.View(), "884101 core.http_request running on worker-python-01")
	b.press("esc")
	require.Equal(t, keymap.InExecution, b.view)
	require.Contains(t, b.View(), "W shows all")
}

func TestWaitingForRunningActionsIsBounded(t *testing.T) {
	acts := &fakeActs{stuckRun: true}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	held := b.hold("y")
	ended := make(chan struct{})
	go func() { held[0](); close(ended) }()
	b.Wait(time.Millisecond)
	for _, stop := range b.underWay {
		stop()
	}
	<-ended
	b.Wait(time.Minute)
}

func TestOtherKeysDoNothingWhileADialogIsOpen(t *testing.T) {
	b := acting(t, &fakeActs{}, 80, 24)
	b.press("j", "A", "p")
	for _, key := range []string{"1", "?", "/", "A", "L", "s"} {
		b.press(key)
	}
	b.send(tea.MouseMsg{X: 2, Y: tabLine, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
	require.Equal(t, keymap.InConfirm, b.stage())
	require.Equal(t, keymap.InQueues, b.view)
	require.True(t, quits(t, b, "ctrl+c"))
}

func TestQuittingAsksWhileSomethingRuns(t *testing.T) {
	b := acting(t, &fakeActs{}, 80, 24)
	b.press("j", "A", "p")
	b.hold("y")
	b.press("esc")
	b.parents = nil
	require.False(t, quits(t, b, "q"))
	require.Contains(t, b.View(), "Still running: Pause core.http_request")
	require.True(t, quits(t, b, "q"), "the second one means it")
}
