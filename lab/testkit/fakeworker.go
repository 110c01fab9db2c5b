package testkit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/installation/worker"
)

type (
	// FakeWorker is a worker of an existing installation under the control of the test.
	FakeWorker = worker.Worker
	// FakeWorkerConfig configures the worker.
	FakeWorkerConfig = worker.Config
	// Job is a dispatch to the worker.
	Job = worker.Job
	// Answer is its outcome.
	Answer = worker.Answer
	// Run is the worker's record of it.
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
