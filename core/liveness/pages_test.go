package liveness

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// endpoints are health endpoints whose answers wait until they are released.
func endpoints(t *testing.T) (address string, asked *atomic.Int64, release func()) {
	t.Helper()
	asked = &atomic.Int64{}
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(release)
	return server.URL, asked, release
}

// A page of workers whose endpoints do not answer delays no other page, and no transaction is open during requests.
func TestSilentHealthEndpointsDelayNoOtherPage(t *testing.T) {
	b := newBench(t, &inspector{state: consumed})
	address, asked, release := endpoints(t)
	for i := range probePage {
		testkit.Worker(t, b.st, fmt.Sprintf("silent %d", i),
			func(w *testkit.WorkerRow) { w.Capabilities["health_url"] = address })
	}
	last := testkit.Worker(t, b.st, "answers").ID
	b.probes.client.Timeout = time.Minute
	done := make(chan error, 1)
	go func() { done <- b.probes.tick(testkit.Context(t)) }()
	testkit.Eventually(t, func() bool {
		return asked.Load() == probePage &&
			testkit.Count(t, b.st, `SELECT count(*) FROM worker_probe WHERE worker = $1`, last) == 1
	}, 30*time.Second)
	require.Zero(t, testkit.Count(t, b.st, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND state LIKE 'idle in transaction%'`))
	require.Equal(t, 1, testkit.Count(t, b.st, `SELECT count(*) FROM worker_probe`))
	release()
	require.NoError(t, <-done)
	require.Equal(t, probePage+1, testkit.Count(t, b.st, `SELECT count(*) FROM worker_probe WHERE verdict = 'fresh'`))
}
