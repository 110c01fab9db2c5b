package app

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/screen"
)

// TestTheWholeCauseIsSaidWhereNothingWasRead: what went wrong stands at the end of an
// error.
func TestTheWholeCauseIsSaidWhereNothingWasRead(t *testing.T) {
	t.Parallel()
	source := sample()
	source.fail = map[screen.Feed]error{
		screen.FeedBroker: errors.New(
			"read the broker: list queues: the management API answered 401 Unauthorized: not_authorized Login failed"),
	}
	b := started(t, source, 80, 24)
	b.press("9")
	require.Contains(t, strings.Join(strings.Fields(b.View()), " "), "cannot be read: read the broker: list queues: the management API answered 401 Unauthorized: not_authorized Login failed The dashboard tries again")
}
