package operations_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/operations"
	"github.com/attune-go/attune/tui/theme"
)

// Rows are built when the session or the records change, never while a frame is drawn.
func TestAFrameOnlyFormatsTheRows(t *testing.T) {
	t.Parallel()
	look, err := theme.New(theme.Options{Plain: true})
	require.NoError(t, err)
	now := time.Unix(1_800_000_000, 0)
	env := &screen.Env{Theme: look, Data: screen.NewData(), Now: now, Clock: now, Width: 80, Height: 19}
	v := operations.New(env)
	drawn := func() string { return strings.Join(v.Render(80, 19), "\n") }
	op := &act.Operation{
		ID: 1, Title: "Pause core.echo", State: act.Planned, Began: now,
		Request: act.Request{Kind: "queue.pause", Target: act.Target{Name: "core.echo"}},
	}
	env.Session = append(env.Session, op)
	require.NotContains(t, drawn(), "core.echo")
	v.SessionChanged()
	first := drawn()
	require.Contains(t, first, "planned")
	require.Equal(t, first, drawn())

	require.NoError(t, v.SetFilter("outcome:failed"))
	require.Zero(t, v.Len())
	op.State, op.Err = act.Failed, "the database is away"
	v.SessionChanged()
	require.Equal(t, 1, v.Len(), "the filter sees the present state")
	require.True(t, v.Do(keymap.Open).Handled)
	require.Contains(t, drawn(), "error    the database is away")
}
