package worker_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// Notices about packs are acknowledged, and a changed interpreter is announced.
func TestNoticesAboutPacksAreConsumed(t *testing.T) {
	b := setup(t)
	python := filepath.Join(t.TempDir(), "python")
	install := func(version string) {
		worker.WriteExecutable(t, python, "#!/bin/sh\necho Python "+version+"\n")
	}
	install("3.11.2")
	w := b.worker(t, func(c *worker.Config) {
		c.PacksDir, c.Interpreters = t.TempDir(), map[string][]string{"python": {python}}
	})
	announced := func(version string) func() bool {
		return func() bool {
			return testkit.Count(t, b.store, `SELECT count(*) FROM worker
				WHERE id = $1 AND capabilities -> 'runtime_versions' -> 'python' ->> 0 = $2`, w.ID(), version) == 1
		}
	}
	require.True(t, announced("3.11.2")())
	publish := func(kind, key string, body []byte) {
		outcome := b.engine.Publisher().Publish(testkit.Context(t), []broker.Message{{
			ID: key, Exchange: message.ExchangeEvents, RoutingKey: key, Type: kind, Body: body,
		}})[0]
		require.NoError(t, outcome.Err)
	}
	install("3.12.1")
	notice := message.PackRegistered{PackRef: "p", Version: "1"}
	registered, err := message.New(message.TypePackRegistered, notice, time.Now(), "t").Encode()
	require.NoError(t, err)
	publish(message.TypePackRegistered, message.KeyPackRegistered, registered)
	testkit.Eventually(t, announced("3.12.1"), waitTimeout)
	deleted, err := message.New(message.TypePackDeleted, message.PackDeleted{PackRef: "p"}, time.Now(), "t").Encode()
	require.NoError(t, err)
	publish(message.TypePackDeleted, message.KeyPackDeleted, deleted)
	publish(message.TypePackRegistered, message.KeyPackRegistered, []byte("no notice"))
	ready := func(queue string) int {
		state, err := b.engine.QueueState(testkit.Context(t), queue)
		require.NoError(t, err)
		require.True(t, state.Exists)
		return state.Ready
	}
	testkit.Eventually(t, func() bool { return ready(message.QueueDeadLetter) == 1 }, waitTimeout)
	w.Stop() // unacknowledged messages return to the queue
	require.Zero(t, ready(message.WorkerPacksQueue(w.ID())))
}
