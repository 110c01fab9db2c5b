package proof

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
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
	"github.com/attune-go/attune/core/testkit"
)

// ruin is a stage with two replicas and two workers to which things happen
// while it is under load.
type ruin struct {
	*stage

	replicas []*process
	ids      []int64 // of everything that was requested
}

func newRuin(t *testing.T) *ruin {
	t.Helper()
	r := &ruin{stage: newStage(t)}
	r.worker("w1")
	r.worker("w2")
	for range 2 {
		r.replicas = append(r.replicas, r.serve(
			"ATTUNE__MESSAGE_QUEUE__RABBITMQ__HEARTBEAT_SECS=1",
			"ATTUNE__MESSAGE_QUEUE__RABBITMQ__RECONNECT_DELAY_SECS=1"))
	}
	return r
}

// survive puts load on, does harm every so often until it has been done so many
// times, and asks that everything ran once all the same.
func (r *ruin) survive(times int, pause time.Duration, harm func(nth int)) {
	r.suffer(times, pause, harm, nil)
	r.recover()
}

// outlive goes on with the harm beyond that until it has done so much damage: how
// soon there is something again that can be harmed depends on the machine.
func (r *ruin) outlive(times int, pause time.Duration, damage int, harm func() int) {
	done := 0
	r.suffer(times, pause, func(int) { done += harm() }, func() bool { return done >= damage })
	r.recover()
}

func (r *ruin) suffer(times int, pause time.Duration, harm func(nth int), enough func() bool) {
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

func (r *ruin) recover() {
	r.age()
	r.over()
	r.requireOnce(r.ids)
}

// closeConnections has an operator close the connections of everybody who
// works, and returns how many there were.
func (s *stage) closeConnections(t testing.TB) (closed int) {
	t.Helper()
	for _, connection := range s.connections(t) {
		if name := connection.Properties.Name; strings.HasPrefix(name, "attune-executor") ||
			strings.HasPrefix(name, "w") {
			// One that has ended by itself meanwhile is not there to be closed.
			if s.manage(t, http.MethodDelete,
				"/api/connections/"+url.PathEscape(connection.Name)) == http.StatusNoContent {
				closed++
			}
		}
	}
	return closed
}

// connection is a connection as the broker sees it.
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

// manage asks the broker's management and returns what status it answers with.
func (s *stage) manage(t testing.TB, method, path string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(testkit.Context(t), method, s.Management+path, nil)
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

// holdings are what the replicas hold.
type holdings struct {
	goroutines []int            // of each replica
	channels   map[string][]int // of each connection to the broker, by whose it is
}

var served = regexp.MustCompile(`Engine started.*?(127\.0\.0\.1:\d+)`)

// holds reads what the replicas hold at the moment.
func (r *ruin) holds(t *testing.T) holdings {
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

// rests reads it when it does not change any more; the broker counts with some
// delay.
func (r *ruin) rests(t *testing.T) holdings {
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

// Two replicas and two workers under load, to which one thing after the other
// happens. After each of them everything that was requested has run once, and
// at the end they hold no more than at the beginning (L7).
//
//nolint:paralleltest,tparallel // one stage, one fault after the other
func TestFaultsUnderLoadLoseNothingAndLeaveNothing(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "play faults under load; other tests kill replicas at single moments")
	r := newRuin(t)
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

	// F17. Each kind of poison goes into both hot queues while the load goes on,
	// and all of it becomes dead letters.
	t.Run("PoisonComesByBothHotQueues", func(t *testing.T) {
		poison := corpus()
		r.suffer(len(poison), 10*time.Millisecond, func(nth int) { r.poison(t, poison[nth]) }, nil)
		testkit.Eventually(t, func() bool {
			return r.count(`SELECT count(*) FROM dead_letter WHERE decision IS NULL`) == 2*len(poison)
		}, testkit.TestTimeout, "upstream 1: all of it is in the ledger and waits for a person")
		r.count(`WITH gone AS (DELETE FROM dead_letter RETURNING 1) SELECT count(*) FROM gone`)
		r.recover()
	})

	// F2. A replica stands still for longer than the broker and the database wait
	// for it, while another one goes on without it, and then goes on itself.
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
		testkit.Eventually(t, func() bool { // between two statements of a loop everybody is idle for an instant
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

// corpus is what nobody should send. What names no execution is looked at again
// and again for a quarter of a minute, which is left to the long course.
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
func (r *ruin) poison(t *testing.T, body []byte) {
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
