package testkit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/installation/worker"
)

type (
	// FakeWorker is a worker of an existing installation that does what the test says.
	FakeWorker = worker.Worker
	// FakeWorkerConfig says what the worker does.
	FakeWorkerConfig = worker.Config
	// Job is an execution that was handed to the worker.
	Job = worker.Job
	// Answer is what the worker reports of it.
	Answer = worker.Answer
	// Run is what the worker keeps of it.
	Run = worker.Run
)

// StartFakeWorker registers a worker, declares its queues, and works until the
// end of the test, Stop or Kill.
func StartFakeWorker(t testing.TB, cfg FakeWorkerConfig) *FakeWorker {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = uniqueName("worker-")
	}
	if cfg.Logger == nil {
		cfg.Logger = Logger(t)
	}
	w, err := worker.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(w.Kill)
	return w
}
