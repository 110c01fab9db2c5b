package engine

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// sharedLog is a log that several goroutines write.
type sharedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *sharedLog) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// unstarted is an engine that has not been started.
func unstarted(t *testing.T, database, amqp string, logger *slog.Logger) *Engine {
	t.Helper()
	cfg := config.Default()
	cfg.Database.URL, cfg.Database.Schema = database, testkit.Schema
	cfg.MessageQueue.URL, cfg.MessageQueue.ManagementURL, cfg.Executor.HTTP.Listen = amqp, "", ""
	e, err := New(testkit.Context(t), cfg, Deps{Logger: logger, Version: "test"})
	require.NoError(t, err)
	t.Cleanup(e.close)
	return e
}

// One of the other replicas logs a silent replica, once, and only if it has seen the database long enough.
func TestOneOfTheOthersMissesAReplica(t *testing.T) {
	database := testkit.Database(t)
	st := testkit.OpenStore(t, database)
	var log sharedLog
	logger := slog.New(slog.NewTextHandler(&log, nil))
	replicas := make([]*replica, 3)
	for i := range replicas {
		replicas[i] = unstarted(t, database, "amqp://u:p@127.0.0.1:1/", logger).report
	}
	silent := func(seconds int, state string) {
		testkit.Exec(t, st, `insert into engine_replica (id, host, version, pid, state, last_seen)
			values (gen_random_uuid(), 'lost-host', 'v', 4711, $1, now() - make_interval(secs => $2))`, state, seconds)
	}
	silent(40, "connected")
	silent(3, "connected")
	tick := func() {
		var all sync.WaitGroup
		for _, r := range replicas {
			all.Go(func() { require.NoError(t, r.tick(testkit.Context(t))) })
		}
		all.Wait()
	}
	tick()
	require.Zero(t, log.count("Replica has vanished"), "after an outage all reports are old")

	for _, r := range replicas {
		r.reportsOthersAt = time.Now()
	}
	tick()
	require.Equal(t, 1, log.count("Replica has vanished"))
	require.Equal(t, 1, log.count("host=lost-host pid=4711 last_seen=20"))
	tick()
	require.Equal(t, 1, log.count("Replica has vanished"), "it is logged once")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from engine_replica where state = 'vanished'`))
	require.Equal(t, 5, testkit.Count(t, st, `select count(*) from engine_replica`))

	// One that comes back is missed again when it falls silent again.
	testkit.Exec(t, st, `update engine_replica set state = 'connected' where state = 'vanished'`)
	tick()
	require.Equal(t, 2, log.count("Replica has vanished"))
	testkit.Exec(t, st, `update engine_replica set last_seen = now() - interval '16 minutes' where state = 'vanished'`)
	tick()
	require.Zero(t, testkit.Count(t, st, `select count(*) from engine_replica where state = 'vanished'`))
	require.Equal(t, 2, log.count("Replica has vanished"))
}

// The start is a time of the database. It stays the same when the row is written again.
func TestTheStartOfAReplicaIsATimeOfTheDatabase(t *testing.T) {
	database := testkit.Database(t)
	st := testkit.OpenStore(t, database)
	r := unstarted(t, database, "amqp://u:p@127.0.0.1:1/", testkit.Logger(t)).report
	r.started = r.started.Add(-time.Hour)
	for range 2 {
		require.NoError(t, r.tick(testkit.Context(t)))
		require.Equal(t, 1, testkit.Count(t, st, `select count(*) from engine_replica
			where now() - started between interval '1 hour' and interval '1 hour 5 minutes' and details->>'database_away' is null`))
		testkit.Exec(t, st, `delete from engine_replica`)
	}
	r.away.note(errors.New("the database is away"))
	require.NoError(t, r.tick(testkit.Context(t))) // ends the outage
	require.NoError(t, r.tick(testkit.Context(t)))
	require.Equal(t, 1, testkit.Count(t, st,
		`select count(*) from engine_replica where details->'database_away'->>'until' is not null`),
		"the report goes on and tells of the outage")
}

// Upstream 1: workers that make no routes for their dead letters get them also
// when they register while the engine runs.
func TestNewWorkersGetTheRoutesOfTheirDeadLetters(t *testing.T) {
	database := testkit.Database(t)
	e := unstarted(t, database, testkit.VHost(t), testkit.Logger(t))
	ctx := testkit.Context(t)
	require.NoError(t, e.broker.Start(ctx))
	t.Cleanup(e.broker.Stop)
	routes := &topology{engine: e}
	routes.declare(ctx)
	id := testkit.Worker(t, testkit.OpenStore(t, database), "newcomer").ID
	routed := func() (found []broker.RouteProbe) {
		return e.broker.ProbeDeadLetters(ctx, []string{message.DispatchKey(id), message.CancelKey(id)})
	}
	for _, probe := range routed() {
		require.NoError(t, probe.Err)
		require.False(t, probe.Routed)
	}
	routes.routes(ctx)
	for _, probe := range routed() {
		require.NoError(t, probe.Err)
		require.True(t, probe.Routed, probe.Key)
	}
}
