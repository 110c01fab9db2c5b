package app

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// silent is an installation of which nothing answers.
func silent() *fakeSource {
	s := sample()
	s.fail = map[screen.Feed]error{}
	for _, feed := range feedNames() {
		s.fail[feed] = errors.New("dial tcp 127.0.0.1:5432: connection refused")
	}
	return s
}

func TestWithoutAnAnswerTheAddressesAndTheRemedyAreShown(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{60, 15}, {80, 24}, {140, 40}} {
		b := started(t, silent(), size[0], size[1], func(o *Options) {
			o.Contexts = []string{"prod-eu", "staging"}
			o.Origin = Origin{
				Database: "postgresql://attune:***@localhost:5432/attune", Broker: "http://guest:***@localhost:15672",
				NamedBy: "the defaults, as nothing names servers", Unnamed: true,
				Settings: "/home/a/.config/attune/tui.yaml",
			}
		})
		requireFits(t, b, size[0], size[1])
		require.Contains(t, b.View(), "The database has not answered yet.")
		require.Contains(t, b.View(), "connection refused")
		if size[1] < 24 {
			continue
		}
		for _, want := range []string{
			"attune:***@localhost:5432", "the defaults", "attune-lab demo", "stack up",
			"tui.yaml", ":ctx turns to prod-eu, staging", "r tries at once",
		} {
			require.Contains(t, b.View(), want)
		}
		b.source.fail = nil
		b.run(b.refresh())
		require.NotContains(t, b.View(), "has not answered yet")
	}
}

func TestWhereServersAreNamedTheyAreNotExplained(t *testing.T) {
	b := started(t, silent(), 80, 24, func(o *Options) {
		o.Origin = Origin{Database: "postgresql://db.prod/attune", NamedBy: "--context, tui.yaml:3"}
	})
	require.NotContains(t, b.View(), "stack up")
	require.Contains(t, b.View(), "attune-executor doctor")
	require.Contains(t, b.View(), "--context, tui.yaml:3")
	require.Contains(t, b.View(), "none is named")
	b.source.fail = map[screen.Feed]error{screen.FeedOverview: errors.New("connection refused")}
	b.run(b.refresh())
	b.press("2")
	require.NotContains(t, b.View(), "has not answered yet", "the data is shown")
}

func TestTwoClicksOpenARow(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2")
	b.View() // the mouse needs drawn rows
	click := func(y int) {
		b.send(tea.MouseMsg{X: 5, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
	}
	click(topLines + 2)
	require.Equal(t, keymap.InQueues, b.view)
	b.now = b.now.Add(time.Second)
	click(topLines + 2)
	require.Equal(t, keymap.InQueues, b.view, "that was no double click")
	click(topLines + 1)
	require.Equal(t, keymap.InQueues, b.view, "nor was that")
	click(topLines + 1)
	require.Equal(t, keymap.InQueue, b.view)
}

func TestTheWheelScrollsTheHelp(t *testing.T) {
	b := started(t, sample(), 60, 15)
	b.press("?")
	b.send(tea.MouseMsg{Button: tea.MouseButtonWheelDown})
	b.View()
	require.Equal(t, 1, b.help().scroll)
	b.send(tea.MouseMsg{Button: tea.MouseButtonWheelUp})
	require.Zero(t, b.help().scroll)
}

// A dashboard that is started with its servers connects for a while before it calls them down.
func TestServersMayTakeAWhileToStart(t *testing.T) {
	source := silent()
	starting := fmt.Errorf("overview: %w", syscall.ECONNREFUSED)
	for feed := range source.fail {
		source.fail[feed] = starting
	}
	b := started(t, source, 140, 40, func(o *Options) { o.Origin = Origin{Database: "postgresql://db.prod/attune"} })
	down := []string{"has not answered", "refused", "cannot be read", "does not answer", "down", "crit 1"}
	for range 2 {
		require.Contains(t, b.View(), "Connecting, to read the overview")
		for _, word := range down {
			require.NotContains(t, b.View(), word)
		}
		require.Empty(t, b.env.Findings())
		b.now = b.now.Add(connectTime - time.Second)
		b.run(b.refresh())
	}
	require.Contains(t, b.View(), "The database has not answered yet.")
	require.NotContains(t, b.View(), "Connecting")
	require.NotEmpty(t, b.env.Findings())

	source.fail = nil
	b.run(b.refresh())
	require.NotContains(t, b.View(), "has not answered yet")
	source.fail = map[screen.Feed]error{screen.FeedOverview: starting}
	b.run(b.refresh())
	require.Contains(t, b.View(), "down 0s", "a server that has answered is down at once")
}
