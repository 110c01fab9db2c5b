package testkit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/devstack"
)

// Standby is a streaming copy of a stack's PostgreSQL. The test's end removes it.
type Standby struct {
	// DatabaseURL is its URL, as that of the stack.
	DatabaseURL string

	t      testing.TB
	server *Server
}

// StartStandby starts a standby of a stack with Config.Durable and waits until it streams. With synchronous every
// commit of the primary waits until the standby has it.
func StartStandby(t testing.TB, primary *devstack.Stack, synchronous bool) *Standby {
	t.Helper()
	bin, owner := postgresOf(t, primary)
	dir, err := os.MkdirTemp("", "attune-standby-*") // PostgreSQL's user cannot enter t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chown(dir, int(owner.Uid), int(owner.Gid)))
	data, port := filepath.Join(dir, "data"), FreePort(t)
	copied := &exec.Cmd{
		Path: filepath.Join(bin, "pg_basebackup"), Dir: dir,
		Args: []string{
			"pg_basebackup", "-D", data, "-R", "-X", "stream", "-c", "fast", "-C", "-S", "standby",
			"-d", primary.DatabaseURL(),
		},
		SysProcAttr: &syscall.SysProcAttr{Credential: owner},
	}
	out, err := copied.CombinedOutput()
	require.NoError(t, err, "pg_basebackup: %s", out)
	s := &Standby{t: t, DatabaseURL: atPort(t, primary.DatabaseURL(), port)}
	s.server = StartServer(t, &exec.Cmd{
		Path: filepath.Join(bin, "postgres"), Dir: dir,
		Args: []string{
			"postgres", "-D", data, "-c", "port=" + strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
			"-c", "unix_socket_directories=", "-c", "max_connections=" + strconv.Itoa(devstack.MaxConnectionsDefault),
		},
		SysProcAttr: &syscall.SysProcAttr{Credential: owner},
	})
	if synchronous {
		// Only now, because the copy must not have it: after its promotion it would wait for a standby of its own.
		s.run(primary.DatabaseURL(), "ALTER SYSTEM SET synchronous_standby_names = '*'")
		s.run(primary.DatabaseURL(), "SELECT pg_reload_conf()")
	}
	want := "async"
	if synchronous {
		want = "sync"
	}
	Eventually(t, func() bool {
		var state string
		err := withConn(Context(t), primary.DatabaseURL(), func(conn *pgx.Conn) error {
			return conn.QueryRow(Context(t),
				"SELECT coalesce(max(sync_state), '') FROM pg_stat_replication WHERE state = 'streaming'").Scan(&state)
		})
		return err == nil && state == want
	}, 30*time.Second, "the standby streams")
	return s
}

// Promote makes the standby a primary and waits until it accepts writes.
func (s *Standby) Promote() {
	s.t.Helper()
	s.run(s.DatabaseURL, "SELECT pg_promote()")
}

// Both returns the URL of the database at the primary or at this server, whichever accepts writes.
func (s *Standby) Both(primary string) string {
	s.t.Helper()
	one, err := url.Parse(primary)
	require.NoError(s.t, err)
	other, err := url.Parse(s.DatabaseURL)
	require.NoError(s.t, err)
	one.Host += "," + other.Host
	query := one.Query()
	query.Set("target_session_attrs", "read-write")
	one.RawQuery = query.Encode()
	return one.String()
}

func (s *Standby) run(databaseURL, sql string) {
	s.t.Helper()
	require.NoError(s.t, withConn(Context(s.t), databaseURL, func(conn *pgx.Conn) error {
		return execAll(Context(s.t), conn, sql)
	}))
}

// postgresOf returns the folder of the server's programs and the user that it runs as.
func postgresOf(t testing.TB, stack *devstack.Stack) (bin string, owner *syscall.Credential) {
	t.Helper()
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", stack.Status().Postgres.PID))
	if err != nil {
		t.Skip("starting a standby needs /proc")
	}
	info, err := os.Stat(filepath.Join(stack.Dir(), "postgres", "data"))
	require.NoError(t, err)
	stat, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	return filepath.Dir(program), &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}
}

// atPort returns a URL with another port.
func atPort(t testing.TB, address string, port int) string {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	parsed.Host = net.JoinHostPort(parsed.Hostname(), strconv.Itoa(port))
	return parsed.String()
}

// FreePort returns a free port of 127.0.0.1 below the system's range for outgoing connections.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 12000 + rand.IntN(8000)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			require.NoError(t, listener.Close())
			return port
		}
	}
	require.Fail(t, "no free port")
	return 0
}

// Server is a server process of a test, which stops it at its end.
type Server struct {
	cmd  *exec.Cmd
	log  bytes.Buffer // read it after the end only
	done chan struct{}
}

// StartServer starts a server process.
func StartServer(t testing.TB, cmd *exec.Cmd) *Server {
	t.Helper()
	s := &Server{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &s.log, &s.log, 5*time.Second // for children that hold them
	require.NoError(t, cmd.Start())
	go func() {
		defer close(s.done)
		_ = cmd.Wait() // the log has the reason
	}()
	t.Cleanup(func() {
		s.Stop(syscall.SIGQUIT)
		if t.Failed() {
			t.Logf("log of %s:\n%s", cmd.Path, s.log.String())
		}
	})
	return s
}

// Stop sends a signal and waits for the end; a server that ignores the signal is killed.
func (s *Server) Stop(sig syscall.Signal) {
	_ = s.cmd.Process.Signal(sig) // it may have ended
	select {
	case <-s.done:
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill() // as above
		<-s.done
	}
}
