package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/app"
	"github.com/attune-go/attune/tui/settings"
)

// TestHintsBelongToTheFirstSession: until their end was remembered, not in a frame that
// is printed, and not where tui.yaml says no.
func TestHintsBelongToTheFirstSession(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	shown := func(s *launcher) app.Options { return s.shown(&app.Installation{}).app }
	first := shown(&launcher{file: &settings.Settings{}})
	require.True(t, first.Hints)
	require.False(t, shown(&launcher{file: &settings.Settings{NoHints: true}}).Hints)
	require.False(t, shown(&launcher{file: &settings.Settings{}, opts: options{snapshot: "queues"}}).Hints)
	require.NoError(t, first.HintsEnded())
	require.FileExists(t, filepath.Join(state, "attune", "hints-seen"))
	require.False(t, shown(&launcher{file: &settings.Settings{}}).Hints)
}
