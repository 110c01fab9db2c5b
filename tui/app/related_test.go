package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// related are the views in which o works, with the keys that lead to a row.
var related = map[screen.View][]string{
	keymap.InDeadLetters: {"5", "j", "j"}, keymap.InDeadLetter: {"5", "j", "j", "enter"}, keymap.InAlerts: {"7"},
	keymap.InWorkflows: {"6"},
	keymap.InInquiries: {"8"}, keymap.InBroker: {"9"}, keymap.InExecutions: {"3"}, keymap.InQueues: {"2"},
	keymap.InWorkers: {"4"},
}

// In each menu a letter opens one thing, and every line opens something, names the key, or gives the reason.
func TestLettersOfRelatedThingsAreUnambiguous(t *testing.T) {
	t.Parallel()
	for view, keys := range related {
		b := started(t, sample(), 140, 40)
		b.press(keys...)
		require.Equal(t, view, b.view)
		b.press("o")
		require.Equal(t, keymap.InRelated, b.stage(), view)
		require.NotEmpty(t, onTop[*relatedMenu](b).relations)
		seen := map[string]string{}
		for _, r := range onTop[*relatedMenu](b).relations {
			require.Empty(t, seen[r.Key], "%s: %s and %s", view, seen[r.Key], r.Label)
			seen[r.Key] = r.Label
			require.True(t, r.Not != "" || r.To.Open.View != "" || r.To.Note != "",
				"%s: %s leads nowhere and says nothing", view, r.Label)
		}
		for _, w := range []int{60, 80, 140} {
			b.width, b.height = w, 24
			requireFits(t, b, w, 24)
		}
	}
}

// TestEveryRelationLeadsToItsView: and its filter is understood there.
func TestEveryRelationLeadsToItsView(t *testing.T) {
	t.Parallel()
	for view, keys := range related {
		b := started(t, sample(), 140, 40)
		b.press(keys...)
		b.press("o")
		for _, r := range onTop[*relatedMenu](b).relations {
			if r.Not != "" {
				continue
			}
			c := started(t, sample(), 140, 40)
			c.press(keys...)
			c.press("o", r.Key)
			require.Empty(t, c.stage(), "%s: %s", view, r.Label)
			if r.To.Open.View == "" {
				require.Equal(t, r.To.Note, c.toast, "%s: %s", view, r.Label)
				continue
			}
			require.Equal(t, r.To.Open.View, c.view, "%s: %s", view, r.Label)
			if f, ok := c.screen().(screen.Filterable); ok && r.To.Open.Filter != "" {
				require.Equal(t, r.To.Open.Filter, f.Filter(), "%s: %s: %s", view, r.Label, c.toast)
			}
		}
	}
}

// TestADeadLetterOpensFromElsewhere opens one that is not in the list; esc returns.
func TestADeadLetterOpensFromElsewhere(t *testing.T) {
	source := sample()
	source.family.DeadLetters[0].ID = 3
	acts := &deadLetterActs{}
	b := started(t, source, 140, 40, func(o *Options) { o.Acts = acts })
	b.open(keymap.InExecution)
	b.press("o", "d")
	require.Equal(t, keymap.InDeadLetter, b.view)
	require.Contains(t, b.View(), "dead letter 3")
	require.Contains(t, b.View(), "MESSAGE SAYS")
	require.NotContains(t, b.View(), " of 5", "it is not one of a list")
	b.press(" ")
	require.Contains(t, b.View(), "marked in their list")
	b.press("j", "j")
	require.Equal(t, int64(3), b.deadLetter.ID(), "rows are lines of the document")
	b.press("R")
	require.Equal(t, int64(3), acts.requests[len(acts.requests)-1].Target.ID)
	b.press("esc", "o", "x")
	require.Equal(t, int64(884301), b.execution.ID())
	b.press("[")
	require.Equal(t, keymap.InDeadLetter, b.view)
	require.Equal(t, int64(3), b.deadLetter.ID(), "the history has the id of the dead letter")
	b.press("5", "enter")
	require.Equal(t, int64(5), b.deadLetter.ID(), "from the list it is the one under the cursor")
	b.press("[", "[")
	require.Equal(t, int64(3), b.deadLetter.ID())
}

// TestADeletedDeadLetterIsNamed.
func TestADeletedDeadLetterIsNamed(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.run(b.effect(screen.OpenDeadLetter(99)))
	require.Equal(t, keymap.InDeadLetter, b.view)
	require.Contains(t, b.View(), "dead letter 99 cannot be read")
	b.press("A", "D", "o", "esc", "enter", "tab", "j")
	requireFits(t, b, 80, 24)
}
