package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// BenchmarkNoop measures one worker process with 200 places on an action that does nothing: executions a second from
// the dispatch to the published completion, and the processor time of the worker's process for each. Rows and
// messages exist before the process starts.
//
//	go test ./core/worker -run '^$' -bench Noop -benchtime 20000x
func BenchmarkNoop(b *testing.B) {
	b.Run("single", func(b *testing.B) { benchmarkNoop(b, 1, false) })
	b.Run("batches", func(b *testing.B) { benchmarkNoop(b, message.MaxBatchItems, false) })
	b.Run("batches and batched completions", func(b *testing.B) { benchmarkNoop(b, message.MaxBatchItems, true) })
}

func benchmarkNoop(b *testing.B, perMessage int, batchCompletions bool) {
	bundle := setup(b)
	require.NoError(b, bundle.engine.DeclareBatches(testkit.Context(b)))
	consumer := bundle.engine.Consume(broker.ConsumerConfig{Queue: message.QueueExecutionBatches, Prefetch: 10})
	require.NoError(b, consumer.Start(testkit.Context(b)))
	ctx, cancel := context.WithCancel(b.Context())
	var recording sync.WaitGroup
	recording.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case batch := <-consumer.Batches():
				bundle.recordBatch(batch)
			}
		}
	})
	b.Cleanup(func() { consumer.Stop(); cancel(); recording.Wait() })
	first := bundle.worker(b)
	first.Stop() // the queue and the id stay
	action := bundle.core(b, "core.noop")
	ids := testkit.Column[int64](b, bundle.store.Pool(), `
		insert into execution (action, action_ref, config, worker, status, attempt)
		select $1, $2, '{"a":1}', $3, 'scheduled', 1 from generate_series(1, $4) returning id`, action.ID, action.Ref, first.ID(), b.N)
	if perMessage == 1 {
		bundle.dispatch(b, first, ids...)
	}
	for rest := ids; perMessage > 1 && len(rest) > 0; rest = rest[min(perMessage, len(rest)):] {
		bundle.dispatchBatch(b, first, rest[:min(perMessage, len(rest))]...)
	}
	child := exec.CommandContext(b.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1", "CHILD_PLACES=200", "CHILD_QUIET=1",
		"CHILD_DATABASE="+bundle.databaseURL, "CHILD_BROKER="+bundle.brokerURL,
		fmt.Sprintf("CHILD_BATCHES=%t", batchCompletions))
	child.Stderr = os.Stderr
	require.NoError(b, child.Start())
	b.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	done := func() int {
		bundle.mu.Lock()
		defer bundle.mu.Unlock()
		return len(bundle.completed)
	}
	// The measurement begins with the first completions, without the start of the process.
	testkit.Eventually(b, func() bool { return done() > 0 }, time.Minute)
	before, used, begin := done(), processorTime(b, child.Process.Pid), time.Now()
	testkit.Eventually(b, func() bool { return done() == b.N }, 5*time.Minute)
	n, took := float64(b.N-before), time.Since(begin)
	used = processorTime(b, child.Process.Pid) - used
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(n/took.Seconds(), "executions/s")
	b.ReportMetric(float64(used.Microseconds())/n, "worker-µs/execution")
	require.Zero(b, testkit.Count(b, bundle.store, "select count(*) from execution where status <> 'completed'"))
}

func (b *bundle) recordBatch(batch *broker.Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range batch.Deliveries {
		singles, _ := message.Split(batch.Deliveries[i].Body)
		for _, one := range singles {
			if end, err := message.DecodePayload[message.ExecutionCompleted](one.Payload); err == nil {
				b.completed[end.ExecutionID] = append(b.completed[end.ExecutionID], end)
			}
		}
	}
	_ = batch.Ack()
}

// processorTime returns the processor time of a process, in ticks of 10 ms.
func processorTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	require.NoError(t, err)
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	require.NoError(t, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(t, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}
