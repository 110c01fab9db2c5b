package triage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// A run ends after three failures in a row, and leaves the rows behind them.
func TestARunEndsAfterThreeFailuresInARow(t *testing.T) {
	b := setup(t)
	var run triage.Run
	for n := range 6 {
		run.Steps = append(run.Steps, triage.Step{
			Rows: []int64{int64(n)}, Do: func(context.Context, string) (triage.Outcome, error) {
				if n == 1 { // one success begins the count anew
					return triage.Outcome{Done: 1}, nil
				}
				return triage.Outcome{}, errors.New("it fails")
			},
		})
	}
	receipt, err := b.operator.Run(t.Context(), run, "")
	require.NoError(t, err)
	require.Equal(t, []int{1, 4}, []int{receipt.Done, receipt.Failed})
	require.Equal(t, []int64{5}, receipt.Left)
	require.Equal(t, "stopped after 3 failures in a row", receipt.Stopped)
}

// A run that loses its lock ends before its next step: another operator may act already.
func TestARunEndsWithItsLock(t *testing.T) {
	b := setup(t)
	steps := 0
	step := triage.Step{Rows: []int64{1}, Do: func(context.Context, string) (triage.Outcome, error) {
		steps++
		testkit.Exec(t, b.store, `select pg_terminate_backend(l.pid) from pg_locks l join pg_database d on d.oid = l.database
			where d.datname = current_database() and l.locktype = 'advisory' and l.pid <> pg_backend_pid()`)
		return triage.Outcome{Done: 1}, nil
	}}
	receipt, err := b.operator.Run(t.Context(), triage.Run{Steps: []triage.Step{step, step}, Lock: "a test"}, "")
	require.NoError(t, err)
	require.Equal(t, 1, steps)
	require.Equal(t, []int64{1}, receipt.Left)
	require.Contains(t, receipt.Stopped, "stopped: ")
}
