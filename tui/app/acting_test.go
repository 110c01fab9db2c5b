package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// fakeActs returns the plans and receipts of a test.
type fakeActs struct {
	mu          sync.Mutex
	requests    []act.Request
	reasons     []string
	runs        int
	word        string
	nothing     string
	planErr     error
	runErr      error
	panics      bool
	partly      bool
	lines       []act.TextLine
	deadLetters []int64
	// stuck keeps plans and runs until their context ends.
	stuckPlan, stuckRun bool
	// told is the reported progress of a run.
	told [2]int64
}

func (f *fakeActs) Plan(ctx context.Context, request act.Request) (*act.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, request)
	if f.stuckPlan {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if f.panics {
		panic("no plan today")
	}
	if f.planErr != nil {
		return nil, f.planErr
	}
	lines := f.lines
	if lines == nil {
		lines = []act.TextLine{
			{Text: "core.http_request  open → paused   4 running, 612 waiting"},
			{},
			{Tone: act.Warn, Text: "Nothing is admitted until it is resumed: 612 executions wait. What runs goes on."},
		}
	}
	return &act.Plan{
		Request: request, Title: "Pause core.http_request", Lines: lines, Word: f.word, Nothing: f.nothing,
		DeadLetters: f.deadLetters,
	}, nil
}

func (f *fakeActs) Run(ctx context.Context, _ *act.Plan, reason string, progress *act.Progress) (*act.Receipt, error) {
	f.mu.Lock()
	f.runs++
	f.reasons = append(f.reasons, reason)
	stuck, err := f.stuckRun, f.runErr
	f.mu.Unlock()
	progress.Set(f.told[0], f.told[1])
	if stuck {
		<-ctx.Done()
		return &act.Receipt{
			Text: "Planned 600: 200 cancelled, 400 still wait.", Partly: true,
			Audits: []int64{313},
		}, ctx.Err()
	}
	return &act.Receipt{
		Text: "1 queue is paused, 612 executions wait.", Next: "A, then u resumes", Audits: []int64{312},
		Partly: f.partly,
	}, err
}

func (f *fakeActs) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs
}

// acting is a model that may act, on the view of the queues.
func acting(t *testing.T, acts *fakeActs, w, h int, change ...func(*Options)) *bundle {
	t.Helper()
	change = append([]func(*Options){func(o *Options) { o.Acts = acts }}, change...)
	b := started(t, sample(), w, h, change...)
	b.press("2")
	return b
}

// hold takes the commands of a key without running them, as if their answers were
// on the way.
func (b *bundle) hold(key string) []tea.Cmd {
	b.t.Helper()
	_, cmd := b.Update(keyMsg(key))
	_, answer := b.Update(deadLetterMsg{b.lastPress})
	return append(flatten(cmd), flatten(answer)...)
}

func flatten(cmd tea.Cmd) []tea.Cmd {
	if cmd == nil {
		return nil
	}
	return []tea.Cmd{cmd}
}

// answers runs the held commands and delivers their messages.
func (b *bundle) answers(held []tea.Cmd) {
	b.t.Helper()
	for _, cmd := range held {
		b.run(cmd)
	}
}

func (b *bundle) typed(text string) {
	b.t.Helper()
	for _, r := range text {
		b.press(string(r))
	}
}

func (b *bundle) last() *act.Operation { return b.env.Session[len(b.env.Session)-1] }

func TestAnActGoesFromItsMenuToItsReceipt(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A")
	require.Equal(t, keymap.InMenu, b.stage())
	require.Contains(t, b.View(), "admit nothing until it is resumed")
	b.press("enter")
	require.Equal(t, keymap.InConfirm, b.stage())
	require.Equal(t, act.PauseQueue, acts.requests[0].Kind)
	require.Equal(t, "core.http_request", acts.requests[0].Target.Action)
	require.Contains(t, b.View(), "Nothing is admitted until it is resumed")
	require.Contains(t, b.View(), "[▶leave it ]", "the button that leaves it has the focus")
	b.press("tab")
	b.typed("yes, maintenance")
	require.Equal(t, keymap.InConfirm, b.stage(), "letters of the reason confirm nothing")
	require.Zero(t, acts.count())
	b.press("tab", "y")
	require.Equal(t, 1, acts.count())
	require.Equal(t, []string{"yes, maintenance"}, acts.reasons)
	require.Empty(t, b.stage())
	view := b.View()
	require.Contains(t, view, "1 queue is paused, 612 executions wait.")
	require.Contains(t, view, "→ A, then u resumes")
	require.Contains(t, view, "audit 312")
	require.Equal(t, act.Done, b.last().State)
	require.Equal(t, 2, b.source.count(screen.FeedQueues), "changed data is read again at once")
	b.press("esc")
	require.NotContains(t, b.View(), "audit 312", "esc takes the report away")
	require.Equal(t, keymap.InQueues, b.view, "and nothing else")
}

func TestAReportOfSuccessLeavesByItself(t *testing.T) {
	b := acting(t, &fakeActs{}, 80, 24)
	b.press("j", "A", "p", "y")
	require.Contains(t, b.View(), "audit 312")
	b.now = b.now.Add(reportTime)
	b.send(clockMsg{})
	require.NotContains(t, b.View(), "audit 312")
}

func TestEnterAloneConfirmsNothing(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "enter", "enter")
	require.Empty(t, b.stage(), "it presses the button that cancels")
	require.Zero(t, acts.count())
	require.Equal(t, act.Dropped, b.last().State)
}

func TestEnterOnTheRunButtonTwiceRunsOnce(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "enter", "right")
	held := b.hold("enter")
	require.Equal(t, keymap.InRunning, b.stage())
	held = append(held, b.hold("y")...)
	held = append(held, b.hold("enter")...) // of the running dialog it is the key that hides it
	b.answers(held)
	require.Equal(t, 1, acts.count())
	require.Contains(t, b.View(), "audit 312", "and it reports although its dialog is gone")
}

func TestYTwiceRunsOnce(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	held := append(b.hold("y"), b.hold("y")...)
	b.answers(held)
	require.Equal(t, 1, acts.count())
}

func TestEscLeavesEveryStage(t *testing.T) {
	t.Parallel()
	t.Run("menu", func(t *testing.T) {
		t.Parallel()
		acts := &fakeActs{}
		b := acting(t, acts, 80, 24)
		b.press("j", "A", "esc")
		require.Empty(t, b.stage())
		require.Empty(t, acts.requests)
		require.Empty(t, b.env.Session)
	})
	t.Run("a form returns to the menu", func(t *testing.T) {
		t.Parallel()
		acts := &fakeActs{}
		b := acting(t, acts, 80, 24)
		b.press("j", "A", "l")
		require.Equal(t, keymap.InForm, b.stage())
		b.press("esc")
		require.Equal(t, keymap.InMenu, b.stage())
		require.Empty(t, acts.requests)
	})
	t.Run("the plan returns to its form", func(t *testing.T) {
		t.Parallel()
		for _, acts := range []*fakeActs{{}, {planErr: errors.New("gone")}} {
			b := acting(t, acts, 80, 24)
			b.press("j", "A", "l")
			b.typed("7")
			b.press("enter")
			require.NotEqual(t, keymap.InForm, b.stage())
			b.press("esc")
			require.Equal(t, keymap.InForm, b.stage())
			require.NotEqual(t, act.Running, b.last().State)
			require.Contains(t, b.View(), "7▌", "the text is still there")
			b.typed("8")
			b.press("enter")
			require.Equal(t, "7", acts.requests[0].Values["limit"])
			require.Equal(t, "8", acts.requests[1].Values["limit"], "typing replaces it")
			b.press("esc", "esc", "esc")
			require.Empty(t, b.stage())
			require.Zero(t, acts.count())
		}
	})
	t.Run("a plan that comes after its form was turned back to opens nothing", func(t *testing.T) {
		t.Parallel()
		b := acting(t, &fakeActs{}, 80, 24)
		b.press("j", "A", "l")
		b.typed("7")
		held := b.hold("enter")
		b.press("esc")
		b.answers(held)
		require.Equal(t, keymap.InForm, b.stage())
		require.Equal(t, act.Dropped, b.last().State)
	})
	t.Run("no leaves the form as well", func(t *testing.T) {
		t.Parallel()
		b := acting(t, &fakeActs{}, 80, 24)
		b.press("j", "A", "l")
		b.typed("7")
		b.press("enter", "n")
		require.Empty(t, b.stage())
	})
	t.Run("planning", func(t *testing.T) {
		t.Parallel()
		acts := &fakeActs{}
		b := acting(t, acts, 80, 24)
		b.press("j", "A")
		held := b.hold("p")
		require.Contains(t, b.View(), "Asking what this would change")
		b.press("esc")
		require.Empty(t, b.stage())
		require.Equal(t, act.Dropped, b.last().State)
		before := b.View()
		b.answers(held)
		require.Empty(t, b.stage(), "a plan that comes late opens nothing")
		require.Equal(t, before, b.View())
		require.Equal(t, act.Dropped, b.last().State)
		require.NotEmpty(t, b.last().Remark)
	})
	t.Run("confirm", func(t *testing.T) {
		t.Parallel()
		acts := &fakeActs{}
		b := acting(t, acts, 80, 24)
		for _, key := range []string{"esc", "n", "q"} {
			b.press("A", "u", "p")
			if b.stage() == keymap.InMenu { // the row under the cursor is paused: u applies
				b.press("esc")
				b.press("j", "A", "p")
			}
			require.Equal(t, keymap.InConfirm, b.stage(), key)
			b.press(key)
			require.Empty(t, b.stage(), key)
			require.Equal(t, act.Dropped, b.last().State)
		}
		require.Zero(t, acts.count())
	})
	t.Run("confirm, while a reason is typed", func(t *testing.T) {
		t.Parallel()
		b := acting(t, &fakeActs{}, 80, 24)
		b.press("j", "A", "p", "tab", "n", "q", "y")
		require.Equal(t, keymap.InConfirm, b.stage())
		require.Equal(t, "nqy", onTop[*question](b).confirm.Reason())
		b.press("esc")
		require.Empty(t, b.stage())
	})
	t.Run("running", func(t *testing.T) {
		t.Parallel()
		acts := &fakeActs{}
		b := acting(t, acts, 80, 24)
		b.press("j", "A", "p")
		held := b.hold("y")
		b.press("esc")
		require.Empty(t, b.stage())
		require.Equal(t, act.Running, b.last().State, "it continues")
		b.press("4")
		b.answers(held)
		require.Equal(t, act.Done, b.last().State)
		require.Contains(t, b.View(), "audit 312", "it reports in another view")
	})
	t.Run("failed", func(t *testing.T) {
		t.Parallel()
		b := acting(t, &fakeActs{planErr: errors.New("gone")}, 80, 24)
		b.press("j", "A", "p")
		require.Equal(t, keymap.InFailed, b.stage())
		b.press("esc")
		require.Empty(t, b.stage())
	})
}

func TestALatePlanDoesNotDisturbTheNextDialog(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A")
	first := b.hold("p")
	b.press("esc", "A")
	second := b.hold("f")
	b.answers(first)
	require.Equal(t, keymap.InPlanning, b.stage(), "the answer is not for this one")
	b.answers(second)
	require.Equal(t, keymap.InConfirm, b.stage())
	require.Equal(t, act.RepairQueue, b.operation().Request.Kind)
	require.Equal(t, act.Dropped, b.env.Session[0].State)
}

func TestARunBehindADialogReportsWithoutChangingIt(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	running := b.hold("y")
	b.press("esc", "j", "A", "p")
	require.Equal(t, keymap.InConfirm, b.stage())
	other := b.operation()
	b.answers(running)
	require.Equal(t, keymap.InConfirm, b.stage())
	require.Same(t, other, b.operation())
	require.Equal(t, act.Done, b.env.Session[0].State)
	require.NotContains(t, b.View(), "audit 312", "nothing is drawn over the question")
	b.press("esc")
	require.Contains(t, b.View(), "audit 312")
}

func TestTheMenuSaysWhyAnActDoesNotApply(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("A") // on the paused queue
	require.Contains(t, b.View(), "not now: it is paused")
	b.press("p")
	require.Equal(t, keymap.InMenu, b.stage())
	require.Contains(t, b.View(), "▲ pause: it is paused")
	require.Empty(t, acts.requests)
	b.press("A")
	require.Equal(t, keymap.InMenu, b.stage(), "the same key opens nothing twice")
}

func TestAFormChecksItsTexts(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "l")
	require.Contains(t, b.View(), "at most at once")
	require.NotContains(t, b.View(), "tab next field", "there is only one")
	b.press("backspace", "0", "enter")
	require.Contains(t, b.View(), "✗ \"0\" is not a limit: it is a number from 1")
	require.Empty(t, acts.requests)
	b.press("backspace", "x", "enter")
	require.Contains(t, b.View(), "✗ \"x\" is not a limit")
	b.press("backspace")
	b.typed("2147483647")
	b.press("enter")
	require.Contains(t, b.View(), "✗ \"2147483647\" is not a limit")
	for range 10 {
		b.press("backspace")
	}
	b.press("8", "enter")
	require.Equal(t, "8", acts.requests[0].Values[act.FieldLimit])
}

func TestTypingReplacesTheNumberOfAForm(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "l")
	require.Contains(t, b.View(), "typing replaces 4")
	b.typed("15")
	b.press("enter")
	require.Equal(t, "15", acts.requests[0].Values[act.FieldLimit])
	b.press("esc", "backspace", "2", "enter")
	require.Equal(t, "12", acts.requests[1].Values[act.FieldLimit], "other keys edit it")
}

func TestPlansForManyRowsNeedATypedWord(t *testing.T) {
	acts := &fakeActs{word: "core.http_request"}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	require.Contains(t, b.View(), "type core.http_request to confirm")
	b.typed("core.http")
	b.press("enter")
	require.Zero(t, acts.count())
	require.Contains(t, b.View(), "✗ type core.http_request to confirm")
	b.press("tab", "tab", "tab", "y")
	require.Zero(t, acts.count(), "the key is too little")
	b.typed("_request")
	b.press("enter")
	require.Equal(t, 1, acts.count())
}

func TestNothingToDoCannotBeConfirmed(t *testing.T) {
	acts := &fakeActs{nothing: "nothing would change"}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	require.Contains(t, b.View(), "Nothing to do: nothing would change")
	keys := b.frame()[23]
	require.NotContains(t, keys, "run it")
	require.NotContains(t, keys, "reason")
	require.Contains(t, keys, "esc back")
	b.press("tab", "y")
	require.Zero(t, acts.count())
	require.Empty(t, b.stage())
	require.Equal(t, "nothing to do: nothing would change", b.last().Remark)
}

func TestAnOldPlanIsNotRun(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	b.now = b.now.Add(act.PlanTTL + time.Second)
	b.press("y")
	require.Zero(t, acts.count())
	require.Contains(t, b.View(), "the plan is 2m01s old")
	b.press("r")
	require.Len(t, acts.requests, 2)
	b.press("y")
	require.Equal(t, 1, acts.count())
	require.Equal(t, act.Dropped, b.env.Session[0].State)
}

func TestAFailedPlanSaysWhyAndCanBeAskedAgain(t *testing.T) {
	acts := &fakeActs{planErr: errors.New("dial tcp 127.0.0.1:5432: connection refused\nand more")}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	require.Contains(t, b.View(), "✗ dial tcp 127.0.0.1:5432: connection refused and more")
	require.Contains(t, b.View(), "Nothing was changed.")
	acts.planErr = nil
	b.press("r")
	require.Equal(t, keymap.InConfirm, b.stage())
	require.Equal(t, acts.requests[0], acts.requests[1])
}

func TestAPlanThatNeverComesEnds(t *testing.T) {
	b := acting(t, &fakeActs{}, 80, 24)
	b.press("j", "A")
	b.hold("p")
	b.send(planMsg{op: b.operation(), err: context.DeadlineExceeded})
	require.Contains(t, b.View(), "✗ no answer within 10s: the database or the broker is busy")
}

func TestAPanicOfAnActIsAnError(t *testing.T) {
	b := acting(t, &fakeActs{panics: true}, 80, 24)
	b.press("j", "A", "p")
	require.Contains(t, b.View(), "✗ the plan failed: no plan today")
}

func TestAFailedRunReportsItsCompletedSteps(t *testing.T) {
	acts := &fakeActs{runErr: errors.New("connection lost")}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p", "y")
	require.Equal(t, keymap.InFailed, b.stage())
	require.Contains(t, b.View(), "✗ connection lost")
	require.Contains(t, b.View(), "1 queue is paused")
	require.NotContains(t, b.View(), "Nothing was changed")
	require.Equal(t, act.Failed, b.last().State)
}

func TestAFailureInTheBackgroundStaysVisible(t *testing.T) {
	b := acting(t, &fakeActs{runErr: errors.New("connection lost")}, 80, 24)
	b.press("j", "A", "p")
	held := b.hold("y")
	b.press("esc")
	b.answers(held)
	b.now = b.now.Add(time.Hour)
	b.send(clockMsg{})
	require.Contains(t, b.View(), "connection lost", "until it is taken away")
	b.press("esc")
	require.NotContains(t, b.View(), "connection lost")
}

func TestStoppingARunKeepsItsCompletedSteps(t *testing.T) {
	acts := &fakeActs{stuckRun: true, told: [2]int64{200, 600}}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	held := b.hold("y")
	messages := make(chan tea.Msg, 1)
	go func() { messages <- held[0]() }()
	b.press("x")
	require.Contains(t, b.View(), "stopping after the step under way")
	msg := <-messages
	b.sendAny(msg)
	require.Equal(t, act.Failed, b.last().State)
	require.Contains(t, b.View(), "stopped; completed steps stay")
	require.Contains(t, b.View(), "200 cancelled")
	require.Contains(t, b.View(), "audit 313")
}

// sendAny feeds an answer back that may be a batch.
func (b *bundle) sendAny(msg tea.Msg) {
	b.t.Helper()
	b.run(func() tea.Msg { return msg })
}

func TestProgressIsShown(t *testing.T) {
	b := acting(t, &fakeActs{}, 80, 24)
	b.press("j", "A", "p")
	b.hold("y")
	b.last().Progress.Set(200, 600)
	b.now = b.now.Add(3 * time.Second)
	b.send(spinMsg{})
	require.Contains(t, b.View(), "Running for 3s   200/600   67/s")
	require.Contains(t, b.View(), "████")
}

func TestNothingMovesBelowADialog(t *testing.T) {
	b := acting(t, &fakeActs{}, 100, 30)
	b.press("s", "2")
	b.press("A")
	before := b.View()
	b.unshare()
	b.source.queues.List = b.source.queues.List[2:]
	q := *b.source.queues
	b.source.queues = &q
	b.run(b.refresh())
	require.Equal(t, before, b.View())
	b.press("esc")
	require.NotContains(t, b.View(), "core.http_request", "data of the meantime is shown then")
	require.Empty(t, b.held)
}

// Answers are held while a dialog is open. The sources answer, so the data below it does not count as old until they
// fail.
func TestDataBelowADialogIsOldOnlyIfItsSourceFails(t *testing.T) {
	b := acting(t, &fakeActs{}, 100, 30)
	poll := func() {
		b.now = b.now.Add(20 * time.Second)
		for _, feed := range []screen.Feed{screen.FeedOverview, screen.FeedBroker, screen.FeedQueues} {
			b.send(dueMsg{feed: feed, gen: b.chain(feed).gen})
		}
	}
	b.press("A")
	poll()
	frame := b.frame()
	require.NotContains(t, frame[2], "old")
	require.Contains(t, frame[0], "PG ● ")
	require.Contains(t, frame[0], "MQ ● ")
	b.press("esc")
	require.NotContains(t, b.frame()[2], "old", "the held rows are shown with their own age")
	b.press("A")
	b.source.fail = map[screen.Feed]error{screen.FeedQueues: errors.New("away")}
	poll()
	require.Contains(t, b.frame()[2], "? last read 20s ago")
}

// The palette lists the acts on the row first, and says why one does not apply.
func TestThePaletteOffersTheActsOfTheRow(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 140, 40)
	b.press("j", ":")
	frame := b.frame()
	at := slices.IndexFunc(frame, func(line string) bool { return strings.Contains(line, "─ Commands ") })
	require.Contains(t, frame[at+1], ":pause ")
	require.Contains(t, frame[at+1], "A p  admit nothing until it is resumed: queue core.http_request")
	require.Contains(t, frame[at+2], "not now: it is not paused")
	b.press("down", "down", "enter")
	require.Contains(t, b.frame()[38], "resume: it is not paused", "an act that does not apply keeps the line open")
	b.press("esc", ":")
	b.typed("pus")
	require.Contains(t, b.View(), ":pause ", "some letters in their order are enough")
	b.press("down", "enter")
	require.Equal(t, keymap.InConfirm, b.stage())
	require.Equal(t, act.PauseQueue, acts.requests[len(acts.requests)-1].Kind)
	b.press("esc", "esc")
	b.press("?", "/")
	b.typed("resumed")
	require.Contains(t, b.View(), "A p       pause: admit nothing until it is resumed", "the search of the help finds acts")
}

func TestThePaletteSaysWhyNothingCanBeDone(t *testing.T) {
	b := started(t, sample(), 140, 40, func(o *Options) { o.Acts, o.ReadOnly = &fakeActs{}, "it is a mirror" })
	b.press("2", "j")
	b.enter("pause")
	require.Contains(t, b.View(), "pause: it is a mirror")
	require.Empty(t, b.stage())
}
