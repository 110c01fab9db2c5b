package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/worker/process"
)

// A report is encoded like with encoding/json.
func TestAReportIsEncodedAsByEncodingJSON(t *testing.T) {
	t.Parallel()
	texts := []string{
		"", "plain", "<&>\"\\\n\r\t\b\f\x00\x01\x1f\x7f", "é€😀", "a\u2028b\u2029c", "a\xffb\xc3", "\xed\xa0\x80",
		"\ufffd", strings.Repeat("x\n", 3000),
	}
	for i, text := range texts {
		other := texts[(i+3)%len(texts)]
		for _, rep := range []report{
			{Stdout: text, StderrLog: other},
			{
				ExitCode: -1, DurationMS: 1 << 40, Error: text, OutputError: other, StdoutTruncated: true,
				Cancelled: true,
			},
			{
				Succeeded: true, Data: json.RawMessage(`{"a":[1,2.50]}`), QueueAck: json.RawMessage(`[]`),
				StderrTruncated: true, TimedOut: true,
			},
		} {
			var want bytes.Buffer
			encoder := json.NewEncoder(&want)
			encoder.SetEscapeHTML(false)
			require.NoError(t, encoder.Encode(rep))
			require.Equal(t, strings.TrimSuffix(want.String(), "\n"), encoded(rep))
		}
	}
}

// results returns a runner and a job whose action writes a mebibyte.
func results() (*runner, *job) {
	chunk := bytes.Repeat([]byte("0123456789abcde\n"), 2048) // 32 KiB, as pipes deliver it
	cfg := Config{Actions: Actions{"result.mebibyte": func(_ context.Context, task Task) (any, error) {
		for range 32 {
			_, _ = task.Stdout.Write(chunk)
		}
		return nil, nil
	}}}.withDefaults()
	ref := "result.mebibyte"
	j := &job{
		begun: make(chan struct{}),
		id:    1, ctx: context.Background(),
		row: started{execution{ActionRef: ref, Config: []byte(`{"a":1}`)}, action{Entrypoint: &ref}},
	}
	return newRunner(cfg, newVault(cfg.Keyring, nil, telemetry.Discard()), nil, nil, separation{}, &process.Guard{}), j
}

// A result of a mebibyte is collected (which needs twice its size), converted to a text and encoded. The statement
// gets it without another copy.
//
//nolint:paralleltest // it measures the allocations of the process
func TestALargeResultIsCopiedAsLittleAsPossible(t *testing.T) {
	r, j := results()
	once := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		end, _ := r.run(j)
		params := store.SettleEndsParams{}
		addEnding(&params, end)
		runtime.ReadMemStats(&after)
		end.written()
		require.Greater(t, len(params.Results[0]), 1<<20)
		return after.TotalAlloc - before.TotalAlloc
	}
	once()
	least := once()
	for range 4 {
		least = min(least, once())
	}
	require.Less(t, least, uint64(9<<19), "four and a half times its size")
}

// Large results beyond the bound of memory are not built until earlier ones are written.
func TestLargeResultsWaitForUnwrittenOnes(t *testing.T) {
	t.Parallel()
	const all, fit = 40, roomForResults >> 20
	r, j := results()
	ends := make(chan ending, all)
	var runs sync.WaitGroup
	for range all {
		runs.Go(func() {
			one := *j
			one.begun = make(chan struct{})
			end, _ := r.run(&one)
			ends <- end
		})
	}
	held := make([]ending, 0, all)
	for range fit {
		held = append(held, <-ends)
	}
	require.False(t, r.room.TryAcquire(1), "no room for another one")
	require.Empty(t, ends)
	for range all - fit {
		held[0].written()
		held = append(held[1:], <-ends)
	}
	for _, end := range held {
		end.written()
	}
	runs.Wait()
	require.True(t, r.room.TryAcquire(roomForResults), "all room is released")
}
