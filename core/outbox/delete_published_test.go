package outbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// A transaction that appends messages deletes rows that its relay has published. If it
// does not commit, they are deleted later.
func TestATransactionDeletesPublishedRows(t *testing.T) {
	st := testkit.Store(t)
	relay := New(Config{SweepInterval: time.Hour}, st, nil, testkit.Logger(t), nil)
	add := func(id string, failure error) (int64, error) {
		var row int64
		err := st.Tx(testkit.Context(t), "append", func(ctx context.Context, tx *store.Tx) (err error) {
			if row, err = Send(ctx, tx, relay,
				[]Message{{ID: id, RoutingKey: "k", Type: "T", Body: []byte(`{}`)}}); err != nil {
				return err
			}
			return failure
		})
		return row, err
	}
	rows := func() int { return testkit.Count(t, st, `SELECT count(*) FROM outbox`) }

	first, err := add("first", nil)
	require.NoError(t, err)
	relay.forget(relay.take(&relay.own)[0], true) // confirmed
	failure := errors.New("changed our mind")
	_, err = add("never", failure)
	require.ErrorIs(t, err, failure)
	require.Equal(t, 1, rows())
	require.True(t, relay.holds(first), "it is not to be swept meanwhile")

	_, err = add("second", nil)
	require.NoError(t, err)
	require.Equal(t, 1, rows())
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM outbox WHERE message_ids = '{second}'`))
	require.False(t, relay.holds(first))

	relay.forget(relay.take(&relay.own)[0], true)
	require.NoError(t, relay.deleteDone(testkit.Context(t)))
	require.Zero(t, rows())
}
