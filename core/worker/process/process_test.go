package process_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/worker/process"
)

var contextOfTest = context.Background()

func TestMain(m *testing.M) {
	if os.Getenv(shieldVariable) != "" {
		os.Exit(runShielded())
	}
	if os.Getenv(guardVariable) != "" {
		os.Exit(runGuarded())
	}
	goleak.VerifyTestMain(m)
}

func shell(script string, out *bytes.Buffer) process.Command {
	command := process.Command{
		Args: []string{"/bin/sh", "-c", script}, Env: os.Environ(),
		Grace: 300 * time.Millisecond,
	}
	if out != nil {
		command.Stdout = out
	}
	return command
}

func TestRun(t *testing.T) {
	t.Parallel()

	t.Run("PassesInputOutputAndExitCode", func(t *testing.T) {
		t.Parallel()
		var out, errs bytes.Buffer
		command := shell("cat; echo problem >&2; exit 7", &out)
		command.Stdin, command.Stderr = strings.NewReader("hello"), &errs
		outcome, err := process.Run(t.Context(), command)
		require.NoError(t, err)
		require.Equal(t, process.Outcome{ExitCode: 7}, outcome)
		require.Equal(t, "hello", out.String())
		require.Equal(t, "problem\n", errs.String())
	})

	t.Run("ChildThatIgnoresItsInput", func(t *testing.T) {
		t.Parallel()
		command := shell("exit 0", nil)
		command.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
		outcome, err := process.Run(t.Context(), command)
		require.NoError(t, err)
		require.Zero(t, outcome.ExitCode)
	})

	t.Run("MissingProgramIsAnError", func(t *testing.T) {
		t.Parallel()
		_, err := process.Run(t.Context(), process.Command{Args: []string{"/does/not/exist"}})
		require.ErrorIs(t, err, os.ErrNotExist)
	})

	t.Run("EndedContextStartsNothing", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("no longer wanted")
		cancel(cause)
		file := filepath.Join(t.TempDir(), "ran")
		outcome, err := process.Run(ctx, shell("touch "+file, nil))
		require.NoError(t, err)
		require.ErrorIs(t, outcome.Interrupted, cause)
		require.NoFileExists(t, file)
	})

	t.Run("TermIsEnoughForAChildThatHandlesIt", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		outcome := interruptWhenReady(t, &out, time.Minute,
			"trap 'echo bye; exit 3' TERM; touch $READY; while :; do sleep 0.05; done")
		require.False(t, outcome.Killed)
		require.Equal(t, 3, outcome.ExitCode)
		require.Equal(t, "bye\n", out.String())
	})

	t.Run("KillEndsAChildThatIgnoresTerm", func(t *testing.T) {
		t.Parallel()
		outcome := interruptWhenReady(t, nil, 300*time.Millisecond,
			"trap '' TERM; touch $READY; while :; do sleep 0.05; done")
		require.True(t, outcome.Killed)
		require.Equal(t, syscall.SIGKILL, outcome.Signal)
		require.Equal(t, 137, outcome.ExitCode)
	})
}

// No descendant survives any end of the child, and output that one holds open does not delay the return.
func TestRunLeavesNothingBehind(t *testing.T) {
	t.Parallel()

	t.Run("AfterInterruption", func(t *testing.T) {
		t.Parallel()
		pidFile := filepath.Join(t.TempDir(), "pid")
		var out bytes.Buffer
		outcome := interruptWhenReady(t, &out, 300*time.Millisecond,
			"trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > "+pidFile+"; touch $READY; sleep 600' & wait; sleep 600")
		require.Error(t, outcome.Interrupted)
		requireGone(t, pidFile)
	})

	t.Run("AfterANormalEnd", func(t *testing.T) {
		t.Parallel()
		pidFile := filepath.Join(t.TempDir(), "pid")
		var out bytes.Buffer
		begin := time.Now()
		outcome, err := process.Run(t.Context(), shell("sleep 600 & echo $! > "+pidFile+"; echo done", &out))
		require.NoError(t, err)
		require.Zero(t, outcome.ExitCode)
		require.Equal(t, "done\n", out.String())
		require.Less(t, time.Since(begin), 5*time.Minute, "the descendant would run for ten")
		requireGone(t, pidFile)
	})
}

// interruptWhenReady ends the context once the script has created $READY.
func interruptWhenReady(t *testing.T, out *bytes.Buffer, grace time.Duration, script string) process.Outcome {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready")
	command := shell(script, out)
	command.Env, command.Grace = append(command.Env, "READY="+ready), grace
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("interrupted by the test")
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(ready); err == nil {
				cancel(cause)
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	outcome, err := process.Run(ctx, command)
	cancel(nil)
	watch.Wait()
	require.NoError(t, err)
	require.ErrorIs(t, outcome.Interrupted, cause)
	return outcome
}

// requireGone checks that the process whose number is in the file has ended.
func requireGone(t *testing.T, pidFile string) {
	t.Helper()
	text, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !running(pid) }, time.Minute, 5*time.Millisecond,
		"process %d outlived its group", pid)
}

// running reports whether the process exists and is no zombie.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
