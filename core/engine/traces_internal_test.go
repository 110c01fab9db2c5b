package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// While tracing is off, a lane allocates nothing for the span of a batch.
func TestALaneAllocatesNothingForSpansThatAreOff(t *testing.T) {
	l, b := &lane{shared: &shared{}}, &load{items: make([]item, 100)}
	require.Zero(t, testing.AllocsPerRun(100, func() { l.trace(b) }))
}
