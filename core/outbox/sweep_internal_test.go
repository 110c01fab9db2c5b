package outbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// A sweep reads the whole backlog while the broker confirms messages, and one page while it does not.
func TestASweepTakesABacklogWhileTheBrokerDoes(t *testing.T) {
	st := testkit.Store(t)
	testkit.Exec(t, st, `INSERT INTO outbox (created, message_ids, exchanges, routing_keys, message_types, bodies, traces)
		SELECT now() - interval '1 minute', array[n::text], '{x}', '{k}', '{t}', array[''::bytea], array[''] FROM generate_series(1, 250) n`)
	r := New(Config{}, st, nil, testkit.Logger(t), nil)
	require.NoError(t, r.sweepOnce(testkit.Context(t)))
	require.Len(t, r.own.pending, sweepPage)
	r.well.Store(true)
	require.NoError(t, r.sweepOnce(testkit.Context(t)))
	require.Len(t, r.own.pending, 250)
}

// A row with more messages than the bound of the memory is held only when no other row is.
func TestARowAboveTheBoundIsHeldAlone(t *testing.T) {
	t.Parallel()
	r := New(Config{MaxPending: 3}, nil, nil, testkit.Logger(t), nil)
	require.True(t, r.hold(row{id: 1, messages: make([]Message, 5)}))
	require.False(t, r.hold(row{id: 2, messages: make([]Message, 1)}))
	r.take(&r.own)
	r.forget(row{id: 1, messages: make([]Message, 5)}, true)
	require.True(t, r.hold(row{id: 2, messages: make([]Message, 3)}))
	require.False(t, r.hold(row{id: 3, messages: make([]Message, 5)}))
}
