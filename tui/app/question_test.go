package app

import (
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
)

func TestTheFirstTabOfAQuestionGoesToTheReason(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"", "core"} {
		acts := &fakeActs{word: word}
		b := acting(t, acts, 80, 24)
		b.press("j", "A", "p", "tab")
		b.typed("hangs since 3h, yes really")
		require.Equal(t, keymap.InConfirm, b.stage())
		require.Equal(t, "hangs since 3h, yes really", onTop[*question](b).confirm.Reason())
		require.Zero(t, acts.count())
	}
}

func TestAReasonTypedOnAButtonAnswersNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"hangs since 3h, yes really", "yes, by ann", "no longer needed", "y es", "retry of 4711", "error in q3",
		"customer asked", "quiet please",
	} {
		acts := &fakeActs{}
		b := acting(t, acts, 80, 24)
		b.press("j", "A", "p")
		b.quickly(text)
		require.Equal(t, keymap.InConfirm, b.stage(), text)
		require.Equal(t, text, onTop[*question](b).confirm.Reason())
		require.Zero(t, acts.count(), text)
		require.Len(t, acts.requests, 1, text)
		b.press("enter", "y")
		require.Equal(t, []string{text}, acts.reasons)
	}
}

func TestLettersThatArriveTogetherAnswerNothing(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	b.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("yes")})
	b.pause()
	require.Zero(t, acts.count())
	require.Equal(t, "yes", onTop[*question](b).confirm.Reason())
}

func TestALetterTypedIntoANoticeInARowClosesNothing(t *testing.T) {
	b := acting(t, &fakeActs{nothing: "nothing would change"}, 80, 24)
	b.press("j", "A", "p")
	b.quickly("nobody uses it")
	require.Equal(t, keymap.InConfirm, b.stage())
	b.press("n")
	require.Empty(t, b.stage())
}

func TestALetterOnAButtonShowsAtOnceAndCountsAfterAPause(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	b.send(keyMsg("y"))
	require.Contains(t, b.View(), "[▶pause ]")
	require.Zero(t, acts.count())
	b.send(keyMsg("y")) // a key that repeats is one answer
	b.pause()
	require.Equal(t, 1, acts.count())
}

func TestAKeyAfterAnAnswerIsNotForTheViewBelow(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("j", "A", "p")
	b.send(keyMsg("n"))
	b.send(keyMsg("enter"))
	require.Empty(t, b.stage())
	require.Equal(t, keymap.InQueues, b.view)
	b.pause()
	require.Equal(t, keymap.InQueues, b.view)
	require.Zero(t, acts.count())
}
