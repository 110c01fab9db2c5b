package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

// stages bring a model to each stage of a dialog.
var stages = map[string]func(b *bundle, acts *fakeActs){
	"menu": func(b *bundle, _ *fakeActs) { b.press("j", "A") },
	"form": func(b *bundle, _ *fakeActs) { b.press("j", "A", "c"); b.typed("10x"); b.press("enter") },
	"planning": func(b *bundle, _ *fakeActs) {
		b.press("j", "A")
		b.hold("p")
	},
	"confirm": func(b *bundle, _ *fakeActs) {
		b.press("j", "A", "p", "tab")
		b.typed("the partner is away until noon")
	},
	"typed": func(b *bundle, acts *fakeActs) {
		acts.word = "core.http_request"
		acts.lines = []act.TextLine{
			{Text: "All waiting executions are cancelled: 612 executions in 1 queue."},
			{Text: "  core.http_request  612 waiting, the oldest since 02:05:02Z"},
			{Tone: act.Note, Text: "Running executions continue. Later requests are not touched. Executions promoted meanwhile keep their slots."},
			{},
			{Tone: act.Danger, Text: "This cannot be undone. A retry makes new executions, at the end of the queue."},
		}
		b.press("j", "A", "p")
		b.typed("core.http")
		b.press("enter")
	},
	"running": func(b *bundle, _ *fakeActs) {
		b.press("j", "A", "p")
		b.hold("y")
		b.last().Progress.Set(400, 612)
		b.now = b.now.Add(2 * time.Second)
		b.send(spinMsg{})
	},
	"receipt": func(b *bundle, _ *fakeActs) { b.press("j", "A", "p", "y") },
	"failure": func(b *bundle, acts *fakeActs) {
		acts.runErr = errors.New("clear core.http_request after 400 cancelled: the database does not answer")
		b.press("j", "A", "p", "y")
	},
	"log": func(b *bundle, acts *fakeActs) {
		b.press("j", "A", "p", "tab")
		b.typed("the partner is away")
		b.press("tab", "y")
		b.press("esc", "A", "esc", "A", "p", "esc")
		acts.planErr = errors.New("connection refused")
		b.press("A", "f", "esc")
		b.source.audit.List = append([]monitor.AuditEntry{{
			ID: 312, At: frozen, Actor: "me@here", Source: "attune-tui", Action: "queue.pause",
			Target: "core.http_request", Outcome: "done",
			Reason: "the partner is away",
		}}, b.source.audit.List...)
		b.press("L")
	},
}

func TestGoldenFramesOfActing(t *testing.T) {
	t.Parallel()
	for name, bring := range stages {
		for _, size := range [][2]int{{80, 24}, {140, 40}} {
			t.Run(fmt.Sprintf("%s_%dx%d", name, size[0], size[1]), func(t *testing.T) {
				t.Parallel()
				acts := &fakeActs{}
				b := acting(t, acts, size[0], size[1])
				bring(b, acts)
				requireGolden(t, fmt.Sprintf("act_%s_%dx%d", name, size[0], size[1]), b.View())
			})
		}
	}
}

func TestEveryFrameOfActingFitsTheWindow(t *testing.T) {
	t.Parallel()
	evil := "\x1b[2J\x1b]0;owned\a\u202Eevil\r\n世界世界\u200b👩‍👩‍👧‍👦 \x9b31m" + strings.Repeat("界", 80)
	for name, bring := range stages {
		for _, hostile := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", name, hostile), func(t *testing.T) {
				t.Parallel()
				acts := &fakeActs{}
				b := acting(t, acts, 80, 24, func(o *Options) { o.Theme = theme.Options{Name: "dark"} })
				bring(b, acts)
				if hostile {
					b.poison(evil)
				}
				for _, w := range testkit.Some(t, []int{20, 60, 71, 80, 120, 220}, 3) {
					for _, h := range []int{6, 15, 24, 70} {
						b.send(tea.WindowSizeMsg{Width: w, Height: h})
						requireFits(t, b, w, h)
						require.False(t, strings.ContainsAny(b.View(), "\a\r\u202e\u200b") ||
							strings.Contains(b.View(), "\x1b[2J"))
					}
				}
			})
		}
	}
}

// poison writes a text that tries to break out of its place into all that a
// dialog shows.
func (b *bundle) poison(evil string) {
	switch o := b.top().(type) {
	case *actMenu:
		o.title = evil
	case *form:
		o.item.Target.Name = evil
	}
	for _, op := range b.env.Session {
		op.Err, op.Reason, op.Remark = evil, evil, evil
		op.Request.Target.Name = evil
		if op.Receipt != nil {
			op.Receipt = &act.Receipt{
				Text: evil, Lines: slices.Repeat([]act.TextLine{{Text: evil}}, 30), Next: evil,
				Audits: []int64{1, 2},
			}
		}
	}
	if q, ok := b.top().(*question); ok {
		plan := &act.Plan{
			Title: evil, Lines: slices.Repeat([]act.TextLine{{Tone: act.Danger, Text: "  " + evil}}, 30),
			Word: evil,
		}
		q.op.State = act.Planning
		b.replace(&planning{item: q.item, op: q.op, cancel: func() {}})
		b.send(planMsg{op: q.op, plan: plan})
	}
}

func TestActingDrawsNothingButASCIIWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, bring := range stages {
		acts := &fakeActs{}
		b := acting(t, acts, 100, 30, func(o *Options) { o.Theme.ASCII = true })
		bring(b, acts)
		for _, r := range b.View() {
			require.Less(t, r, rune(128), "%s draws %q", name, r)
		}
	}
}

func TestADialogIsReadableWithoutColour(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24, func(o *Options) { o.Theme = theme.Options{NoColor: true} })
	b.press("j", "A")
	require.Contains(t, b.View(), "▶ p  pause", "the line under the cursor has a mark")
	require.NotContains(t, b.View(), "\x1b[3")
	b.press("p")
	require.Contains(t, b.View(), "[▶leave it ]", "the button in focus has a mark")
}

func TestADialogWorksOnTheSmallestScreen(t *testing.T) {
	acts := &fakeActs{word: "core.http_request"}
	b := acting(t, acts, 60, 15)
	b.press("j", "A")
	require.Contains(t, b.View(), "clear")
	b.press("p")
	require.Contains(t, b.View(), "type core.http_request to confirm")
	require.Contains(t, b.View(), "leave it")
	b.typed("core.http_request")
	b.press("enter")
	require.Equal(t, 1, acts.count())
	require.Contains(t, b.View(), "audit 312")
}

func TestTheAuditIsPolledSlowlyUnlessTheLogIsOpen(t *testing.T) {
	b := acting(t, &fakeActs{}, 80, 24)
	due := b.timers.due(screen.FeedAudit)
	require.Equal(t, auditEvery, due[len(due)-1].after)
	b.press("L")
	due = b.timers.due(screen.FeedAudit)
	require.Equal(t, DefaultRefresh, due[len(due)-1].after)
	require.Equal(t, 2, b.source.count(screen.FeedAudit))
}
