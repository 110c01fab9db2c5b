package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// longestSocketDir leaves room for the socket's name in the system's limit of 107 bytes.
const longestSocketDir = 92

// errPortTaken reports that another process took the port; the caller retries with another one.
var errPortTaken = errors.New("the port was taken by another process")

func (s *Stack) postgresDir() string  { return filepath.Join(s.place.dir, "postgres") }
func (s *Stack) postgresData() string { return filepath.Join(s.postgresDir(), "data") }
func (s *Stack) postgresLog() string  { return filepath.Join(s.postgresDir(), "postgres.log") }
func (s *Stack) postgresMark() string { return " -D " + s.postgresData() + " " }

// ensurePostgres starts PostgreSQL unless it runs, and waits until it answers.
func (s *Stack) ensurePostgres(ctx context.Context) (started bool, err error) {
	return s.ensure(ctx, server{
		name: "PostgreSQL", pid: s.snapshot().Postgres.PID, mark: s.postgresMark(),
		start: s.startPostgres, await: s.awaitPostgres, forgetPort: func(st *state) { st.PostgresPort = 0 },
		logs: []string{s.postgresLog()},
	})
}

func (s *Stack) startPostgres(ctx context.Context) error {
	if err := makeDir(s.postgresDir()); err != nil {
		return err
	}
	if err := s.giveToPostgres(s.postgresDir()); err != nil {
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
	started, err := s.launch.start(child{
		name: "PostgreSQL", path: s.bins.postgres, args: s.postgresArgs(), env: s.cleanEnv(),
		dir: "/", log: s.postgresLog(), as: s.as, onDeath: syscall.SIGINT,
	})
	if err != nil {
		return err
	}
	if err := s.update(func(st *state) { st.Postgres.PID = started.Pid }); err != nil {
		return err
	}
	return s.awaitPostgres(ctx, started.Pid)
}

// giveToPostgres changes the owner of a file to the user of PostgreSQL.
func (s *Stack) giveToPostgres(file string) error {
	if s.as != nil {
		if err := os.Lchown(file, int(s.as.uid), int(s.as.gid)); err != nil {
			return fmt.Errorf("give %s to user %s: %w", file, s.as.name, err)
		}
	}
	return nil
}

// clearPostgres ends orphans of an earlier start. When no process uses the data folder, it removes the lock
// files of a kill -9.
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
	stale, _ := filepath.Glob(filepath.Join(s.postgresDir(), ".s.PGSQL.*")) // fails only for a malformed pattern
	stale = append(stale, filepath.Join(s.postgresData(), "postmaster.pid"))
	for _, file := range stale {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a stale lock: %w", err)
		}
	}
	return nil
}

// initDatabase creates the data folder under another name and renames it, so that an interrupted run never
// looks complete.
func (s *Stack) initDatabase(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.postgresData(), "PG_VERSION")); err == nil {
		return s.checkDataVersion()
	}
	fresh := s.postgresData() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove an incomplete data folder: %w", err)
	}
	locale := "C.UTF-8"
	if runtime.GOOS == "darwin" {
		locale = "C"
	}
	login := []string{"-A", "trust"} // tests, which use no durability, connect thousands of times
	if s.snapshot().Durable {
		file := filepath.Join(s.postgresDir(), "password") // initdb may run as another user
		if err := os.WriteFile(file, []byte(s.password), 0o600); err != nil {
			return fmt.Errorf("write the password for initdb: %w", err)
		}
		defer func() { _ = os.Remove(file) }() // only the server's user can read the folder
		if err := s.giveToPostgres(file); err != nil {
			return err
		}
		login = []string{"-A", "scram-sha-256", "--pwfile=" + file}
	}
	args := append([]string{
		"-D", fresh, "-U", Username, "-E", "UTF8", "--locale=" + locale, "--no-sync",
		"--no-instructions",
	}, login...)
	cmd := exec.CommandContext(ctx, s.bins.initdb, args...)
	cmd.Env, cmd.Dir = s.cleanEnv(), "/"
	cmd.SysProcAttr = processAttributes(child{as: s.as, onDeath: syscall.SIGKILL}, s.cfg.Detached)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w: %s", fresh, err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(fresh, s.postgresData()); err != nil {
		return fmt.Errorf("rename the new data folder: %w", err)
	}
	return nil
}

func (s *Stack) checkDataVersion() error {
	raw, err := os.ReadFile(filepath.Join(s.postgresData(), "PG_VERSION"))
	if err != nil {
		return fmt.Errorf("read the version of the data folder: %w", err)
	}
	if version := strings.TrimSpace(string(raw)); version != strconv.Itoa(s.bins.postgresVersion) {
		return fmt.Errorf(
			"the data in %s is of PostgreSQL %s, and version %d is installed: reset the stack or use another folder",
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
		// Tests read the WAL of their transactions. Every new database starts a checkpoint, which would
		// remove it.
		set("wal_keep_size", "256MB")
		set("jit", "off")
		set("checkpoint_timeout", "30min")
		set("max_wal_size", "2GB")
		// Never analyzed small tables look large enough for a parallel worker.
		set("max_parallel_workers_per_gather", "0")
		// In the data folder, because the memory file system is small in many containers.
		set("dynamic_shared_memory_type", "mmap")
	}
	return args
}

// awaitPostgres waits until the server with our data folder answers, and creates the stack's database.
func (s *Stack) awaitPostgres(ctx context.Context, pid int) error {
	return await(ctx, "PostgreSQL", pid, s.postgresMark(), func() error { return s.probePostgres(ctx) },
		s.snapshot().PostgresPort)
}

func (s *Stack) probePostgres(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.databaseURL("postgres"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // the probe has its answer
	var data string
	if err := conn.QueryRow(ctx, "show data_directory").Scan(&data); err != nil {
		return fmt.Errorf("read the data folder: %w", err)
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

func (s *Stack) stopPostgres(ctx context.Context, sig syscall.Signal, timeout time.Duration) error {
	pids := append(marked(s.postgresMark()), s.snapshot().Postgres.PID)
	for _, pid := range pids {
		if err := stop(ctx, pid, s.postgresMark(), sig, timeout); err != nil {
			return fmt.Errorf("stop PostgreSQL: %w", err)
		}
	}
	// The sockets close shortly after the end of the process.
	return s.awaitPortsFree(ctx, s.snapshot().PostgresPort)
}

// awaitPortsFree waits up to three seconds for the sockets of an ended process.
func (s *Stack) awaitPortsFree(ctx context.Context, ports ...int) error {
	bounded, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for _, port := range ports {
		if port == 0 {
			continue
		}
		// If another process uses the port, the next start chooses another one.
		_ = poll(bounded, 10*time.Millisecond,
			func() (bool, error) { return portFree(port) || bounded.Err() != nil, nil })
	}
	return ctx.Err()
}

// KillPostgres ends PostgreSQL as a crash does: without a checkpoint, with open transactions lost and every
// connection cut. The data stays.
func (s *Stack) KillPostgres(ctx context.Context) error {
	return s.locked(ctx, func() error { return s.stopPostgres(ctx, syscall.SIGQUIT, 2*time.Second) })
}

// StartPostgres restarts PostgreSQL after KillPostgres on the same port, and returns when it answers.
func (s *Stack) StartPostgres(ctx context.Context) error {
	return s.locked(ctx, func() error {
		_, err := s.ensurePostgres(ctx)
		return err
	})
}
