package alerting

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
)

func TestReplicasAreEvaluatedByTheDatabaseClock(t *testing.T) {
	b := setup(t, nil)
	ticks := map[string]time.Duration{"recovery": 2 * time.Second, "timeouts": 50 * time.Second, "rounds": time.Hour}
	links := []monitor.ReplicaLink{{Purpose: "publish", Up: true}, {Purpose: "consume", Up: true}}
	well := monitor.ReplicaDetails{
		Loops: patientLoops, Connections: links, Consumers: map[string]bool{"q": true},
		Outbox: 4, HTTP: "127.0.0.1:1",
	}
	b.replicaRow(t, "well", "connected", time.Second, ticks, well)
	b.replicaRow(t, "late", "connected", 11*time.Second, ticks, well)
	b.replicaRow(t, "gone", "connected", 3*time.Minute, ticks, well)
	b.replicaRow(t, "deaf", "connected", 0, ticks,
		monitor.ReplicaDetails{Loops: patientLoops, Consumers: map[string]bool{"q": false, "r": true}})
	b.replicaRow(t, "blocked", "blocked", 0, ticks, monitor.ReplicaDetails{Connections: []monitor.ReplicaLink{
		{
			Purpose: "publish", Up: true, Blocked: true, Reason: "low on memory",
			Since: time.Now().Add(-20 * time.Second),
		},
	}})
	b.replicaRow(t, "cut", "disconnected", 0, ticks, monitor.ReplicaDetails{Connections: []monitor.ReplicaLink{
		{Purpose: "consume", Reason: "refused", Since: time.Now().Add(-5 * time.Second)},
	}})
	b.replicaRow(t, "asleep", "connected", 0,
		map[string]time.Duration{"recovery": 5 * time.Minute, "timeouts": time.Second},
		monitor.ReplicaDetails{Loops: patientLoops})
	b.replicaRow(t, "remade", "connected", 0, ticks,
		monitor.ReplicaDetails{Clock: time.Now(), Recreated: []monitor.ReplicaQueue{
			{Queue: "old", Cause: "deleted", At: time.Now().Add(-time.Hour)},
			{Queue: "q", Cause: "it has crashed", At: time.Now().Add(-40 * time.Second)},
		}})
	begun := time.Now().Add(-90 * time.Second)
	b.replicaRow(t, "stuck", "connected", 0, ticks, monitor.ReplicaDetails{RoundSince: &begun})
	testkit.Exec(t, b.Store, `insert into engine_replica (id, host, version, pid, loops, details, state)
		values (gen_random_uuid(), 'older', 'v0', 1, '[]', '"x"', 'connected')`)
	testkit.Exec(t, b.Store, `update engine_replica set started = now() - interval '1 hour',
		last_seen = now() - interval '1 hour' + (last_seen - started) where version = 'v1'`) // the inserts took time

	all, err := b.Replicas(t.Context())
	require.NoError(t, err)
	require.False(t, all.At.IsZero())
	require.EqualValues(t, 10, all.Total)
	require.EqualValues(t, 2, all.Well, "well, and the older one without details")
	problems := map[string]string{}
	for _, r := range all.List {
		problems[r.Host] = r.Problem()
		require.Equal(t, r.Host == "late" || r.Host == "gone", r.Late, r.Host)
		if r.Host == "well" {
			require.Equal(t, 4, r.Details.Outbox)
			loop, silence := r.OldestTick()
			require.Equal(t, "timeouts", loop, "the one that has used most of its timeout")
			require.InDelta(t, 55, silence.Seconds(), 5)
			require.Contains(t, r.Loops, "rounds")
		}
	}
	require.Regexp(t, `^silent for 1\d`, problems["late"])
	require.Regexp(t, `^silent for 3m`, problems["gone"])
	require.Equal(t, "does not consume q", problems["deaf"])
	require.Regexp(t, `^the broker blocks it since 2\d.* \(low on memory\)$`, problems["blocked"])
	require.Regexp(t, `^no consume connection to the broker since \d`, problems["cut"])
	require.Regexp(t, `^loop recovery is silent for 5m`, problems["asleep"])
	require.Regexp(t, `^queue q was gone and was declared again 4\d(\.\d)?s ago \(it has crashed\)`, problems["remade"])
	require.Regexp(t, `^its batch is under way for 1m3`, problems["stuck"])
	require.GreaterOrEqual(t, all.Oldest(), 3*time.Minute)

	overview, err := b.Overview(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 10, overview.Replicas.Total)
	require.NotContains(t, findingTexts(Attention(overview, nil)), "no replica of the engine runs")
}

func TestNoReplicaIsAFinding(t *testing.T) {
	b := setup(t, nil)
	overview, err := b.Overview(t.Context())
	require.NoError(t, err)
	require.Empty(t, overview.Replicas.List)
	found := Attention(overview, nil)
	require.Contains(t, findingTexts(found), "no replica of the engine runs")
	require.Equal(t, LevelCritical, found[0].Level)
	overview.Queues.Queued = 1
	for _, f := range Attention(overview, nil) {
		if f.Rule == "no_replica" {
			require.Contains(t, f.Hint, "1 execution waits", "an execution waits for it")
		}
	}

	testkit.Exec(t, b.Store, `drop table admission_scope, engine_replica cascade`)
	published := monitor.New(monitor.Config{}, monitor.Deps{Store: b.Store})
	replicas, err := published.Replicas(t.Context())
	require.NoError(t, err)
	require.Empty(t, replicas.List)
}

// A replica that was killed needs attention at first, and then is history, also when no
// other replica runs that could remove its row.
func TestAKilledReplicaIsListedForAWhile(t *testing.T) {
	b := setup(t, nil)
	b.replicaRow(t, "killed lately", "vanished", 14*time.Minute, nil, monitor.ReplicaDetails{})
	b.replicaRow(t, "killed long ago", "connected", 16*time.Minute, nil, monitor.ReplicaDetails{})
	all, err := b.Replicas(testkit.Context(t))
	require.NoError(t, err)
	require.Len(t, all.List, 1)
	require.Equal(t, "killed lately", all.List[0].Host)
	b.Reader = watching(monitor.Config{SilentReplicas: 10 * time.Minute}, b.Deps())
	all, err = b.Replicas(testkit.Context(t))
	require.NoError(t, err)
	require.Empty(t, all.List)
	measured, err := b.Measure(testkit.Context(t))
	require.NoError(t, err)
	require.Empty(t, measured.Samples["replica_silence"])
}

func findingTexts(found []Finding) (texts string) {
	for _, f := range found {
		texts += f.Text + "\n"
	}
	return texts
}

var patientLoops = map[string]monitor.ReplicaLoop{
	"recovery": {Timeout: time.Minute},
	"timeouts": {Timeout: 2 * time.Minute},
}

// replicaRow puts a replica into the table as it reports itself, some seconds ago.
func (b *testBundle) replicaRow(t *testing.T, host, state string, age time.Duration, loops map[string]time.Duration,
	details monitor.ReplicaDetails,
) {
	t.Helper()
	clock := time.Now().Add(42 * time.Minute) // the replica's clock is wrong, which changes nothing
	ticks := map[string]time.Time{}
	for name, ago := range loops {
		ticks[name] = clock.Add(-ago)
	}
	details.Clock = clock
	if details.RoundSince != nil {
		since := clock.Add(-time.Since(*details.RoundSince))
		details.RoundSince = &since
	}
	for i, link := range details.Connections {
		details.Connections[i].Since = clock.Add(-time.Since(link.Since))
	}
	for i, one := range details.Recreated {
		details.Recreated[i].At = clock.Add(-time.Since(one.At))
	}
	ticksJSON, err := json.Marshal(ticks)
	require.NoError(t, err)
	detailsJSON, err := json.Marshal(details)
	require.NoError(t, err)
	testkit.Exec(t, b.Store, `insert into engine_replica (id, host, version, pid, state, started, last_seen, in_flight, loops, details)
		values (gen_random_uuid(), $1::text, 'v1', 7, $2, now() - interval '1 hour', now() - make_interval(secs => $3), 3, $4, $5)`,
		host, state, age.Seconds(), ticksJSON, detailsJSON)
}
