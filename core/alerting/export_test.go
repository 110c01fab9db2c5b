package alerting

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
)

// Unwell are the states of workers with a finding.
func Unwell() []monitor.WorkerHealth { return unwell }

// Firing counts the alerts that fire, those behind worse ones left out.
func (a *Alerts) Firing(level Level) (n int) {
	for _, one := range a.Open {
		if one.Severity == level && one.State == AlertFiring && !one.Behind {
			n++
		}
	}
	return n
}

// record records the activity of the last minutes.
func record(t *testing.T, st *store.Store) {
	t.Helper()
	_, err := RecordActivity(t.Context(), st, 0)
	require.NoError(t, err)
}
