package worker

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// Of two processes that find a name free one gets it, and neither does if the process that has it sends a heartbeat.
func TestANameIsTakenOnlyAsItWasRead(t *testing.T) {
	st := testkit.Store(t)
	read := func() store.ReadIncarnationRow {
		row, err := st.ReadIncarnation(testkit.Context(t), "w")
		require.NoError(t, err)
		return row
	}
	enrol := func(found store.ReadIncarnationRow) error {
		_, err := st.EnrolWorker(testkit.Context(t), store.EnrolWorkerParams{
			Name: "w", WorkerType: "local", Capabilities: []byte("{}"), Incarnation: uuid.New(),
			Before: found.Incarnation, Seen: found.HeartbeatSeen,
		})
		return err
	}
	require.NoError(t, enrol(store.ReadIncarnationRow{}))
	require.ErrorIs(t, enrol(store.ReadIncarnationRow{}), sql.ErrNoRows)
	found := read()
	require.NoError(t, enrol(found))
	require.ErrorIs(t, enrol(found), sql.ErrNoRows)
	found = read()
	_, err := st.BeatWorker(testkit.Context(t), "active", found.ID, found.Incarnation)
	require.NoError(t, err)
	require.ErrorIs(t, enrol(found), sql.ErrNoRows)
	require.NoError(t, enrol(read()))
}

// onLog runs a function with each line of a log.
type onLog struct {
	slog.Handler
	do func(message string)
}

// Handle implements slog.Handler.
func (o onLog) Handle(_ context.Context, record slog.Record) error {
	o.do(record.Message)
	return nil
}

// While a process waits for the heartbeat of the one before, a third one may register and not send a heartbeat yet.
func TestANameThatAnotherProcessTakesDuringTheWaitIsTaken(t *testing.T) {
	st := testkit.Store(t)
	cfg := Config{Name: "w", Type: "local", Host: "h", StaleAfter: time.Hour}
	crashed := &membership{
		store: st, logger: testkit.Logger(t), incarnation: uuid.New(),
		process: processID{PID: 1, Place: "another boot", Heartbeat: 0.004},
	}
	require.NoError(t, crashed.enrol(testkit.Context(t), cfg, nil))
	waits := 0
	slow := &membership{store: st, incarnation: uuid.New(), logger: slog.New(onLog{
		Handler: testkit.Logger(t).Handler(), do: func(message string) {
			if message == "Process with the worker's name may be alive, waiting for its heartbeat" {
				waits++
				testkit.Exec(t, st, "update worker set incarnation = gen_random_uuid()")
			}
		},
	})}
	var taken *TakenError
	require.ErrorAs(t, slow.enrol(testkit.Context(t), cfg, nil), &taken)
	require.Equal(t, 1, waits)
}

// After a crash another process may have the number of the worker's.
func TestANumberOfAProcessIsUsedAgain(t *testing.T) {
	t.Parallel()
	p := ownProcess(time.Second)
	if p.Started == "" {
		t.Skip("the system does not say when a process started")
	}
	require.False(t, p.gone())
	p.Started = "1"
	require.True(t, p.gone())
}
