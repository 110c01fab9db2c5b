package devstack_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/devstack"
)

// The test binary runs itself as a helper process: it starts an attached stack,
// prints the status as one line of JSON, waits for its input to end, and stops
// the stack.
const (
	envRole  = "DEVSTACK_TEST_ROLE"
	envDir   = "DEVSTACK_TEST_DIR"
	envUmask = "DEVSTACK_TEST_UMASK"
)

func helper(string) int {
	if text := os.Getenv(envUmask); text != "" {
		mask, err := strconv.ParseInt(text, 8, 32)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		syscall.Umask(int(mask))
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	stack, err := devstack.Up(ctx, devstack.Config{Dir: os.Getenv(envDir)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(stack.Status()); err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test closes it
	if err := stack.Reset(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type helperOptions struct {
	dir   string
	umask string
	uid   uint32
	env   []string
	unset []string
}

type helperProcess struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
	errors *strings.Builder
}

func startHelper(t *testing.T, options helperOptions) *helperProcess {
	t.Helper()
	p := &helperProcess{cmd: exec.CommandContext(context.Background(), helperBinary(t)), errors: &strings.Builder{}}
	p.cmd.Dir = "/"
	p.cmd.Stderr = p.errors
	p.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(options.unset, name)
	}), envRole+"=up", envDir+"="+options.dir, envUmask+"="+options.umask)
	p.cmd.Env = append(p.cmd.Env, options.env...)
	if options.uid != 0 {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: options.uid, Gid: options.uid}}
	}
	var err error
	p.input, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	output, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.output = bufio.NewReader(output)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended already, unless the test failed
		_ = p.cmd.Wait()         // the second wait of a good test
	})
	return p
}

// helperBinary copies the test binary to where every user may run it.
func helperBinary(t *testing.T) string {
	t.Helper()
	own, err := os.Executable()
	require.NoError(t, err)
	raw, err := os.ReadFile(own)
	require.NoError(t, err)
	binary := tempDir(t, "helper")
	syscall.ForkLock.RLock() // a child forked meanwhile would keep the file busy
	err = os.WriteFile(binary, raw, 0o755)
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	require.NoError(t, os.Chmod(filepath.Dir(binary), 0o755))
	return binary
}

func (p *helperProcess) awaitReady(t *testing.T) devstack.Status {
	t.Helper()
	line, err := p.output.ReadBytes('\n')
	if err != nil {
		_ = p.cmd.Wait() // its error output tells more
		require.NoError(t, err, p.errors.String())
	}
	var status devstack.Status
	require.NoError(t, json.Unmarshal(line, &status), string(line))
	require.True(t, status.Running())
	return status
}

func (p *helperProcess) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	require.Error(t, p.cmd.Wait(), "it was killed")
}

func (p *helperProcess) finish(t *testing.T) {
	t.Helper()
	require.NoError(t, p.input.Close())
	require.NoError(t, p.cmd.Wait(), p.errors)
}

// occupy listens where the URLs point to, as a stranger would.
func occupy(t *testing.T, urls ...string) (release func()) {
	t.Helper()
	var held []net.Listener
	for _, address := range urls {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(portOf(t, address))))
		require.NoError(t, err)
		held = append(held, listener)
	}
	return func() {
		for _, listener := range held {
			_ = listener.Close()
		}
	}
}
