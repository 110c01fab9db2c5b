package app

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

func TestAProtectedInstallationIsMarkedWithoutColours(t *testing.T) {
	b := started(t, sample(), 80, 24, func(o *Options) { o.Protected, o.Colour = true, "red" })
	require.Contains(t, b.frame()[0], "ATTUNE prod-eu! RO")
}

func TestTheNameOfAnInstallationHasItsColour(t *testing.T) {
	coloured := func(o *Options) { o.Colour, o.Theme = "red", theme.Options{Name: "dark"} }
	require.Contains(t, started(t, sample(), 80, 24, coloured).frame()[0], "\x1b[1;91mprod-eu\x1b[0m")
}

// elsewhere is a second installation that a test can switch to.
type elsewhere struct {
	source *fakeSource
	acts   *fakeActs
	err    error
	closed int
	asked  []string
}

func (e *elsewhere) connect(_ context.Context, name string) (*Installation, error) {
	e.asked = append(e.asked, name)
	if e.err != nil {
		return nil, e.err
	}
	return &Installation{
		Name: name, Colour: "green", Protected: true, Source: e.source, Acts: e.acts, Close: func() { e.closed++ },
	}, nil
}

// twoInstallations is a dashboard of prod-eu that can be turned to staging, which
// has no queue. closed counts how often prod-eu was closed.
func twoInstallations(t *testing.T, acts *fakeActs) (b *bundle, other *elsewhere, closed *int) {
	t.Helper()
	other = &elsewhere{source: empty(), acts: &fakeActs{}}
	closed = new(int)
	b = started(t, sample(), 100, 30, func(o *Options) {
		o.Acts, o.Contexts, o.Connect, o.Close = acts, []string{
			"prod-eu",
			"staging",
		}, other.connect, func() { *closed++ }
	})
	return b, other, closed
}

func TestTurningToAnotherContextBeginsWithNothing(t *testing.T) {
	b, other, closed := twoInstallations(t, &fakeActs{})
	b.press("2", "/", "e", "t", "l", "enter", "p")
	require.Contains(t, b.View(), "etl.load")
	before := b.source.count(screen.FeedQueues)
	b.run(b.switchTo("staging"))
	require.Equal(t, []string{"staging"}, other.asked)
	require.Contains(t, b.frame()[0], "ATTUNE staging! RW")
	require.Equal(t, keymap.InQueues, b.view, "it stays in the view")
	require.NotContains(t, b.View(), "etl", "neither rows nor the filter are kept")
	require.NotContains(t, b.View(), "FROZEN")
	require.Equal(t, 1, *closed)
	require.Zero(t, other.closed)
	require.Positive(t, other.source.count(screen.FeedQueues))
	b.run(b.refresh())
	require.Equal(t, before, b.source.count(screen.FeedQueues), "the other one is asked no more")
	b.Close()
	require.Equal(t, 1, other.closed)
}

func TestTheDetailOfARowThatIsNotElsewhereIsLeft(t *testing.T) {
	b, _, _ := twoInstallations(t, &fakeActs{})
	b.press("3", "enter")
	require.Equal(t, keymap.InExecution, b.view)
	b.run(b.switchTo("staging"))
	require.Equal(t, keymap.InExecutions, b.view)
	require.True(t, quits(t, b, "q"), "there is no way back into another installation")
}

func TestAnswersOfTheInstallationThatWasLeftAreDropped(t *testing.T) {
	b, _, _ := twoInstallations(t, &fakeActs{})
	b.press("2")
	late := b.restart(screen.FeedQueues)
	b.run(b.switchTo("staging"))
	b.run(late)
	require.Empty(t, b.env.Data.Queues.List)
}

func TestAContextThatIsDownCanBeTurnedToAndLeft(t *testing.T) {
	b, other, closed := twoInstallations(t, &fakeActs{})
	down := errors.New("dial tcp 10.0.0.1:5432: connection refused")
	other.source.fail = map[screen.Feed]error{}
	for _, feed := range feedNames() {
		other.source.fail[feed] = down
	}
	b.run(b.switchTo("staging"))
	require.Contains(t, b.frame()[0], "staging! RO  PG ✗ down")
	prod := &elsewhere{source: sample(), acts: &fakeActs{}}
	b.opts.Connect = prod.connect
	b.run(b.switchTo("prod-eu"))
	require.Contains(t, b.frame()[0], "prod-eu! RW  PG ●")
	require.Equal(t, 1, other.closed)
	require.Equal(t, 1, *closed)
	require.True(t, quits(t, b, "q"))
}

func TestAContextThatCannotBePreparedChangesNothing(t *testing.T) {
	b, other, closed := twoInstallations(t, &fakeActs{})
	other.err = errors.New("tui.yaml:4: database_url: the environment variable DB is not set")
	b.run(b.switchTo("staging"))
	require.Contains(t, b.View(), "Not turned to staging: tui.yaml:4: database_url")
	require.Contains(t, b.frame()[0], "ATTUNE prod-eu")
	require.Zero(t, *closed)
	for name, want := range map[string]string{
		"stagin": "did you mean staging?", "elsewhere": "there are prod-eu, staging", "prod-eu": "This is prod-eu.",
		"": "Which context? prod-eu, staging",
	} {
		require.Nil(t, b.switchTo(name))
		require.Contains(t, b.View(), want)
	}
	b.opts.Contexts = nil
	require.Nil(t, b.switchTo("staging"))
	require.Contains(t, b.View(), "tui.yaml names them")
}

func TestTheLastWishCountsAndTheOthersAreClosed(t *testing.T) {
	b, other, closed := twoInstallations(t, &fakeActs{})
	first, second := b.switchTo("staging"), b.switchTo("staging")
	b.run(second)
	require.Contains(t, b.frame()[0], "staging")
	b.run(first)
	require.Equal(t, 1, other.closed, "the abandoned one")
	require.Equal(t, 1, *closed)
}

func TestTurningAsksWhileSomethingRunsAndStopsIt(t *testing.T) {
	acts := &fakeActs{stuckRun: true}
	b, _, closed := twoInstallations(t, acts)
	b.press("2", "j", "A", "p")
	held := b.hold("y")
	require.Nil(t, b.switchTo("staging"))
	require.Contains(t, b.View(), "Still running: Pause core.http_request")
	turned := b.switchTo("staging")
	require.NotNil(t, turned, "the same again means it")
	_, cmd := b.Update(turned())
	require.Contains(t, b.frame()[0], "staging")
	require.Empty(t, b.stage())
	require.Empty(t, b.env.Session, "its log is of this installation")
	require.Zero(t, *closed, "something still runs there")
	for _, run := range held {
		b.run(run)
	}
	require.Contains(t, b.View(), "prod-eu › Pause core.http_request")
	b.run(cmd)
	require.Equal(t, 1, *closed)

	prod := &elsewhere{source: sample(), acts: acts}
	b.opts.Connect = prod.connect
	b.run(b.switchTo("prod-eu"))
	require.Len(t, b.env.Session, 1, "the operations of this session are kept")
}

func TestWhereItIsProtectedItsNameIsTypedToAct(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24, func(o *Options) { o.Protected = true })
	b.press("j", "A", "p")
	require.Contains(t, b.View(), "type prod-eu to confirm")
	b.press("shift+tab", "shift+tab", "y")
	require.Zero(t, acts.count(), "the key is too little")
	b.typed("prod-eu")
	b.press("enter")
	require.Equal(t, 1, acts.count())
}
