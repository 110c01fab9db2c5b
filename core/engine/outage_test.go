package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/liveness"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// secondDatabase makes an empty database beside the one that replicas of the stack use.
func secondDatabase(t *testing.T, stack *devstack.Stack) string {
	t.Helper()
	conn, err := pgx.Connect(testkit.Context(t), stack.DatabaseURL())
	require.NoError(t, err)
	_, err = conn.Exec(testkit.Context(t), "create database outage template template0")
	require.NoError(t, errors.Join(err, conn.Close(testkit.Context(t))))
	at, err := url.Parse(stack.DatabaseURL())
	require.NoError(t, err)
	at.Path = "/outage"
	return at.String()
}

// silentRelay publishes nothing.
type silentRelay struct{}

func (silentRelay) Published(int64, []outbox.Message) {}

// L4, S9: after an outage of the database all heartbeats are old. Workers that send one as soon as they can keep
// their executions and are not marked inactive. A dead worker is found a little later.
func requireOutageEndsNoWorkers(t *testing.T, stack *devstack.Stack) {
	t.Helper()
	ctx := testkit.Context(t)
	databaseURL := secondDatabase(t, stack)
	_, err := migrations.Up(ctx, migrations.Options{URL: databaseURL, Schema: testkit.Schema})
	require.NoError(t, err)
	st := testkit.OpenStore(t, databaseURL)
	action := testkit.Action(t, st, "pk.a")
	running := func(worker int64) int64 {
		return testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Worker, e.Status = &worker, lifecycle.StatusRunning }).ID
	}
	beats, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{}, 5)
	for i := range 5 {
		w := testkit.Worker(t, st, fmt.Sprintf("w%d", i))
		running(w.ID)
		go func() {
			defer func() { done <- struct{}{} }()
			for beats.Err() == nil {
				bounded, end := context.WithTimeout(beats, time.Second)
				// the next one may get through
				_, _ = st.Pool().Exec(bounded, `UPDATE worker SET last_heartbeat = clock_timestamp() WHERE id = $1`,
					w.ID)
				end()
				select {
				case <-beats.Done():
				case <-time.After(time.Second):
				}
			}
		}()
	}
	t.Cleanup(func() {
		cancel()
		for range 5 {
			<-done
		}
	})
	const stale = 3 * time.Second
	for range 3 { // replicas
		outages := liveness.NewOutageDetector(stale, st, testkit.Logger(t), nil)
		rescuer := recovery.NewRescuer(recovery.RescuerConfig{
			StaleAfter: stale, Interval: 200 * time.Millisecond,
			Unsure: outages.Unsure,
		}, st,
			func(context.Context, recovery.Found) error { return nil }, silentRelay{}, testkit.Logger(t), nil)
		heartbeats := liveness.NewHeartbeats(liveness.HeartbeatsConfig{
			StaleAfter: stale,
			Interval:   200 * time.Millisecond, Unsure: outages.Unsure,
		},
			st, testkit.Logger(t), nil, nil)
		for _, loop := range []interface {
			Start(context.Context) error
			Stop()
		}{outages, rescuer, heartbeats} {
			require.NoError(t, loop.Start(ctx))
			t.Cleanup(loop.Stop)
		}
	}
	gone := testkit.Worker(t, st, "gone", func(w *testkit.WorkerRow) { w.HeartbeatAge = time.Hour })
	lost := running(gone.ID)
	decided := func() bool { return testkit.StatusOf(t, st, lost) == lifecycle.StatusAbandoned }
	testkit.Eventually(t, decided, 20*time.Second) // heartbeats count again

	require.NoError(t, stack.KillPostgres(ctx))
	time.Sleep(2 * stale) // the outage has to last
	require.NoError(t, stack.StartPostgres(ctx))
	lost = running(gone.ID)
	testkit.Eventually(t, decided, 30*time.Second)
	require.Equal(t, 5, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE status = 'running'`))
	require.Equal(t, 5, testkit.Count(t, st, `SELECT count(*) FROM worker WHERE status = 'active' AND name LIKE 'w%'`))
}
