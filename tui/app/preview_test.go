package app

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
)

// previewed is the part of the frame below the list, line by line.
func (b *bundle) previewed() string {
	_, below, _ := strings.Cut(b.View(), "─ preview ")
	return below
}

// The preview is read for each selected row: the explanation, the timeline, and the effect of R.
func TestThePreviewShowsTheSelectedExecution(t *testing.T) {
	b := started(t, sample(), 140, 40)
	b.press("3")
	first := b.executions.Subject()
	require.Equal(t, first, b.env.Data.Glance.ID)
	require.Equal(t, first, b.env.Data.Family.ID)
	for _, want := range []string{
		"timeline   requested", "waited the full TTL", "related    parent 884050 etl-nightly",
		"repeat     R not now",
	} {
		require.Contains(t, b.previewed(), want)
	}
	b.press("j")
	require.NotEqual(t, first, b.executions.Subject())
	require.Equal(t, b.executions.Subject(), b.env.Data.Glance.ID)
	require.Equal(t, b.executions.Subject(), b.env.Data.Family.ID)
	b.press("v")
	require.Zero(t, b.executions.Subject(), "a hidden pane is not read")
	require.NotContains(t, b.View(), "─ preview ")
}

// The preview shows the data of the row until more is read, or if it cannot be read.
func TestThePreviewOfAnExecutionThatCannotBeReadIsItsRow(t *testing.T) {
	data := sample()
	data.detail = nil
	b := started(t, data, 140, 40)
	b.press("3")
	require.Contains(t, b.previewed(), "Worker queue TTL expired")
	require.Contains(t, b.previewed(), "timeline   created")
	require.NotContains(t, b.previewed(), "repeat")
}

// TestThePreviewExplainsAWaitingExecution in a line.
func TestThePreviewExplainsAWaitingExecution(t *testing.T) {
	data := sample()
	data.detail = &monitor.ExecutionDetail{
		Execution: monitor.Execution{Status: "requested", ActionRef: "core.http_request"},
		Why:       []string{"It waits in queue core.http_request:", "  place 3 of 612."},
	}
	b := started(t, data, 140, 40)
	b.press("3")
	require.Contains(t, b.previewed(), "waits      It waits in queue core.http_request: place 3 of 612.")
	require.Contains(t, b.previewed(), "R not now: it has not ended: requested")
}
