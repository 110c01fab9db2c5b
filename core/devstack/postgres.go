package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// longestSocketDir leaves room for the socket's own name in the 107 bytes that
// the system allows.
const longestSocketDir = 92

// errPortTaken is a start that lost its port to another process; the caller
// tries others.
var errPortTaken = errors.New("the port was taken by another process")

func (s *Stack) postgresDir() string  { return filepath.Join(s.place.dir, "postgres") }
func (s *Stack) postgresData() string { return filepath.Join(s.postgresDir(), "data") }
func (s *Stack) postgresLog() string  { return filepath.Join(s.postgresDir(), "postgres.log") }
func (s *Stack) postgresMark() string { return " -D " + s.postgresData() + " " }

// ensurePostgres starts PostgreSQL unless it runs, and waits until it answers.
// started tells whether a process was forked, also when the answer is an error.
func (s *Stack) ensurePostgres(ctx context.Context) (started bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.StartTimeout,
		fmt.Errorf("PostgreSQL was not ready within %s", s.cfg.StartTimeout))
	defer cancel()
	if pid := s.snapshot().Postgres.PID; alive(pid, s.postgresMark()) {
		return false, s.awaitPostgres(ctx, pid)
	}
	began := time.Now()
	for range 3 {
		started = true
		if err = s.startPostgres(ctx); !errors.Is(err, errPortTaken) {
			break
		}
		if err = s.update(func(st *state) { st.PostgresPort = 0 }); err != nil {
			break
		}
	}
	if err != nil {
		return started, withLogs(err, s.postgresLog())
	}
	s.cfg.Logger.Debug("PostgreSQL is ready", "port", s.snapshot().PostgresPort, "after", time.Since(began))
	return started, nil
}

func (s *Stack) startPostgres(ctx context.Context) error {
	if err := s.preparePostgresDir(); err != nil {
		return err
	}
	if err := s.clearPostgres(ctx); err != nil {
		return err
	}
	if err := s.initDatabase(ctx); err != nil {
		return err
	}
	if port := s.snapshot().PostgresPort; !allFree(port) {
		ports, err := freePorts(1)
		if err != nil {
			return err
		}
		if err := s.update(func(st *state) { st.PostgresPort = ports[0] }); err != nil {
			return err
		}
	}
	pid, err := s.launch.start(child{
		name: "PostgreSQL", path: s.bins.postgres, args: s.postgresArgs(), env: s.cleanEnv(),
		dir: "/", log: s.postgresLog(), as: s.as, onDeath: syscall.SIGINT,
	})
	if err != nil {
		return err
	}
	if err := s.update(func(st *state) { st.Postgres.PID = pid }); err != nil {
		return err
	}
	return s.awaitPostgres(ctx, pid)
}

// preparePostgresDir makes the folder that belongs to the server's user.
func (s *Stack) preparePostgresDir() error {
	if err := makeDir(s.postgresDir()); err != nil {
		return err
	}
	if s.as != nil {
		if err := os.Chown(s.postgresDir(), int(s.as.uid), int(s.as.gid)); err != nil {
			return fmt.Errorf("give %s to user %s: %w", s.postgresDir(), s.as.name, err)
		}
	}
	return nil
}

// clearPostgres ends orphans of an earlier start and removes the lock files that a kill -9 leaves
// behind, once no process uses the data folder.
func (s *Stack) clearPostgres(ctx context.Context) error {
	for _, pid := range marked(s.postgresMark()) {
		if err := stop(ctx, pid, s.postgresMark(), syscall.SIGQUIT, 2*time.Second); err != nil {
			return err
		}
	}
	err := poll(ctx, 10*time.Millisecond, func() (bool, error) { return !inFolder(s.postgresData()), nil })
	if err != nil {
		return fmt.Errorf("wait for the former server to leave %s: %w", s.postgresData(), err)
	}
	stale, _ := filepath.Glob(filepath.Join(s.postgresDir(), ".s.PGSQL.*")) // the pattern is well formed
	stale = append(stale, filepath.Join(s.postgresData(), "postmaster.pid"))
	for _, file := range stale {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a stale lock: %w", err)
		}
	}
	return nil
}

// initDatabase makes the data folder when there is none. It works beside and
// renames, so an interrupted run never looks finished.
func (s *Stack) initDatabase(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.postgresData(), "PG_VERSION")); err == nil {
		return s.checkDataVersion()
	}
	fresh := s.postgresData() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove a half-made data folder: %w", err)
	}
	locale := "C.UTF-8"
	if runtime.GOOS == "darwin" {
		locale = "C"
	}
	login := []string{"-A", "trust"} // without durability it is for tests, which connect thousands of times
	if s.snapshot().Durable {
		file, err := s.handPassword()
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(file) }() // the folder is the server's own
		login = []string{"-A", "scram-sha-256", "--pwfile=" + file}
	}
	args := append([]string{"-D", fresh, "-U", Username, "-E", "UTF8", "--locale=" + locale, "--no-sync",
		"--no-instructions"}, login...)
	cmd := exec.CommandContext(ctx, s.bins.initdb, args...)
	cmd.Env, cmd.Dir = s.cleanEnv(), "/"
	cmd.SysProcAttr = processAttributes(child{as: s.as, onDeath: syscall.SIGKILL}, s.cfg.Detached)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w: %s", fresh, err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(fresh, s.postgresData()); err != nil {
		return fmt.Errorf("put the new data folder in place: %w", err)
	}
	return nil
}

// handPassword writes the password where initdb, which may run as another user, can read it.
func (s *Stack) handPassword() (file string, err error) {
	file = filepath.Join(s.postgresDir(), "password")
	if err := os.WriteFile(file, []byte(s.password), 0o600); err != nil {
		return "", fmt.Errorf("hand the password to initdb: %w", err)
	}
	if s.as != nil {
		if err := os.Chown(file, int(s.as.uid), int(s.as.gid)); err != nil {
			return "", fmt.Errorf("hand the password to initdb: %w", err)
		}
	}
	return file, nil
}

func (s *Stack) checkDataVersion() error {
	raw, err := os.ReadFile(filepath.Join(s.postgresData(), "PG_VERSION"))
	if err != nil {
		return fmt.Errorf("read the version of the data folder: %w", err)
	}
	if version := strings.TrimSpace(string(raw)); version != strconv.Itoa(s.bins.postgresVersion) {
		return fmt.Errorf("the data in %s was made by PostgreSQL %s and the installed one is %d: reset the stack or use another folder",
			s.postgresData(), version, s.bins.postgresVersion)
	}
	return nil
}

func (s *Stack) postgresArgs() []string {
	st := s.snapshot()
	sockets := s.postgresDir()
	if len(sockets) > longestSocketDir {
		sockets = "" // TCP only
	}
	args := []string{s.bins.postgres, "-D", s.postgresData()}
	set := func(name, value string) { args = append(args, "-c", name+"="+value) }
	set("listen_addresses", "127.0.0.1")
	set("port", strconv.Itoa(st.PostgresPort))
	set("unix_socket_directories", sockets)
	set("max_connections", strconv.Itoa(st.MaxConns))
	set("log_line_prefix", "%m [%p] %q%a ")
	if !st.Durable {
		set("fsync", "off")
		set("synchronous_commit", "off")
		set("full_page_writes", "off")
		set("wal_level", "minimal")
		set("max_wal_senders", "0")
		// Tests read what their transactions have written to the log; every database that is
		// made begins a checkpoint, which would remove it.
		set("wal_keep_size", "256MB")
		set("jit", "off")
		set("checkpoint_timeout", "30min")
		set("max_wal_size", "2GB")
		// Small tables that were never analyzed look large enough for a worker process.
		set("max_parallel_workers_per_gather", "0")
		// In a file of the data folder, and not in the memory file system, which is
		// small in many containers.
		set("dynamic_shared_memory_type", "mmap")
	}
	return args
}

// awaitPostgres waits until the server with our data folder answers, and makes
// the stack's database when it is missing.
func (s *Stack) awaitPostgres(ctx context.Context, pid int) error {
	port := s.snapshot().PostgresPort
	var last error
	err := poll(ctx, 20*time.Millisecond, func() (bool, error) {
		if !alive(pid, s.postgresMark()) {
			if !portFree(port) {
				return false, errPortTaken
			}
			return false, errors.New("PostgreSQL ended while it started")
		}
		last = s.askPostgres(ctx)
		return last == nil, nil
	})
	if err != nil && last != nil && !errors.Is(err, errPortTaken) {
		return fmt.Errorf("%w (last answer: %w)", err, last)
	}
	return err
}

func (s *Stack) askPostgres(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.databaseURL("postgres"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // a question has nothing to lose
	var data string
	if err := conn.QueryRow(ctx, "show data_directory").Scan(&data); err != nil {
		return fmt.Errorf("ask for the data folder: %w", err)
	}
	if data != s.postgresData() {
		return fmt.Errorf("port %d belongs to the server of %s", s.snapshot().PostgresPort, data)
	}
	var exists bool
	err = conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", DatabaseName).Scan(&exists)
	if err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, "create database "+DatabaseName+" template template0")
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "42P04" { // another process created it first
		return nil
	}
	return err
}

func (s *Stack) stopPostgres(ctx context.Context, sig syscall.Signal, patience time.Duration) error {
	pids := append(marked(s.postgresMark()), s.snapshot().Postgres.PID)
	for _, pid := range pids {
		if err := stop(ctx, pid, s.postgresMark(), sig, patience); err != nil {
			return fmt.Errorf("stop PostgreSQL: %w", err)
		}
	}
	// Its sockets outlive its command line by a moment.
	return s.awaitPortsFree(ctx, s.snapshot().PostgresPort)
}

// awaitPortsFree waits a little for the sockets of a process that has ended.
func (s *Stack) awaitPortsFree(ctx context.Context, ports ...int) error {
	bounded, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for _, port := range ports {
		if port == 0 {
			continue
		}
		// Another process uses a port that stays busy; the next start takes another one.
		_ = poll(bounded, 10*time.Millisecond,
			func() (bool, error) { return portFree(port) || bounded.Err() != nil, nil })
	}
	return ctx.Err()
}

// KillPostgres ends PostgreSQL as a crash would: without a checkpoint, open
// transactions lost, every connection cut. The data stays.
func (s *Stack) KillPostgres(ctx context.Context) error {
	return s.locked(ctx, func() error { return s.stopPostgres(ctx, syscall.SIGQUIT, 2*time.Second) })
}

// StartPostgres starts PostgreSQL again after KillPostgres, on the same port,
// and returns when it answers.
func (s *Stack) StartPostgres(ctx context.Context) error {
	return s.locked(ctx, func() error {
		_, err := s.ensurePostgres(ctx)
		return err
	})
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
