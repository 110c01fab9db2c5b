package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// service is a running serve or worker.
type service struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	output *output
}

// startService starts a program with a standard error, or one that is collected if it is nil.
func startService(t *testing.T, environ []string, stderr *os.File, name string, args ...string) *service {
	t.Helper()
	cmd := exec.Command(name, args...) //nolint:noctx // it is killed below
	s := &service{cmd: cmd, ended: make(chan struct{}), output: &output{}}
	s.cmd.Env, s.cmd.Stderr = environ, s.output
	if stderr != nil {
		s.cmd.Stderr = stderr
	}
	require.NoError(t, s.cmd.Start())
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait() // its state is read below
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		<-s.ended
		if t.Failed() {
			t.Logf("%v: %s: %s", args, s.cmd.ProcessState, s.output)
		}
	})
	return s
}

// stopsWith waits for the end of a service in order.
func (s *service) stopsWith(t *testing.T, what string) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(testkit.TestTimeout):
		require.Fail(t, "it goes on", what)
	}
	require.Zero(t, s.cmd.ProcessState.ExitCode(), "%s: %s: %s", what, s.cmd.ProcessState, s.output)
}

func (s *service) signal(t *testing.T, signals ...syscall.Signal) {
	t.Helper()
	for _, sig := range signals {
		require.NoError(t, s.cmd.Process.Signal(sig))
	}
}

// unread is a pipe that is full and has a reader that does not read; lost is one without a reader.
func unread(t *testing.T) *os.File {
	t.Helper()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = reader.Close()
		_ = writer.Close()
	})
	fd := int(writer.Fd()) // each call of Fd makes it blocking
	require.NoError(t, syscall.SetNonblock(fd, true))
	for err == nil {
		_, err = syscall.Write(fd, make([]byte, 4096))
	}
	require.NoError(t, syscall.SetNonblock(fd, false))
	return writer
}

func lost(t *testing.T) *os.File {
	t.Helper()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	t.Cleanup(func() { _ = writer.Close() })
	return writer
}

// harmless are signals whose default is death, and that ask for nothing.
var harmless = []syscall.Signal{
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGVTALRM, syscall.SIGPROF, syscall.SIGIO,
	syscall.SIGPIPE, syscall.SIGXFSZ,
}

// No signal but SIGKILL and those of a crash, and no fate of the log, loses a running execution: the service goes on,
// or drains as at SIGTERM. Actions have the default reactions to signals.
func TestSignalsAndLostLogsLoseNoExecution(t *testing.T) {
	t.Parallel()
	program, ctx := testkit.Program(t), testkit.Context(t)
	database := testkit.OwnDatabase(t)
	st := testkit.OpenStore(t, database)
	environ := append(os.Environ(), "ATTUNE__DATABASE__URL="+database, "ATTUNE__MESSAGE_QUEUE__URL="+testkit.VHost(t),
		"ATTUNE__DATABASE__MAX_CONNECTIONS="+strconv.Itoa(testkit.EngineConnections),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL="+testkit.ManagementURL(t), "ATTUNE__EXECUTOR__HTTP__LISTEN=127.0.0.1:0",
		"ATTUNE__EXECUTOR__NO_WORKERS=wait")
	packs := t.TempDir()
	gate, script := filepath.Join(packs, "gate"), filepath.Join(packs, "demo", "actions", "run.sh")
	require.NoError(t, os.MkdirAll(filepath.Dir(script), 0o700))
	require.NoError(t, os.WriteFile(script, fmt.Appendf(nil,
		"#!/bin/sh\nuntil [ -e %s ]; do sleep 0.05; done\ngrep SigIgn /proc/self/status\n", gate), 0o700))
	testkit.Action(t, st, "demo.gated")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = full.Close() }()

	engine := startService(t, environ, lost(t), program, "serve")
	cases := []struct {
		name    string
		stderr  *os.File
		nohup   bool
		metrics string
		signals []syscall.Signal // stop it
		writes  string
	}{
		{name: "term", signals: []syscall.Signal{syscall.SIGTERM}},
		{name: "hup", signals: []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP}, writes: "hangup"},
		{name: "quit", signals: []syscall.Signal{syscall.SIGQUIT}, writes: "core/worker"},
		{name: "xcpu", signals: []syscall.Signal{syscall.SIGXCPU, syscall.SIGXCPU}, writes: "CPU time limit"},
		{name: "nohup", nohup: true, signals: []syscall.Signal{syscall.SIGTERM}},
		{name: "lost", stderr: lost(t), metrics: freeAddress(t), signals: []syscall.Signal{syscall.SIGTERM}},
		{name: "unread", stderr: unread(t), signals: []syscall.Signal{syscall.SIGTERM}},
		{name: "full", stderr: full, signals: []syscall.Signal{syscall.SIGTERM}},
	}
	workers := make([]*service, len(cases))
	for i, c := range cases {
		args := []string{
			program, "worker", "--name", c.name, "--concurrency", "1", "--metrics", c.metrics, "--packs", packs,
		}
		if c.nohup {
			args = append([]string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh"}, args...)
		}
		workers[i] = startService(t, environ, c.stderr, args[0], args[1:]...)
	}
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st, "SELECT count(*) FROM worker WHERE status::text = 'active'") == len(cases)
	}, testkit.TestTimeout, "each worker is active: a request without any fails at once")
	for range cases {
		run := exec.CommandContext(ctx, program, "run", "demo.gated")
		run.Env = environ
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	count := func(status string) int {
		return testkit.Count(t, st, "SELECT count(*) FROM execution WHERE status::text = $1", status)
	}
	testkit.Eventually(t, func() bool { return count("running") == len(cases) }, testkit.TestTimeout, "all run")
	for i, c := range cases {
		workers[i].signal(t, harmless...)
		if c.nohup {
			workers[i].signal(t, syscall.SIGHUP)
		}
		if c.metrics != "" {
			requireLinesDropped(t, c.metrics)
		}
	}
	engine.signal(t, harmless...)
	for i, c := range cases {
		select {
		case <-workers[i].ended:
			require.Fail(t, "a signal ended the worker", "%s: %s", c.name, workers[i].cmd.ProcessState)
		default:
		}
		workers[i].signal(t, c.signals...)
	}
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st, "SELECT count(*) FROM worker WHERE status::text = 'active'") == 0
	}, testkit.TestTimeout, "each worker drains")
	require.Equal(t, len(cases), count("running"))
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	for i, c := range cases {
		workers[i].stopsWith(t, c.name)
		require.Contains(t, workers[i].output.String(), c.writes)
	}
	testkit.Eventually(t, func() bool { return count("completed") == len(cases) }, testkit.TestTimeout, "all complete")
	masks := testkit.Column[string](t, st.Pool(), `SELECT substring(result::text from 'SigIgn:[^0-9]*([0-9a-f]+)') FROM execution`)
	require.Len(t, masks, len(cases))
	for _, mask := range masks {
		ignored, err := strconv.ParseUint(mask, 16, 64)
		require.NoError(t, err)
		// Whatever started this test may ignore signals beyond the standard ones. A shell starts a job in the
		// background with SIGINT and SIGQUIT ignored.
		const standard, ofJobs = 1<<31 - 1, 1<<(syscall.SIGINT-1) | 1<<(syscall.SIGQUIT-1)
		require.Zero(t, ignored&standard&^ofJobs, "an action ignores signals: %s", mask)
	}
	engine.signal(t, syscall.SIGHUP)
	engine.stopsWith(t, "the engine")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

func requireLinesDropped(t *testing.T, address string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	require.NoError(t, err)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	var body bytes.Buffer
	_, err = body.ReadFrom(response.Body)
	require.NoError(t, err)
	require.Contains(t, body.String(), "attune_log_lines_dropped_total")
	require.NotContains(t, body.String(), "attune_log_lines_dropped_total 0")
}

// A command whose reader has gone ends without a word, as other commands do.
func TestCommandsEndQuietlyWithoutAReader(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"config explain", "run -h", "execution list -h"} {
		cmd := exec.CommandContext(testkit.Context(t), testkit.Program(t), strings.Fields(args)...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = lost(t), &stderr
		require.Error(t, cmd.Run(), args)
		require.Empty(t, stderr.String(), args)
	}
}
