package liveness

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// queues answers for workers' queues.
type queues map[string]func() (broker.QueueState, error)

func (q queues) QueueState(_ context.Context, name string) (broker.QueueState, error) {
	return q[name]()
}

// A suspicion ends when the queue of the worker is consumed, and not before. An error of one queue hides no other,
// an older check does not end a newer suspicion, and dead workers are not checked.
func TestSuspectsAreAcquittedOneByOne(t *testing.T) {
	st := testkit.Store(t)
	names := []string{"odd", "consumed", "deserted", "newer"}
	asked := queues{}
	ids := map[string]int64{}
	for _, name := range names {
		ids[name] = testkit.Worker(t, st, name).ID
	}
	// asking after it would panic
	ids["gone"] = testkit.Worker(t, st, "gone", func(w *testkit.WorkerRow) { w.NoHeartbeat = true }).ID
	testkit.Exec(t, st, `UPDATE worker SET suspect_since = now() - interval '1 minute', suspect_reason = 'x'`)
	answer := func(name string, state broker.QueueState, err error) {
		asked[message.WorkerExecutionsQueue(ids[name])] = func() (broker.QueueState, error) { return state, err }
	}
	refused := errors.New("405 RESOURCE_LOCKED")
	answer("odd", broker.QueueState{}, refused)
	answer("consumed", broker.QueueState{Exists: true, Consumers: 1}, nil)
	answer("deserted", broker.QueueState{Exists: true, Ready: 3}, nil)
	asked[message.WorkerExecutionsQueue(ids["newer"])] = func() (broker.QueueState, error) {
		err := st.NoteUndelivered(testkit.Context(t), store.NoteUndeliveredParams{
			Reason: "returned just now", Workers: []int64{ids["newer"]}, Executions: []int64{1}, Attempts: []int32{1},
		})
		return broker.QueueState{Exists: true, Consumers: 1}, err
	}
	suspects := NewSuspects(st, asked, testkit.Logger(t), nil)
	require.ErrorIs(t, suspects.tick(testkit.Context(t)), refused)
	left := []string{}
	left = testkit.Column[string](t, st.Pool(),
		`SELECT name FROM worker WHERE suspect_since IS NOT NULL ORDER BY name`)
	require.Equal(t, []string{"deserted", "gone", "newer", "odd"}, left)
}
