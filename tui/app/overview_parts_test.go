package app

import (
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
)

// cursorLine is the line that the cursor stands on.
func cursorLine(b *bundle) string {
	for _, line := range b.frame() {
		if strings.Contains(line, "▶") {
			return line
		}
	}
	return ""
}

// Enter on each list of a wide overview opens its target, and the cursor is on the same row afterwards.
func TestEveryListOfTheOverviewOpensItsTarget(t *testing.T) {
	b := started(t, sample(), 140, 40)
	require.Contains(t, cursorLine(b), "▶")
	b.press("tab", "j")
	name := strings.Fields(strings.SplitN(cursorLine(b), "▶", 2)[1])[0]
	b.press("enter")
	require.Equal(t, keymap.InQueue, b.view)
	require.Contains(t, b.View(), name)
	b.press("esc")
	require.Contains(t, cursorLine(b), name, "the cursor is where it was")

	b.press("tab")
	worker := strings.Fields(strings.SplitN(cursorLine(b), "▶", 2)[1])[0]
	b.press("enter")
	require.Equal(t, keymap.InWorker, b.view)
	require.Contains(t, b.View(), worker)
	b.press("esc", "tab")
	queue := strings.Fields(strings.SplitN(cursorLine(b), "▶", 2)[1])[0]
	b.press("enter")
	require.Equal(t, keymap.InBroker, b.view)
	require.Contains(t, cursorLine(b), queue)
	b.press("esc", "tab")
	require.Contains(t, cursorLine(b), "│ ▶", "a finding again")
	b.press("shift+tab")
	require.Contains(t, cursorLine(b), queue)

	// In a narrow window there is one list.
	b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	first := cursorLine(b)
	b.press("tab")
	require.Equal(t, first, cursorLine(b))
}

// Findings have hints if all have room for them, otherwise a line each, and the rest is counted.
func TestFindingsUseTheHeight(t *testing.T) {
	t.Parallel()
	source := sample()
	source.checks = &monitor.Checks{}
	source.overview.WorkerList = append(source.overview.WorkerList, source.overview.WorkerList[:3]...)
	for _, c := range []struct{ findings, shown, hints int }{{1, 1, 1}, {4, 4, 4}, {9, 9, 0}, {40, 9, 0}} {
		source.overview.Alerts = &alerting.Alerts{Evaluated: true, EvaluatedAt: &frozen}
		for i := range c.findings {
			source.overview.Alerts.Open = append(source.overview.Alerts.Open, alerting.Alert{
				Rule: "queue_head_wait", Target: fmt.Sprint("demo.a", i), Severity: alerting.LevelWarning,
				State:   alerting.AlertFiring,
				Summary: fmt.Sprintf("finding number %d", i), Hint: fmt.Sprintf("hint number %d", i), Since: frozen,
				Fired: &frozen,
			})
		}
		b := started(t, source, 120, 36)
		left := func(line string) bool { return strings.Contains(line, "│     hint number ") }
		require.GreaterOrEqual(t, strings.Count(b.View(), "finding number"), c.shown, b.View())
		hints := 0
		for _, line := range b.frame() {
			if left(line) {
				hints++
			}
		}
		require.Equal(t, c.hints, hints, b.View())
		if c.findings > 20 {
			require.Regexp(t, `… \d+ more`, b.View())
		}
		for line, text := range b.frame() {
			if strings.Contains(text, "finding number 2") {
				b.send(tea.MouseMsg{X: 100, Y: line, Action: tea.MouseActionPress, Button: tea.MouseButtonLeft})
				require.Contains(t, cursorLine(b), "finding number 2", "a click finds the line that it is on")
			}
		}
	}
}

// However many findings there are, the selected one is visible.
func TestTheSelectedFindingIsVisible(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{140, 40}, {80, 24}, {60, 15}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			source := sample()
			source.checks = &monitor.Checks{}
			source.overview.Alerts, source.overview.WorkerList = &alerting.Alerts{
				Evaluated:   true,
				EvaluatedAt: &frozen,
			}, nil
			for i := range 40 {
				source.overview.Alerts.Open = append(source.overview.Alerts.Open, alerting.Alert{
					Rule: "queue_head_wait", Target: fmt.Sprint("demo.a", i), Severity: alerting.LevelWarning,
					State:   alerting.AlertFiring,
					Summary: fmt.Sprintf("finding number %d", i), Since: frozen, Fired: &frozen,
				})
			}
			b := started(t, source, size[0], size[1])
			b.press("G")
			require.Contains(t, cursorLine(b), "finding number")
			last := cursorLine(b)
			b.press("k", "k")
			require.NotEqual(t, last, cursorLine(b))
			require.NotEmpty(t, cursorLine(b))
			b.press("g", "g")
			require.NotContains(t, cursorLine(b), "finding number 3")
		})
	}
}
