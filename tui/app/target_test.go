package app

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// The target is checked for each dead letter: whether it exists, its queues, and their consumers.
func TestTheTargetOfARequeueIsChecked(t *testing.T) {
	b := onDeadLetters(t, &deadLetterActs{})
	b.press("j", "j", "enter") // a dispatch, whose execution is repeated
	require.Equal(t, keymap.InDeadLetter, b.view)
	for _, text := range []string{
		"✓ exchange attune.executions exists", "✓ execution.requested routes to 1 queue",
		"attune.execution.requests.queue has",
	} {
		require.Contains(t, b.View(), text)
	}
	for range 8 {
		b.press("k") // the event, which is sent to its own exchange
		if _, key, ok := b.deadLetter.Target(); ok && key != "execution.requested" {
			require.Contains(t, b.View(), "▲ "+key+" routes to no queue")
			return
		}
	}
	require.Fail(t, "the menu has no action that sends dead letters")
}

// While the broker does not answer, nothing is known of a target.
func TestAnUnknownTargetIsNotConfirmed(t *testing.T) {
	source := sample()
	source.fail = map[screen.Feed]error{screen.FeedRoute: errors.New("cut off")}
	b := started(t, source, 140, 40, func(o *Options) { o.Acts = &deadLetterActs{} })
	b.press("5", "j", "j", "enter")
	require.Contains(t, b.View(), "where execution.requested leads is unknown: cut off")
	require.NotContains(t, b.View(), "exchange attune.executions exists")
}
