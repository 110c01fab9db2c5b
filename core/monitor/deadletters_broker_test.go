package monitor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/lab/testkit"
)

// TestWithoutALedgerThereIsNone: nothing else is shown in place of it.
func TestWithoutALedgerThereIsNone(t *testing.T) {
	b := setup(t, nil)
	testkit.Exec(t, b.Store, `drop table dead_letter cascade`)
	d, err := b.DeadLetters(t.Context())
	require.NoError(t, err)
	require.Nil(t, d.Ledger)
}

// TestTheOperatorWhoActsIsNamed while an act on many dead letters runs.
func TestTheOperatorWhoActsIsNamed(t *testing.T) {
	b := setup(t, nil)
	lock, err := b.Store.LockSession(t.Context(), deadletter.LockName(DeadLetterQueue), "attune-tui bob@desk")
	require.NoError(t, err)
	d, err := b.DeadLetters(t.Context())
	require.NoError(t, err)
	require.Equal(t, "attune-tui bob@desk", d.Running)
	lock.Release(t.Context())
	d, err = b.DeadLetters(t.Context())
	require.NoError(t, err)
	require.Empty(t, d.Running)
}
