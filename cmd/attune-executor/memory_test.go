package main

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// Parallel reads of results of 16 MiB take a bounded memory, however often they are repeated.
func TestParallelReadsOfLargeResultsTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	testkit.MemoryOf(t, os.Getpid()) // skips where the memory cannot be read
	ctx, address := testkit.Context(t), freeAddress(t)
	database := testkit.OwnDatabase(t)
	st := testkit.OpenStore(t, database)
	testkit.Exec(t, st, `INSERT INTO execution (action_ref, status, result)
		SELECT 'demo.large', 'completed', jsonb_build_object('stdout', repeat('x', 16600000)) FROM generate_series(1, 8)`)
	// Replicas run without settings of the collector.
	environ := append(os.Environ(), "GOGC=", "GOMEMLIMIT=", "ATTUNE__DATABASE__URL="+database,
		"ATTUNE__MESSAGE_QUEUE__URL="+testkit.VHost(t), "ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL="+testkit.ManagementURL(t),
		"ATTUNE__DATABASE__MAX_CONNECTIONS="+strconv.Itoa(testkit.EngineConnections),
		"ATTUNE__EXECUTOR__HTTP__LISTEN="+address)
	engine := startService(t, environ, nil, testkit.Program(t), "serve")
	read := func(id int) (int64, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			"http://"+address+"/api/v1/executions/"+strconv.Itoa(id), http.NoBody)
		if err != nil {
			return 0, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		defer func() { _ = answer.Body.Close() }()
		return io.Copy(io.Discard, answer.Body)
	}
	testkit.Eventually(t, func() bool {
		n, err := read(1)
		return err == nil && n > 16600000
	}, testkit.TestTimeout, "a large result is read")
	for range 2 {
		var readers sync.WaitGroup
		for id := range 8 {
			readers.Go(func() { _, _ = read(id + 1) }) // a busy machine may be too slow for some
		}
		readers.Wait()
	}
	http.DefaultClient.CloseIdleConnections()
	require.Less(t, testkit.MemoryOf(t, engine.cmd.Process.Pid).Peak>>20, 320)
}
