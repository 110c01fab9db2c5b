package inquiries

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

// A search that has found nothing yet says so. G searches its next page, also behind an empty one.
func TestASearchThatFindsNothingGoesOn(t *testing.T) {
	t.Parallel()
	th, err := theme.New(theme.Options{Plain: true})
	require.NoError(t, err)
	env := &screen.Env{Data: screen.NewData(), Theme: th, Width: 100, Height: 30}
	v := New(env)
	require.NoError(t, v.SetFilter("text"))
	answer := func(from, next string, ids ...int64) {
		page := &monitor.InquiryPage{From: from, Next: next, Bounded: next != ""}
		for _, id := range ids {
			page.List = append(page.List, monitor.Inquiry{ID: id, Status: monitor.InquiryResponded})
		}
		env.Data.Inquiries = page
		v.Changed(screen.FeedInquiries)
	}
	answer("", "ended-900")
	require.Contains(t, strings.Join(v.Render(100, 30), "\n"), "No match yet, and only a part was searched: G goes on.")
	require.Empty(t, v.From(), "it does not go on by itself")
	require.Equal(t, screen.FeedInquiries, v.Do(keymap.Bottom).Refetch)
	require.Equal(t, "ended-900", v.From())
	answer("ended-900", "ended-500")
	require.Empty(t, v.From())
	answer("", "ended-910") // a poll of the newest
	v.Do(keymap.Bottom)
	require.Equal(t, "ended-500", v.From(), "it goes on where it stopped")
	answer("ended-500", "", 77)
	require.Equal(t, 1, v.Len())
	answer("", "ended-920")
	require.Equal(t, 1, v.Len(), "what was found stays")
}
