package app

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

var update = flag.Bool("update", false, "write the golden frames again")

// open opens a view, also one of a single thing.
func (b *bundle) open(view screen.View) {
	b.t.Helper()
	if view == keymap.InExecution {
		b.press("3")
		b.run(b.effect(screen.OpenOne(view, 884301)))
		return
	}
	if view == keymap.InXray {
		b.run(b.effect(screen.OpenOne(view, 884301)))
		return
	}
	if view == keymap.InWorker {
		b.press("4")
		b.run(b.effect(screen.OpenWorker(7)))
		return
	}
	if view == keymap.InQueue {
		b.press("2")
		b.run(b.effect(screen.OpenOne(view, 44)))
		return
	}
	b.run(b.goTo(view))
}

// passes lets time pass in steps of a minute, in which queues grow and shrink.
func (b *bundle) passes(minutes int) {
	for i := range minutes {
		b.unshare()
		b.later(time.Minute)
		grow := int64(20 + 13*(i%5) - 7*(i%3))
		b.source.overview.Queues.Queued += grow
		b.source.overview.Queues.Completed += grow * 7
		for j := range b.source.queues.List {
			q := &b.source.queues.List[j]
			q.Queued = max(0, q.Queued+grow-int64(10*j))
			q.Completed += int64(5 * (j + i%4))
		}
		for j := range b.source.workers.List {
			b.source.workers.List[j].Assigned = ptr(int64((i*(j+3) + j) % 9))
		}
	}
}

// unshare gives the source its own copies of lists that the model has.
func (b *bundle) unshare() {
	s := b.source
	s.queues.List, s.workers.List = slices.Clone(s.queues.List), slices.Clone(s.workers.List)
}

// later moves the clock and polls all visible feeds again, so that rates and trends have two points.
func (b *bundle) later(d time.Duration) {
	b.now = b.now.Add(d)
	b.dates()
	b.source.overview.Queues.Completed += 412
	b.run(b.refresh())
}

// dates gives every answer the present time, in new copies.
func (b *bundle) dates() {
	s := b.source
	o, q, w, d, x, one := *s.overview, *s.queues, *s.workers, *s.dead, *s.detail, *s.queue
	o.At, q.At, w.At, d.At, x.At, one.At = b.now, b.now, b.now, b.now, b.now, b.now
	if o.Replicas != nil {
		replicas := *o.Replicas
		replicas.At = b.now
		o.Replicas = &replicas
	}
	s.overview, s.queues, s.workers, s.dead, s.detail, s.queue = &o, &q, &w, &d, &x, &one
}

func TestGoldenFrames(t *testing.T) {
	t.Parallel()
	for _, view := range keymap.Scopes {
		for _, size := range [][2]int{{80, 24}, {140, 40}} {
			name := fmt.Sprintf("%s_%dx%d", view, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := setup(t, sample())
				b.now = frozen.Add(-20 * time.Minute)
				b.dates()
				b.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
				b.run(b.Init())
				b.open(view)
				b.passes(20)
				requireGolden(t, name, b.View())
			})
		}
	}
	for _, size := range [][2]int{{80, 24}, {140, 40}} {
		history := fmt.Sprintf("history_%dx%d", size[0], size[1])
		t.Run(history, func(t *testing.T) {
			t.Parallel()
			source := sample()
			source.past = samplePast(frozen)
			requireGolden(t, history, started(t, source, size[0], size[1]).View())
		})
		name := fmt.Sprintf("waiting_%dx%d", size[0], size[1])
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := sample()
			source.detail = waitingDetail(source.overview.Reading)
			b := started(t, source, size[0], size[1])
			b.run(b.effect(screen.OpenExecution(884294)))
			requireGolden(t, name, b.View())
		})
	}
	t.Run("hints_80x24", func(t *testing.T) {
		t.Parallel()
		requireGolden(t, "hints_80x24", started(t, sample(), 80, 24, func(o *Options) { o.Hints = true }).View())
	})
	t.Run("help_80x24", func(t *testing.T) {
		t.Parallel()
		b := started(t, sample(), 80, 24)
		b.press("2", "?")
		requireGolden(t, "help_80x24", b.View())
	})
	t.Run("help_140x40", func(t *testing.T) {
		t.Parallel()
		b := started(t, sample(), 140, 40)
		b.press("2", "?")
		requireGolden(t, "help_140x40", b.View())
	})
	t.Run("empty_80x24", func(t *testing.T) {
		t.Parallel()
		requireGolden(t, "empty_80x24", started(t, empty(), 80, 24).View())
	})
	t.Run("down_80x24", func(t *testing.T) {
		t.Parallel()
		b := started(t, sample(), 80, 24)
		down := errors.New("dial tcp 127.0.0.1:5432: connection refused")
		b.source.fail = map[screen.Feed]error{screen.FeedOverview: down, screen.FeedChecks: down}
		b.now = b.now.Add(34 * time.Second)
		b.run(b.refresh())
		b.now = b.now.Add(10 * time.Second)
		requireGolden(t, "down_80x24", b.View())
	})
}

func requireGolden(t *testing.T, name, frame string) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestEveryFrameFitsTheWindow(t *testing.T) {
	t.Parallel()
	sets := map[string]func() *fakeSource{
		"sample": sample, "empty": empty, "hostile": hostile, "huge": func() *fakeSource { return huge(500) },
		"nothing read": func() *fakeSource {
			s := sample()
			s.fail = map[screen.Feed]error{}
			for _, feed := range feedNames() {
				s.fail[feed] = errors.New("\x1b[31mconnection refused\n" + strings.Repeat("x", 500))
			}
			return s
		},
	}
	for name, set := range sets {
		for _, view := range keymap.Scopes {
			t.Run(name+"/"+string(view), func(t *testing.T) {
				t.Parallel()
				b := started(t, set(), 80, 24, func(o *Options) { o.Theme = theme.Options{Name: "dark"} })
				b.open(view)
				widths := testkit.Some(t, []int{20, 59, 60, 71, 80, 97, 120, 141, 220}, 3)
				heights := []int{6, 15, 24, 31, 70}
				for i, cover := range []func(){
					func() {}, func() { b.push(&help{}) },
					func() { b.pop(); b.openPalette("q ") }, func() { b.pop(); b.press("o") },
				} {
					b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
					cover()
					for x, w := range widths {
						for y, h := range heights {
							// What covers a view is drawn alike over all of them: each width meets one height here.
							if i > 0 && y != (x+i)%len(heights) {
								continue
							}
							b.send(tea.WindowSizeMsg{Width: w, Height: h})
							requireFits(t, b, w, h)
						}
					}
				}
			})
		}
	}
}

// Drawing in other sizes must not scroll, resize or reorder anything.
func TestRenderingInOtherSizesChangesNothing(t *testing.T) {
	t.Parallel()
	for _, view := range keymap.Scopes {
		t.Run(string(view), func(t *testing.T) {
			t.Parallel()
			b := started(t, huge(500), 120, 30, func(*Options) {})
			b.open(view)
			b.press("ctrl+d", "ctrl+d", "k", "w")
			first := b.View()
			for _, size := range [][2]int{{70, 12}, {220, 70}, {60, 3}} {
				b.screen().Render(size[0], size[1])
				require.Equal(t, first, b.View())
			}
		})
	}
}

// It returns the frame.
func requireFits(t *testing.T, b *bundle, w, h int) string {
	t.Helper()
	frame := b.View()
	lines := strings.Split(frame, "\n")
	require.Len(t, lines, h, "%dx%d", w, h)
	for i, line := range lines {
		if ansi.StringWidth(line) > w { // asked of each of a million lines, and so without the checker's reflection
			require.Failf(t, "a line is too wide", "line %d of %dx%d: %q", i, w, h, line)
		}
	}
	return frame
}

func TestTextFromRowsIsInert(t *testing.T) {
	t.Parallel()
	for _, view := range keymap.Scopes {
		t.Run(string(view), func(t *testing.T) {
			t.Parallel()
			b := started(t, hostile(), 140, 40)
			b.open(view)
			b.press("j", "tab")
			for _, bad := range []string{"\x1b", "\a", "\r", "\u202e", "\u200b", "\u009b", "\x9b"} {
				require.NotContains(t, b.View(), bad)
			}
		})
	}
}

func TestSecretsAreMasked(t *testing.T) {
	b := started(t, sample(), 140, 40)
	b.open(keymap.InExecution)
	require.NotContains(t, b.View(), "Bearer abc")
	require.Contains(t, b.View(), "‹redacted›")
	require.Contains(t, b.View(), "9007199254740993", "large numbers keep every digit")
}

func TestASCIIDrawsNothingElse(t *testing.T) {
	t.Parallel()
	for _, view := range keymap.Scopes {
		b := started(t, sample(), 140, 40, func(o *Options) { o.Theme.ASCII = true })
		b.open(view)
		b.later(time.Minute)
		for _, r := range b.View() {
			require.Less(t, r, rune(128), "%s draws %q", view, r)
		}
	}
}

func TestMeaningSurvivesWithoutColour(t *testing.T) {
	b := started(t, sample(), 100, 30, func(o *Options) { o.Theme = theme.Options{NoColor: true} })
	b.press("2", "j")
	view := b.View()
	require.Contains(t, view, "▶", "the cursor has a mark")
	require.Contains(t, view, "\x1b[7m", "and is reversed")
	require.NotContains(t, view, "\x1b[3", "no colour is set")
	require.NotContains(t, view, "\x1b[9")
}

func BenchmarkView(b *testing.B) {
	t := &testing.T{}
	for _, view := range []screen.View{keymap.InOverview, keymap.InQueues, keymap.InExecutions, keymap.InWorkers} {
		b.Run(string(view), func(b *testing.B) {
			m := polled(t, huge(100_000), 140, 40, func(o *Options) { o.Theme = theme.Options{Name: "dark"} })
			if view == keymap.InExecutions {
				m.press("3")
				for len(m.source.list) > 0 && m.executions.Len() < 9_000 {
					m.press("end")
				}
			}
			m.open(view)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				m.press("j")
				_ = m.View()
			}
		})
	}
}
