package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/telemetry"
)

// While tracing is off, a batch allocates nothing for it and asks the database nothing.
func TestABatchAllocatesNothingForTracesThatAreOff(t *testing.T) {
	b, logger, ctx := &Batch{scheduler: &Scheduler{}}, telemetry.Discard(), t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b.finish(7)
		if err := b.readTraces(ctx, nil); err != nil || traceHeader(b.position(7)) != "" || b.of(7, logger) != logger {
			t.Error("tracing is off")
		}
	}))
	require.Empty(t, b.finished)
}
