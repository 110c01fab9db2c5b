package liveness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// inspector answers with its state, for every queue.
type inspector struct {
	mu    sync.Mutex
	state broker.QueueState
	err   error
	hang  bool
	asked atomic.Int64
}

func (i *inspector) QueueState(ctx context.Context, _ string) (broker.QueueState, error) {
	i.asked.Add(1)
	i.mu.Lock()
	state, err, hang := i.state, i.err, i.hang
	i.mu.Unlock()
	if hang {
		<-ctx.Done()
		return broker.QueueState{}, ctx.Err()
	}
	return state, err
}

func (i *inspector) set(state broker.QueueState, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state, i.err = state, err
}

var consumed = broker.QueueState{Exists: true, Consumers: 1}

// probed is a row of worker_probe.
type probed struct {
	Verdict, Reason, Health, HealthReason string
	Failures                              int
	Exists                                *bool
	Consumers, Ready                      *int
	Skew                                  *float64
	Since                                 time.Time
	Details                               map[string]any
}

type bench struct {
	*testing.T
	st     *store.Store
	probes *Probes
	j      *journal
}

func newBench(t *testing.T, asked Inspector) *bench {
	t.Helper()
	b := &bench{T: t, st: testkit.Store(t), j: &journal{}}
	b.probes = NewProbes(ProbesConfig{
		Interval: time.Hour, StaleAfter: stale, Replica: uuid.New(), EndpointHosts: []string{"127.0.0.1"},
	}, b.st, asked, b.j.logger(), NewMetrics(nil), nil)
	t.Cleanup(b.probes.client.CloseIdleConnections)
	return b
}

// probe makes every worker due and probes it.
func (b *bench) probe() {
	b.Helper()
	testkit.Exec(b, b.st, `UPDATE worker_probe SET at = at - interval '1 hour'`)
	require.NoError(b, b.probes.tick(testkit.Context(b)))
}

func (b *bench) row(worker int64) probed {
	b.Helper()
	var p probed
	var details []byte
	require.NoError(b, b.st.Pool().QueryRow(testkit.Context(b), `
		SELECT verdict, reason, health, health_reason, failures, queue_exists, consumers, ready, skew_seconds, since, details
		FROM worker_probe WHERE worker = $1`, worker).Scan(&p.Verdict, &p.Reason, &p.Health, &p.HealthReason, &p.Failures,
		&p.Exists, &p.Consumers, &p.Ready, &p.Skew, &p.Since, &details))
	require.NoError(b, json.Unmarshal(details, &p.Details))
	return p
}

func (b *bench) suspicion(worker int64) (reason string) {
	b.Helper()
	require.NoError(b, b.st.Pool().QueryRow(testkit.Context(b),
		`SELECT coalesce(suspect_reason, '') FROM worker WHERE id = $1`, worker).Scan(&reason))
	return reason
}

// On a real broker: the second probe suspects a worker without a queue, and one whose queue has no
// consumer, since workers register before they declare and consume. A returning consumer clears it.
func TestProbesSeeWhetherAQueueIsConsumed(t *testing.T) {
	wire := broker.New(broker.Config{URL: testkit.VHost(t)}, testkit.Logger(t), nil)
	require.NoError(t, wire.Start(testkit.Context(t)))
	t.Cleanup(wire.Stop)
	b := newBench(t, wire)
	none, unconsumed := testkit.Worker(t, b.st, "no queue").ID, testkit.Worker(t, b.st, "no consumer").ID
	require.NoError(t, wire.DeclareCommon(testkit.Context(t)))
	require.NoError(t, wire.DeclareWorker(testkit.Context(t), unconsumed, time.Minute))
	b.probe()
	require.Empty(t, b.suspicion(none), "it may just have registered")
	require.Empty(t, b.suspicion(unconsumed), "it may just have started")
	p := b.row(none)
	require.Equal(t,
		[]any{verdictFresh, "its queue does not exist, which may be because it has just started", 1, false},
		[]any{p.Verdict, p.Reason, p.Failures, *p.Exists})
	p = b.row(unconsumed)
	require.Equal(t, []any{verdictFresh, 1, true, 0, 0},
		[]any{p.Verdict, p.Failures, *p.Exists, *p.Consumers, *p.Ready})

	b.probe()
	require.Equal(t, "its queue does not exist", b.suspicion(none))
	require.Equal(t, "its queue has no consumer", b.suspicion(unconsumed))
	for _, id := range []int64{none, unconsumed} {
		p = b.row(id)
		require.Equal(t, []any{verdictSuspect, 2}, []any{p.Verdict, p.Failures})
	}
	first := b.row(none).Since
	b.probe()
	require.Equal(t, first, b.row(none).Since, "since is kept while the verdict is the same")
	require.ElementsMatch(t,
		[]string{"WARN Worker no queue failed health check", "WARN Worker no consumer failed health check"}, b.j.take(),
		"each failure is logged once, in the published words")

	consumer := wire.Consume(broker.ConsumerConfig{
		Queue: message.WorkerExecutionsQueue(unconsumed), Tag: "back", Prefetch: 1,
		MaxBatch: 1,
	})
	require.NoError(t, consumer.Start(testkit.Context(t)))
	t.Cleanup(consumer.Stop)
	testkit.Eventually(t, consumer.Subscribed, 10*time.Second)
	require.NoError(t, NewSuspects(b.st, wire, testkit.Logger(t), nil).tick(testkit.Context(t)))
	require.Empty(t, b.suspicion(unconsumed))
	require.NotEmpty(t, b.suspicion(none))
	b.probe()
	p = b.row(unconsumed)
	require.Equal(t, []any{verdictFresh, "", 0, 1}, []any{p.Verdict, p.Reason, p.Failures, *p.Consumers})
	require.Equal(t, "healthy", p.Health)

	wire.Stop()
	b.probe()
	p = b.row(unconsumed)
	require.Equal(t, []any{verdictFresh, unreachable, 0}, []any{p.Verdict, p.Reason, p.Failures})
	require.Equal(t, verdictSuspect, b.row(none).Verdict)
	require.Equal(t, "its queue does not exist", b.suspicion(none))
}

// A disconnected broker is no evidence: verdicts stay, and the probe does not wait for it once per worker.
func TestADisconnectedBrokerIsNoEvidence(t *testing.T) {
	asked := &inspector{state: consumed}
	b := newBench(t, asked)
	fine, bad := testkit.Worker(t, b.st, "fine").ID, testkit.Worker(t, b.st, "bad").ID
	b.probe()
	testkit.Exec(t, b.st,
		`UPDATE worker SET suspect_since = now() - interval '1 hour', suspect_reason = 'returned' WHERE id = $1`, bad)
	b.probe()
	require.Equal(t, []string{verdictFresh, verdictSuspect}, []string{b.row(fine).Verdict, b.row(bad).Verdict})
	asked.set(broker.QueueState{}, errors.New("no connection"))
	for range 3 {
		b.probe()
	}
	p := b.row(fine)
	require.Equal(t, []any{verdictFresh, unreachable, 0, "healthy"}, []any{p.Verdict, p.Reason, p.Failures, p.Health})
	require.Nil(t, p.Exists)
	require.Equal(t, "returned", b.row(bad).Reason)
	require.Empty(t, b.suspicion(fine))

	silent(t, b.st, fine, time.Hour)
	b.probe()
	require.Equal(t, verdictDead, b.row(fine).Verdict, "of heartbeats the broker knows nothing")

	for i := range 3 * probeParallel {
		testkit.Worker(t, b.st, fmt.Sprintf("many %d", i))
	}
	asked.mu.Lock()
	asked.hang = true
	asked.mu.Unlock()
	asked.asked.Store(0)
	b.probe()
	require.LessOrEqual(t, asked.asked.Load(), int64(2*probeParallel))
}

// Verdicts follow from the row, the heartbeat and the queue.
func TestVerdictsFollowRowHeartbeatAndQueue(t *testing.T) {
	t.Parallel()
	row := func(change func(*store.FindProbedRow)) store.FindProbedRow {
		r := store.FindProbedRow{ID: 1, Status: "active", HeartbeatAge: 1}
		if change != nil {
			change(&r)
		}
		return r
	}
	look := func(state broker.QueueState) queueResult { return queueResult{asked: true, state: state} }
	for name, c := range map[string]struct {
		row             store.FindProbedRow
		queue           queueResult
		verdict, reason string
		suspect         bool
		failures        int32
	}{
		"fresh": {row(nil), look(consumed), verdictFresh, "", false, 0},
		"no queue": {
			row(nil), look(broker.QueueState{}), verdictFresh,
			"its queue does not exist, which may be because it has just started", false, 1,
		},
		"still no": {
			row(func(r *store.FindProbedRow) { r.Failures = 1 }), look(broker.QueueState{}),
			verdictSuspect, "its queue does not exist", true, 2,
		},
		"no consumer": {
			row(nil), look(broker.QueueState{Exists: true}), verdictFresh,
			"its queue has no consumer, which may be because it has just started", false, 1,
		},
		"still none": {
			row(func(r *store.FindProbedRow) { r.Failures = 1 }), look(broker.QueueState{Exists: true}),
			verdictSuspect, "its queue has no consumer", true, 2,
		},
		"consumed": {
			row(func(r *store.FindProbedRow) { r.Failures = 7 }), look(consumed), verdictFresh, "", false,
			0,
		},
		"stale": {
			row(func(r *store.FindProbedRow) { r.HeartbeatAge = 90 }), look(consumed), verdictDead,
			"last heartbeat 1m30s ago", false, 0,
		},
		"just not": {
			row(func(r *store.FindProbedRow) { r.HeartbeatAge = 89.9 }), look(consumed), verdictFresh, "",
			false, 0,
		},
		"said goodbye": {
			row(func(r *store.FindProbedRow) { r.HeartbeatAge, r.Status = 100, "inactive" }),
			look(broker.QueueState{}), verdictDead, "stopped by itself, last heartbeat 1m40s ago", false, 0,
		},
		"stopping": {
			row(func(r *store.FindProbedRow) { r.Status = "inactive" }), look(broker.QueueState{}),
			verdictDraining, "has marked itself inactive", false, 0,
		},
		"returns": {
			row(func(r *store.FindProbedRow) { r.Status, r.Deactivated = "inactive", true }),
			look(consumed), verdictSuspect, "beats again and is not yet marked active", false, 0,
		},
		"drains": {
			row(func(r *store.FindProbedRow) { r.Draining = true }), look(broker.QueueState{Exists: true}),
			verdictDraining, "takes no more work and ends what it has", false, 0,
		},
		"drains, dead": {
			row(func(r *store.FindProbedRow) { r.Draining, r.HeartbeatAge = true, 1000 }), look(consumed),
			verdictDead, "last heartbeat 16m40s ago", false, 0,
		},
		"cordoned": {
			row(func(r *store.FindProbedRow) { r.Cordoned, r.CordonReason = true, "update" }),
			look(consumed), verdictCordoned, "update", false, 0,
		},
		"cordoned, deaf": {
			row(func(r *store.FindProbedRow) { r.Cordoned, r.Failures = true, 1 }),
			look(broker.QueueState{Exists: true}), verdictCordoned, "cordoned", false, 2,
		},
		"error": {
			row(func(r *store.FindProbedRow) { r.Status = "error" }), look(consumed), verdictSuspect,
			"says that it is cut off from the broker", false, 0,
		},
		"unreachable": {
			row(func(r *store.FindProbedRow) { r.Verdict, r.Failures = verdictFresh, 1 }),
			queueResult{asked: true, err: errAway},
			verdictFresh, unreachable, false, 1,
		},
		"suspect, unreachable": {
			row(func(r *store.FindProbedRow) { r.Verdict, r.Failures = verdictSuspect, 2 }),
			queueResult{asked: true, err: errAway},
			verdictSuspect, unreachable, false, 2,
		},
		"back, unseen": {
			row(func(r *store.FindProbedRow) { r.Verdict = verdictDead }),
			queueResult{asked: true, err: errAway},
			verdictFresh, unreachable, false, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := evaluate(observation{FindProbedRow: c.row, stale: stale, queue: c.queue}, placement.DocumentedLimits(),
				time.Minute)
			require.Equal(t, []any{c.verdict, c.reason, c.suspect, c.failures},
				[]any{f.verdict, f.reason, f.suspect != "", f.failures})
		})
	}
}

// An older suspicion keeps its time and its reason.
func TestProbesLeaveOlderSuspicionsAlone(t *testing.T) {
	b := newBench(t, &inspector{})
	id := testkit.Worker(t, b.st, "w").ID
	testkit.Exec(t, b.st,
		`UPDATE worker SET suspect_since = now() - interval '1 hour', suspect_reason = 'returned' WHERE id = $1`, id)
	b.probe()
	require.Equal(t, "returned", b.suspicion(id))
	require.Equal(t, 1,
		testkit.Count(t, b.st, `SELECT count(*) FROM worker WHERE suspect_since < now() - interval '59 minutes'`))
	require.Empty(t, b.j.take())
}

// impatient gives the answers of one path a short time, and all others theirs.
type impatient struct {
	*http.Transport

	path string
}

func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != i.path {
		return i.Transport.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
	defer cancel()
	return i.Transport.RoundTrip(r.WithContext(ctx))
}

// Whatever an endpoint does, a probe ends, and only its answer counts.
func TestHealthEndpointsCannotHoldUpAProbe(t *testing.T) {
	release := make(chan struct{})
	elsewhere := httptest.NewServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("was led to another host") }))
	t.Cleanup(elsewhere.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("/fine",
		func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"status":"healthy"}`) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/huge",
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat("x", 1<<20))) })
	mux.HandleFunc("/garbage", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0, 1, 255}) })
	mux.HandleFunc("/ill",
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	mux.HandleFunc("/other",
		func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"worker_id": 4711}`) })
	mux.HandleFunc("/away",
		func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	b := newBench(t, &inspector{state: consumed})
	wants := map[string][2]string{
		server.URL + "/fine":    {"", "healthy"},
		server.URL + "/garbage": {"", "healthy"},
		server.URL + "/slow":    {"does not answer (nothing within 2s)", "healthy"},
		server.URL + "/huge":    {"answers with more than 65536 bytes", "degraded"},
		server.URL + "/ill":     {"says 500", "degraded"},
		server.URL + "/other":   {"is that of worker 4711", "healthy"},
		server.URL + "/away":    {"says 302", "degraded"},
		"file:///etc/passwd":    {"is no http or https address", "healthy"},
		"http://127.0.0.1:1/":   {"does not answer (connection refused)", "healthy"},
	}
	// Only one endpoint does not answer in time, however busy the machine is.
	require.Equal(t, endpointTimeout, b.probes.client.Timeout)
	transport, ok := b.probes.client.Transport.(*http.Transport)
	require.True(t, ok)
	b.probes.client.Transport, b.probes.client.Timeout = impatient{transport, "/slow"}, time.Minute
	ids := map[string]int64{}
	for address := range wants {
		ids[address] = testkit.Worker(t, b.st, address,
			func(w *testkit.WorkerRow) { w.Capabilities["health_url"] = address }).ID
	}
	b.probe()
	lines := strings.Join(b.j.take(), "\n")
	for address, want := range wants {
		require.Equal(t, want[0] != "", strings.Contains(lines, "WARN Worker "+address+" failed health check"), address)
	}
	b.probe()
	require.NotContains(t, b.j.String(), "failed health check", "a failure is logged once")
	for address, want := range wants {
		p := b.row(ids[address])
		said, _ := p.Details["endpoint_error"].(string)
		require.Equal(t, want, [2]string{said, p.Health}, address)
		require.Equal(t, verdictFresh, p.Verdict, address)
		require.Contains(t, p.Details, "endpoint_ms", address)
	}
}

// The engine requests a health endpoint only at the worker's own host, or at a listed one.
func TestHealthEndpointsAreAtTheWorkersOwnHost(t *testing.T) {
	t.Parallel()
	here, err := os.Hostname()
	require.NoError(t, err)
	for _, c := range []struct {
		host, own string
		listed    bool
		to        []string // nil: refused
	}{
		{"127.0.0.1", "127.0.0.1", false, []string{"127.0.0.1"}},
		{"127.0.0.1", "localhost", false, []string{"127.0.0.1"}},
		{"127.0.0.1", here, false, []string{"127.0.0.1"}},
		{"10.1.2.3", "10.1.2.3", false, []string{"10.1.2.3"}},
		{"127.0.0.1", "10.1.2.3", false, nil},
		{"127.0.0.1", "", false, nil},
		{"10.1.2.4", "10.1.2.3", false, nil},
		{"10.1.2.4", "10.1.2.3", true, []string{"10.1.2.4"}},
		{"10.1.2.4", here, false, nil},
		{"169.254.169.254", "169.254.169.254", false, nil},
		{"::ffff:169.254.169.254", "169.254.169.254", false, nil},
		{"fe80::1", "fe80::1", false, nil},
		{"0.0.0.0", "localhost", false, nil},
	} {
		to, err := permitted(t.Context(), c.host, c.own, c.listed)
		var texts []string
		for _, a := range to {
			texts = append(texts, a.Unmap().String())
		}
		require.Equal(t, c.to, texts, "%+v", c)
		require.Equal(t, c.to == nil, errors.Is(err, errElsewhere), "%+v", c)
	}

	reached := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(server.Close)
	client := newClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	result := requestEndpoint(t.Context(), client, store.FindProbedRow{HealthUrl: server.URL, Host: "192.0.2.1"})
	require.Equal(t, "does not answer ("+errElsewhere.Error()+")", result.err)
	require.False(t, reached)
	result = requestEndpoint(t.Context(), client, store.FindProbedRow{HealthUrl: server.URL, Host: "127.0.0.1"})
	require.Empty(t, result.err)
	require.True(t, reached)
}

// The skew of a worker's clock is shown, and logged once.
func TestClockSkewIsStoredAndLoggedOnce(t *testing.T) {
	b := newBench(t, &inspector{state: consumed})
	id, right := testkit.Worker(t, b.st, "off",
		func(w *testkit.WorkerRow) { w.NoHeartbeat = true }).ID, testkit.Worker(t, b.st, "right").ID
	tell := func(offset string) {
		testkit.Exec(t, b.st, `UPDATE worker SET last_heartbeat = clock_timestamp() + $2::text::interval WHERE id = $1`,
			id, offset)
	}
	tell("1 hour")
	tell("1 hour")
	for range 3 {
		b.probe()
	}
	require.InDelta(t, 3600, *b.row(id).Skew, 60)
	require.InDelta(t, 0, *b.row(right).Skew, 1)
	lines := b.j.take()
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "WARN Worker's clock differs from the database's")
	tell("0 hours")
	tell("0 hours")
	b.probe()
	tell("-1 hour")
	tell("-1 hour")
	b.probe()
	require.InDelta(t, -3600, *b.row(id).Skew, 60)
	require.Equal(t, verdictFresh, b.row(id).Verdict, "it beats, whatever it says of the time")
	require.Len(t, b.j.take(), 1, "it was right in between")
}

// An unhealthy worker gets nothing, so it cannot recover by succeeding: when its
// report has not changed for a while it is degraded, and work flows for trial.
func TestUpstream31AnUnhealthyWorkerComesBackByTrial(t *testing.T) {
	b := newBench(t, &inspector{state: consumed})
	b.probes.cfg.ByFailures = true
	id := testkit.Worker(t, b.st, "ill").ID
	report := func(text string) {
		testkit.Exec(t, b.st,
			`UPDATE worker SET capabilities = jsonb_set(capabilities, '{health}', $2::text::jsonb) WHERE id = $1`, id,
			text)
	}
	chosen := func() string {
		b.Helper()
		rows, err := b.st.ReadFleet(testkit.Context(t))
		require.NoError(t, err)
		return rows[0].Health
	}
	b.probe()
	require.Equal(t, "healthy", chosen())
	report(`{"consecutive_failures": 12, "total_executions": 12, "failed_executions": 12, "failed_actions": 2}`)
	b.probe()
	b.probe()
	require.Equal(t, []string{"unhealthy", "12 failures in a row"}, []string{b.row(id).Health, b.row(id).HealthReason})
	require.Equal(t, "unhealthy", chosen())

	testkit.Exec(t, b.st,
		`UPDATE worker_probe SET details = details || jsonb_build_object('report_since', now() - interval '5 minutes')`)
	b.probe()
	require.Equal(t, "degraded", chosen(), "work flows for trial")
	require.Equal(t, "12 failures in a row, and none since: on trial", b.row(id).HealthReason)
	b.probe()
	require.Equal(t, "degraded", chosen())

	report(`{"consecutive_failures": 13, "total_executions": 13, "failed_executions": 13, "failed_actions": 2}`)
	b.probe()
	require.Equal(t, "unhealthy", chosen(), "the trial failed")
	report(`{"consecutive_failures": 0, "total_executions": 9, "failed_executions": 8}`)
	b.probe()
	require.Equal(t, "healthy", chosen())
	require.Equal(t, []string{
		"WARN Worker is unhealthy and receives no work",
		"WARN Worker is degraded and receives only work for which healthy workers have no capacity",
		"WARN Worker is unhealthy and receives no work", "INFO Worker is healthy again",
	}, b.j.take())

	report(`{"consecutive_failures": 99}`)
	b.probe()
	testkit.Exec(t, b.st, `UPDATE worker_probe SET at = now() - interval '3 hours'`)
	require.Empty(t, chosen(), "a verdict that is three intervals old counts for nothing")
}

// Three replicas probe at once: each worker is probed once, and failures in a row are those of probes, not of
// replicas.
func TestManyReplicasProbeOnce(t *testing.T) {
	asked := &inspector{state: broker.QueueState{Exists: true}}
	b := newBench(t, asked)
	const workers = probePage + 10
	for i := range workers {
		testkit.Worker(t, b.st, fmt.Sprintf("w%d", i))
	}
	for round := range int64(3) {
		testkit.Exec(t, b.st, `UPDATE worker_probe SET at = at - interval '1 hour'`)
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				for range 3 {
					if err := b.probes.tick(testkit.Context(t)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		require.Equal(t, (round+1)*workers, asked.asked.Load())
		require.Equal(t, workers,
			testkit.Count(t, b.st, `SELECT count(*) FROM worker_probe WHERE failures = $1`, round+1))
	}
	require.Equal(t, workers, testkit.Count(t, b.st, `SELECT count(*) FROM worker WHERE suspect_since IS NOT NULL`))
	require.Len(t, b.j.take(), workers)
}

// A worker that is dead for long is not probed any more. One that returns is.
func TestWorkersThatAreLongGoneAreLeftAlone(t *testing.T) {
	asked := &inspector{}
	b := newBench(t, asked)
	id := testkit.Worker(t, b.st, "gone").ID
	silent(t, b.st, id, 2*time.Hour)
	b.probe()
	require.Equal(t, verdictDead, b.row(id).Verdict)
	require.Empty(t, b.suspicion(id), "a dead worker is not suspected")
	b.probe()
	require.EqualValues(t, 1, asked.asked.Load())
	beat(t, b.st, id)
	asked.set(consumed, nil)
	b.probe()
	require.Equal(t, verdictFresh, b.row(id).Verdict)
}

// A probe sees unstarted executions of a worker with their age.
func TestProbesSeeWorkThatLiesUnstarted(t *testing.T) {
	b := newBench(t, &inspector{state: broker.QueueState{Exists: true, Consumers: 1, Ready: 100}})
	id := testkit.Worker(t, b.st, "slow").ID
	action := testkit.Action(t, b.st, "liveness.slow")
	testkit.Execution(t, b.st, action, func(e *testkit.ExecutionRow) { e.Status, e.Worker = "scheduled", &id })
	b.probe()
	require.Equal(t, 1,
		testkit.Count(t, b.st, `SELECT count(*) FROM worker_probe WHERE oldest IS NOT NULL AND ready = 100`))
	require.Equal(t, []string{"unhealthy", "100 wait in its queue"}, []string{b.row(id).Health, b.row(id).HealthReason})
	b.j.take()
	silent(t, b.st, id, time.Hour/2)
	b.probe()
	require.Equal(t, "unknown", b.row(id).Health, "of one that is gone")
	require.NotContains(t, b.j.take(), "INFO Worker is healthy again")
}

// Existing workers report no health: their executions tell it. Failures of one action count less than failures of
// several.
func TestUpstream31WorkersThatReportNothingAreJudgedByTheirWork(t *testing.T) {
	b := newBench(t, &inspector{state: consumed})
	b.probes.cfg.ByFailures = true
	one, other := testkit.Action(t, b.st, "liveness.one"), testkit.Action(t, b.st, "liveness.other")
	worker := map[string]int64{}
	for _, name := range []string{"two actions", "one action", "recovered", "long ago", "reports", "few"} {
		worker[name] = testkit.Worker(t, b.st, name).ID
	}
	ends := func(name string, action testkit.ActionRow, status lifecycle.Status, n int, ago string) {
		id := worker[name]
		for range n {
			e := testkit.Execution(t, b.st, action,
				func(e *testkit.ExecutionRow) { e.Status, e.Worker = lifecycle.StatusRunning, &id })
			testkit.Exec(t, b.st,
				`UPDATE execution SET started_at = now(), status = $2::text::execution_status_enum WHERE id = $1`, e.ID,
				string(status))
			testkit.Exec(t, b.st, `UPDATE execution SET finished_at = finished_at - $2::text::interval WHERE id = $1`,
				e.ID, ago)
		}
	}
	failed, fine := lifecycle.StatusFailed, lifecycle.StatusCompleted
	ends("two actions", one, fine, 1, "3 minutes")
	ends("two actions", one, failed, 6, "2 minutes")
	ends("two actions", other, lifecycle.StatusTimeout, 6, "1 minute")
	ends("one action", one, failed, 12, "1 minute")
	ends("recovered", one, failed, 2, "2 minutes")
	ends("recovered", other, failed, 1, "2 minutes")
	ends("recovered", one, fine, 9, "1 minute")
	ends("long ago", one, failed, 6, "6 minutes")
	ends("long ago", other, failed, 6, "6 minutes")
	ends("reports", one, failed, 6, "1 minute")
	ends("reports", other, failed, 6, "1 minute")
	ends("few", one, failed, 2, "1 minute")
	testkit.Exec(t, b.st, `INSERT INTO execution (action_ref, status) SELECT 'liveness.backlog', 'requested' FROM generate_series(1, $1::int)`,
		endingsScan)
	testkit.Exec(t, b.st, `UPDATE worker SET capabilities = jsonb_set(capabilities, '{health}', '{"consecutive_failures": 0}') WHERE name = 'reports'`)
	b.probe()
	for name, want := range map[string][2]string{
		"two actions": {"unhealthy", "12 failures in a row"},
		"one action":  {"degraded", "12 failures in a row, all of liveness.one"},
		"recovered":   {"healthy", ""},
		"long ago":    {"degraded", "12 failures in a row, and none since: on trial"},
		"reports":     {"healthy", ""},
		"few":         {"healthy", ""},
	} {
		p := b.row(worker[name])
		require.Equal(t, want, [2]string{p.Health, p.HealthReason}, name)
	}
}

// Failures of actions are not the worker's fault: it gets executions however many fail, reported or not, unless it
// asks to be assessed by them.
func TestFailuresOfActionsCountOnlyForWorkersThatAskForIt(t *testing.T) {
	b := newBench(t, &inspector{state: consumed})
	asks := func(w *testkit.WorkerRow) { w.Capabilities["health_by_failures"] = true }
	reports := func(w *testkit.WorkerRow) {
		w.Capabilities["health"] = map[string]any{
			"consecutive_failures": 12, "total_executions": 12,
			"failed_executions": 12, "failed_actions": 2,
		}
	}
	workers := map[string]int64{
		"silent": testkit.Worker(t, b.st, "silent").ID, "reports": testkit.Worker(t, b.st, "reports", reports).ID,
		"asks": testkit.Worker(t, b.st, "asks", asks).ID, "both": testkit.Worker(t, b.st, "both", asks, reports).ID,
	}
	for _, ref := range []string{"liveness.one", "liveness.other"} {
		action := testkit.Action(t, b.st, ref)
		for _, id := range workers {
			for range 6 {
				e := testkit.Execution(t, b.st, action,
					func(e *testkit.ExecutionRow) { e.Status, e.Worker = lifecycle.StatusRunning, &id })
				testkit.Exec(t, b.st, `UPDATE execution SET started_at = now(), status = 'failed' WHERE id = $1`, e.ID)
			}
		}
	}
	b.probe()
	for name, want := range map[string][2]string{
		"silent": {"healthy", ""}, "reports": {"healthy", ""},
		"asks": {"unhealthy", "12 failures in a row"}, "both": {"unhealthy", "12 failures in a row"},
	} {
		p := b.row(workers[name])
		require.Equal(t, want, [2]string{p.Health, p.HealthReason}, name)
	}
}
