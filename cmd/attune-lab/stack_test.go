package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/devstack"
)

// runStack runs one stack command in this process and returns its output.
func runStack(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newStackCommand(&app{output: "table"})
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// stackDir is a folder that the PostgreSQL user can enter, unlike t.TempDir.
func stackDir(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("", "attune-command-*")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(base, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	return filepath.Join(base, "stack")
}

func TestStackCommandsWithoutAStack(t *testing.T) {
	t.Parallel()
	dir := stackDir(t)

	for _, command := range []string{"status", "env"} {
		_, err := runStack(t, command, "--dir", dir)
		require.ErrorIs(t, err, devstack.ErrNoStack, command)
	}
	out, err := runStack(t, "down", "--dir", dir)
	require.NoError(t, err, "there is nothing to stop")
	require.Equal(t, "nothing to stop in "+dir+"\n", out)
	out, err = runStack(t, "reset", "--dir", dir)
	require.NoError(t, err)
	require.Equal(t, "nothing to reset in "+dir+"\n", out)
}

func TestStackCommands(t *testing.T) {
	t.Parallel()
	dir := stackDir(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if stack, err := devstack.Attach(ctx, devstack.Config{Dir: dir}); err == nil {
			require.NoError(t, stack.Reset(ctx), "left by a failed test")
		}
	})

	out, err := runStack(t, "up", "--dir", dir, "--fast", "--stats-interval", "250ms")
	require.NoError(t, err)
	require.Contains(t, out, "PostgreSQL  running")
	require.Contains(t, out, "RabbitMQ    running")

	out, err = runStack(t, "env", "--dir", dir)
	require.NoError(t, err)
	require.Regexp(t,
		`(?m)^export ATTUNE__DATABASE__URL='postgres://attune:\w{20,}@127\.0\.0\.1:\d+/attune\?sslmode=disable'$`, out)
	require.Regexp(t, `(?m)^export ATTUNE__MESSAGE_QUEUE__URL='amqp://attune:\w{20,}@127\.0\.0\.1:\d+/%2f'$`, out)
	require.Regexp(t, `(?m)^export ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL='http://attune:\w{20,}@127\.0\.0\.1:\d+'$`,
		out)

	_, err = runStack(t, "status", "--dir", dir)
	require.NoError(t, err)
	_, err = runStack(t, "down", "--dir", dir, "--hard")
	require.NoError(t, err)
	out, err = runStack(t, "status", "--dir", dir)
	require.ErrorContains(t, err, "stack up", "the error does not say what to do")
	require.Contains(t, out, "PostgreSQL  stopped")
	_, err = runStack(t, "reset", "--dir", dir)
	require.NoError(t, err)
	_, err = runStack(t, "status", "--dir", dir)
	require.ErrorIs(t, err, devstack.ErrNoStack)
}
