package proof

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// faultRun is a stage with two replicas and two workers for faults under load.
type faultRun struct {
	*stage

	replicas []*process
	ids      []int64 // of everything that was requested
}

func newFaultRun(t *testing.T) *faultRun {
	t.Helper()
	r := &faultRun{stage: newStage(t)}
	r.worker("w1")
	r.worker("w2")
	r.replicas = r.serveTwo()
	return r
}

// survive applies load, harms the given number of times, and checks that everything ran once.
func (r *faultRun) survive(times int, pause time.Duration, harm func(nth int)) {
	r.suffer(times, pause, harm, nil)
	r.recover()
}

// outlive continues to harm until the given damage is done, which depends on the machine.
func (r *faultRun) outlive(times int, pause time.Duration, damage int, harm func() int) {
	done := 0
	r.suffer(times, pause, func(int) { done += harm() }, func() bool { return done >= damage })
	r.recover()
}

func (r *faultRun) suffer(times int, pause time.Duration, harm func(nth int), enough func() bool) {
	done, next := 0, time.Now()
	over := func() bool { return done >= times && (enough == nil || enough()) }
	r.ids = append(r.ids, r.load(func() bool {
		if !over() && !time.Now().Before(next) {
			harm(done)
			done, next = done+1, time.Now().Add(pause)
		}
		return over()
	})...)
}

func (r *faultRun) recover() {
	r.age()
	r.over()
	r.requireOnce(r.ids)
}

// closeConnections closes the connections of replicas and workers, as an operator can, and returns their number.
func (s *stage) closeConnections(t testing.TB) (closed int) {
	t.Helper()
	for _, connection := range s.connections(t) {
		if name := connection.Properties.Name; strings.HasPrefix(name, "attune-executor") ||
			strings.HasPrefix(name, "w") {
			if testkit.Cut(t, connection.Name) {
				closed++
			}
		}
	}
	return closed
}

// connection is a connection in the broker's management API.
type connection struct {
	Name       string `json:"name"`
	Channels   int    `json:"channels"`
	Properties struct {
		Name string `json:"connection_name"`
	} `json:"client_properties"`
}

func (s *stage) connections(t testing.TB) (list []connection) {
	t.Helper()
	testkit.Manage(t, http.MethodGet, "/api/vhosts/"+testkit.VHostName(t, s.AMQP)+"/connections", nil, &list)
	return list
}

// holdings are the resources of the replicas.
type holdings struct {
	goroutines []int            // of each replica
	channels   map[string][]int // of each connection to the broker, by whose it is
}

var served = regexp.MustCompile(`Engine started.*?(127\.0\.0\.1:\d+)`)

// holds reads the present resources of the replicas.
func (r *faultRun) holds(t *testing.T) holdings {
	t.Helper()
	h := holdings{channels: map[string][]int{}}
	for _, replica := range r.replicas {
		address := served.FindStringSubmatch(replica.log.String())
		require.NotNil(t, address, "the replica says where it listens")
		h.goroutines = append(h.goroutines, goroutines(t, address[1]))
	}
	for _, c := range r.connections(t) {
		h.channels[c.Properties.Name] = append(h.channels[c.Properties.Name], c.Channels)
	}
	return h
}

// rests reads them when they are stable; the broker counts with a delay.
func (r *faultRun) rests(t *testing.T) holdings {
	t.Helper()
	last, same := r.holds(t), 0
	testkit.Eventually(t, func() bool {
		time.Sleep(200 * time.Millisecond)
		now := r.holds(t)
		same++
		if !maps.EqualFunc(last.channels, now.channels, slices.Equal[[]int]) {
			same = 0
		}
		last = now
		return same == 5
	}, time.Minute)
	return last
}

func goroutines(t *testing.T, address string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(testkit.Context(t), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	require.NoError(t, err)
	raw, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	found := regexp.MustCompile(`(?m)^go_goroutines (\d+)$`).FindSubmatch(raw)
	require.NotNil(t, found)
	n, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return n
}

// Two replicas and two workers under load get one fault after the other. After each fault every request has run
// once, and at the end they hold no more resources than at the start (L7).
//
//nolint:paralleltest,tparallel // one stage, one fault after the other
func TestFaultsUnderLoadLoseNothingAndLeaveNothing(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "play faults under load; other tests kill replicas at single moments")
	r := newFaultRun(t)
	r.survive(0, 0, nil)
	before := r.rests(t)

	// F4.
	t.Run("AnOperatorClosesEveryConnection", func(t *testing.T) {
		r.outlive(4, 400*time.Millisecond, 8, func() int { return r.closeConnections(t) })
	})

	// F9.
	t.Run("TheConnectionsOfTheBatchesAreTerminated", func(*testing.T) {
		r.outlive(20, 60*time.Millisecond, 10, func() int {
			return r.count(`SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name = 'attune-executor rounds'`)
		})
	})

	// F17. Each kind of unreadable message goes into both busy queues under load, and all of it becomes dead
	// letters.
	t.Run("PoisonComesByBothHotQueues", func(t *testing.T) {
		poison := corpus()
		r.suffer(len(poison), 10*time.Millisecond, func(nth int) { r.poison(t, poison[nth]) }, nil)
		testkit.Eventually(t, func() bool {
			// One dead letter counts all messages of a queue whose executions do not exist.
			return r.count(`SELECT coalesce(sum(coalesce((evidence -> 'alike' ->> 'count')::int, 1)), 0)
				FROM dead_letter WHERE decision IS NULL`) == 2*len(poison)
		}, testkit.TestTimeout, "upstream 1: all of it is in the ledger and waits for a person")
		r.count(`WITH gone AS (DELETE FROM dead_letter RETURNING 1) SELECT count(*) FROM gone`)
		r.recover()
	})

	// F2. A replica freezes for longer than the broker and the database wait for it, while another one continues
	// without it, and then continues itself.
	t.Run("AReplicaIsFrozenAndThawed", func(t *testing.T) {
		frozen := r.replicas[0].cmd.Process
		r.survive(1, 0, func(int) { require.NoError(t, frozen.Signal(syscall.SIGSTOP)) })
		id := regexp.MustCompile(`"replica":"([0-9a-f]+)"`).FindStringSubmatch(r.replicas[0].log.String())
		require.NotNil(t, id)
		testkit.Eventually(t, func() bool {
			return !slices.ContainsFunc(r.connections(t),
				func(c connection) bool { return strings.Contains(c.Properties.Name, id[1]) })
		}, time.Minute, "the broker gives the frozen one up")
		require.NoError(t, frozen.Signal(syscall.SIGCONT))
		r.survive(0, 0, nil)
	})

	t.Run("L7NothingIsLeft", func(t *testing.T) {
		var after holdings
		testkit.Eventually(t, func() bool {
			after = r.holds(t)
			if !maps.EqualFunc(before.channels, after.channels, slices.Equal[[]int]) {
				return false
			}
			for i := range after.goroutines {
				if after.goroutines[i] > before.goroutines[i]+5 {
					return false
				}
			}
			return true
		}, time.Minute, "%s", lazily(func() string { return fmt.Sprintf("before %+v, after %+v", before, after) }))
		testkit.Eventually(t, func() bool { // between two statements of a loop every session is idle for an instant
			return r.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
				AND application_name LIKE 'attune-executor%' AND state LIKE 'idle in transaction%'`) == 0
		}, time.Minute, "no transaction is left open")
		for _, replica := range r.replicas {
			require.Zero(t, replica.stop(t))
		}
		testkit.Eventually(t, func() bool {
			return r.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
				AND application_name LIKE 'attune-executor%'`) == 0
		}, 30*time.Second, "the connections go with the replicas")
	})
}

// lazily makes a text when it is needed.
type lazily func() string

func (l lazily) String() string { return l() }

// corpus are messages that no service should send. The engine retries unknown executions for 15 seconds, so only
// the slow tests send those.
func corpus() [][]byte {
	valid := func(kind string, payload string) []byte {
		return fmt.Appendf(nil, `{"message_id":"1f0e5f0e-0000-4000-8000-000000000000","correlation_id":"1f0e5f0e-0000-4000-8000-000000000000",
			"message_type":%q,"version":"1.0","timestamp":"2026-01-01T00:00:00Z","headers":{},"payload":%s}`, kind, payload)
	}
	bodies := [][]byte{
		{},
		[]byte(`not JSON`),
		[]byte(`{"cut`),
		[]byte("\xff\xfe\x00"),
		[]byte(`[]`), []byte(`null`), []byte(`7`), []byte(`{}`),
		[]byte(strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_000)),
		valid("NoSuchType", `{"execution_id":1}`),
		valid(message.TypeExecutionRequested, `null`),
		valid(message.TypeExecutionCompleted, `[]`),
		valid(message.TypeExecutionRequested, `{}`),
		valid(message.TypeExecutionCompleted, `{"execution_id":"one"}`),
		valid(message.TypeExecutionRequested, `{"execution_id":1e300}`),
		valid(message.TypeExecutionRequested, `{"execution_id":9223372036854775808}`),
		append(valid(message.TypeExecutionRequested, `{"execution_id":1,"filler":"`+strings.Repeat("x", 2<<20)+`"`),
			'!'),
	}
	if testkit.Slow() {
		bodies = append(bodies, valid(message.TypeExecutionCompleted, `{"execution_id":-1}`),
			valid(message.TypeExecutionRequested, `{"execution_id":9223372036854775807,"action_ref":"no.such"}`))
	}
	return bodies
}

// poison publishes a body to both hot queues.
func (r *faultRun) poison(t *testing.T, body []byte) {
	t.Helper()
	var batch []broker.Message
	for i, key := range []string{message.KeyExecutionRequested, message.KeyExecutionCompleted} {
		batch = append(batch, broker.Message{
			ID: fmt.Sprintf("poison-%d", i), Exchange: message.ExchangeExecutions, RoutingKey: key, Type: "x",
			Body: body,
		})
	}
	for _, outcome := range r.wire.Publisher().Publish(testkit.Context(t), batch) {
		require.Equal(t, broker.Confirmed, outcome.Status, "%v", outcome.Err)
	}
}
