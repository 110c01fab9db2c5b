package worker_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// The engine compares a version constraint with the detected version of the worker's interpreter.
func TestAVersionConstraintIsMetByADetectedInterpreter(t *testing.T) {
	b := newBundle(t)
	path := filepath.Join(t.TempDir(), "python3")
	worker.WriteExecutable(t, path,
		"#!/bin/sh\n[ \"$1\" = --version ] && echo Python 3.11.7 >&2 && exit\nexec /bin/sh \"$1\"\n")
	w := b.worker(t, func(c *worker.Config) { c.Interpreters = map[string][]string{"python3": {path}} })

	var announced struct {
		Versions     map[string][]string `json:"runtime_versions"`
		Interpreters []map[string]string `json:"detected_interpreters"`
	}
	var raw []byte
	require.NoError(t,
		b.store.Pool().QueryRow(testkit.Context(t), "select capabilities from worker where id = $1", w.ID()).Scan(&raw))
	require.NoError(t, json.Unmarshal(raw, &announced))
	require.Equal(t, []string{"3.11.7"}, announced.Versions["python"])
	require.Contains(t, announced.Interpreters, map[string]string{"name": "python", "path": path, "version": "3.11.7"})

	script := filepath.Join(t.TempDir(), "action.py")
	require.NoError(t, os.WriteFile(script, []byte("echo placed\n"), 0o600))
	testkit.Exec(t, b.store, `insert into runtime (ref, name, aliases, distributions) values ('core.python', 'Python', '{python3}', '{}')
		on conflict (ref) do nothing`)
	request := b.requester(t)
	end := func(ref, constraint string) (status lifecycle.Status, r result) {
		action := testkit.Action(t, b.store, ref, func(row *testkit.ActionRow) { row.Entrypoint = script })
		testkit.Exec(t, b.store, `update action set runtime = (select id from runtime where ref = 'core.python'),
			runtime_version_constraint = $2 where id = $1`, action.ID, constraint)
		id := request(ref)
		testkit.Eventually(t, func() bool {
			return testkit.Count(t, b.store, "select count(*) from execution where id = $1 and finished_at is not null",
				id) == 1
		}, waitTimeout)
		require.NoError(t,
			b.store.Pool().QueryRow(testkit.Context(t), "select result from execution where id = $1", id).Scan(&raw))
		require.NoError(t, json.Unmarshal(raw, &r), "%s", raw)
		return testkit.StatusOf(t, b.store, id), r
	}
	status, r := end("pk.met", ">=3.11,<4")
	require.Equal(t, lifecycle.StatusCompleted, status, r.Error)
	require.Equal(t, "placed\n", r.Stdout)
	status, r = end("pk.unmet", ">=3.12")
	require.Equal(t, lifecycle.StatusFailed, status)
	require.Equal(t, "no compatible worker: 1 live worker lacks runtime python >=3.12", r.Error)
}

// A start waits for an interpreter until the timeout, and no longer after it is cancelled.
func TestAHangingInterpreterDoesNotPreventTheRegistration(t *testing.T) {
	b := newBundle(t)
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	worker.WriteExecutable(t, filepath.Join(dir, "python3"),
		"#!/bin/sh\ntrap '' TERM\ntouch "+started+"\nsleep 600\n")
	hanging := func(timeout time.Duration) func(*worker.Config) {
		return func(c *worker.Config) {
			c.Interpreters = map[string][]string{"python": {filepath.Join(dir, "python3")}}
			worker.SetProbeTimeout(c, timeout)
		}
	}

	ctx, cancel := context.WithCancel(testkit.Context(t))
	failed := make(chan error, 1)
	w := b.unstarted(t, hanging(time.Hour))
	go func() { failed <- w.Start(ctx) }()
	testkit.Eventually(t, func() bool { _, err := os.Stat(started); return err == nil }, waitTimeout)
	cancel()
	select {
	case err := <-failed:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(testkit.TestTimeout):
		require.Fail(t, "the start waits for its interpreter after it was cancelled")
	}
	require.Zero(t, testkit.Count(t, b.store, "select count(*) from worker"))

	b.worker(t, hanging(100*time.Millisecond))
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from worker where status = 'active'
		and not capabilities->'runtime_versions' ? 'python' and capabilities->'runtimes' ? 'python'`))
}

// newBundle is a bundle without the stand-in, for tests with an engine.
func newBundle(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{databaseURL: testkit.Database(t), brokerURL: testkit.VHost(t)}
	b.store = testkit.OpenStore(t, b.databaseURL)
	b.engine = b.broker(t, "requests")
	require.NoError(t, b.engine.DeclareExecutor(testkit.Context(t)))
	return b
}

// requester starts an engine and returns a function that requests an execution.
func (b *bundle) requester(t *testing.T) func(ref string) int64 {
	t.Helper()
	cfg := config.Default()
	cfg.Database.URL, cfg.Database.Schema = b.databaseURL, testkit.Schema
	cfg.MessageQueue.URL, cfg.MessageQueue.ManagementURL = b.brokerURL, testkit.ManagementURL(t)
	cfg.Executor.HTTP.Listen = ""
	e, err := engine.New(testkit.Context(t), cfg, engine.Deps{Logger: testkit.Logger(t), Version: "test"})
	require.NoError(t, err)
	require.NoError(t, e.Start(testkit.Context(t)))
	t.Cleanup(func() { require.NoError(t, e.Stop(context.Background())) })
	relay := outbox.New(outbox.Config{}, b.store, b.engine.Publisher(), testkit.Logger(t), nil)
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	return func(ref string) int64 {
		list, err := submit.New(b.store, relay).RequestMany(testkit.Context(t),
			[]submit.Request{{ActionRef: ref, Params: json.RawMessage(`{}`)}})
		require.NoError(t, err)
		return list[0].ID
	}
}
