package devstack_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/lab/testkit"
)

const timeout = 5 * time.Minute

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		os.Exit(helper(role))
	}
	goleak.VerifyTestMain(m)
}

// tempDir is a folder that the PostgreSQL user can enter, unlike t.TempDir.
func tempDir(t *testing.T, name string) string {
	t.Helper()
	base, err := os.MkdirTemp("", "attune-devstack-*")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(base, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	return filepath.Join(base, name)
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// up starts a stack and removes it at the end of the test.
func up(t *testing.T, cfg devstack.Config) *devstack.Stack {
	t.Helper()
	stack, err := devstack.Up(within(t), cfg)
	require.NoError(t, err)
	wipeAtEnd(t, stack)
	return stack
}

func wipeAtEnd(t *testing.T, stack *devstack.Stack) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		require.NoError(t, stack.Reset(ctx))
		if stack.Moved() != "" {
			require.NoDirExists(t, stack.Dir(), "a folder is left that was not requested")
		}
	})
}

// serves fails unless both servers answer their clients.
func serves(t *testing.T, databaseURL, amqpURL string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	require.NoError(t, err)
	require.NoError(t, conn.Ping(t.Context()))
	require.NoError(t, conn.Close(t.Context()))
	broker, err := amqp.Dial(amqpURL)
	require.NoError(t, err)
	channel, err := broker.Channel()
	require.NoError(t, err)
	_, err = channel.QueueDeclare("", false, true, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, broker.Close())
}

// silent waits until nothing listens on the ports of the stack and its processes have ended.
func silent(t *testing.T, status devstack.Status) {
	t.Helper()
	testkit.Eventually(t, func() bool { // a socket that was accepted before may still be reset
		_, database := pgx.Connect(t.Context(), status.DatabaseURL)
		_, wire := amqp.Dial(status.AMQPURL)
		return errors.Is(database, syscall.ECONNREFUSED) && errors.Is(wire, syscall.ECONNREFUSED)
	}, time.Minute, "the ports of the stack are still open")
	noProcesses(t, status.Dir)
}

// noProcesses waits until no process names a folder: children of a server end shortly after it.
func noProcesses(t *testing.T, dir string) {
	t.Helper()
	var left []string
	testkit.Eventually(t, func() bool {
		left = processesNaming(t, dir)
		return len(left) == 0
	}, time.Minute, "processes are left: %v", &left)
}

// processesNaming lists the command lines that hold the text.
func processesNaming(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		raw, _ := os.ReadFile(file) // a process may end meanwhile
		if line := strings.ReplaceAll(string(raw), "\x00", " "); strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// firstSeen returns the environment of a stack as soon as its state file exists.
func firstSeen(ctx context.Context, cfg devstack.Config) string {
	for ctx.Err() == nil {
		if _, err := os.Stat(filepath.Join(cfg.Dir, "stack.json")); err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		if stack, err := devstack.Attach(ctx, cfg); err == nil {
			return stack.Env()
		}
	}
	return ""
}

// TestLifeOfAStack walks one stack through its life, because each start of RabbitMQ
// uses ten seconds of a processor: up, attach, a crash of PostgreSQL, kill -9 of both
// servers and up again with a committed row and a persistent message, down in order.
func TestLifeOfAStack(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	dir := tempDir(t, "stack")
	cfg := devstack.Config{Dir: dir, Durable: true, StatsInterval: 250 * time.Millisecond}

	_, err := devstack.Attach(ctx, cfg)
	require.ErrorIs(t, err, devstack.ErrNoStack)
	require.NoDirExists(t, dir, "looking for a stack made a folder")

	starting := make(chan string, 1)
	go func() { starting <- firstSeen(ctx, cfg) }()
	stack := up(t, cfg)
	require.Equal(t, stack.Env(), <-starting, "a reader during the start gets the final addresses")
	require.Equal(t, dir, stack.Dir())
	require.Empty(t, stack.Moved())
	serves(t, stack.DatabaseURL(), stack.AMQPURL())
	before := stack.Status()
	require.True(t, before.Running())

	// A second start on the folder is the same stack, with the same processes.
	second, err := devstack.Up(ctx, cfg)
	require.NoError(t, err)
	require.Equal(t, before, second.Status())
	require.Contains(t, second.Env(), "export ATTUNE__DATABASE__URL='"+stack.DatabaseURL()+"'")

	management, err := http.Get(stack.ManagementURL() + "/api/overview")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, management.StatusCode)
	require.NoError(t, management.Body.Close())
	http.DefaultClient.CloseIdleConnections()

	out, err := stack.Rabbitmqctl(ctx, "list_vhosts", "--silent")
	require.NoError(t, err)
	require.Contains(t, out, "/")

	conn, err := pgx.Connect(ctx, stack.DatabaseURL())
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "create table kept (n int)")
	require.NoError(t, err)
	require.NoError(t, stack.KillPostgres(ctx))
	testkit.Eventually(t, func() bool { return conn.Ping(ctx) != nil }, time.Minute, "a connection outlived the crash")
	require.False(t, stack.Status().Postgres.Running)
	require.True(t, stack.Status().Broker.Running)
	require.NoError(t, stack.StartPostgres(ctx))
	require.Equal(t, before.DatabaseURL, stack.DatabaseURL(), "a client could not find the server again")

	publishKept(t, stack)
	status := stack.Status()
	require.NoError(t, syscall.Kill(status.Postgres.PID, syscall.SIGKILL))
	require.NoError(t, syscall.Kill(status.Broker.PID, syscall.SIGKILL))
	again := up(t, cfg)
	require.Equal(t, before.DatabaseURL, again.DatabaseURL())
	require.Equal(t, before.AMQPURL, again.AMQPURL(), "a client could not find the broker again")
	serves(t, again.DatabaseURL(), again.AMQPURL())
	requireKept(t, again)
	requireOwnPassword(t, again)

	require.NoError(t, again.Down(ctx, false))
	silent(t, before)
	require.NoError(t, again.Down(ctx, false), "down on a stopped stack")
	require.NoError(t, again.StartPostgres(ctx))
	conn, err = pgx.Connect(ctx, again.DatabaseURL())
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "insert into kept values (1)")
	require.NoError(t, err, "the stored data is gone")
	require.NoError(t, conn.Close(ctx))

	require.NoFileExists(t, filepath.Join(dir, config.PrivateStackFile), "a stopped stack is used by no program")
	_, err = devstack.Up(ctx, cfg)
	require.NoError(t, err)
	named, err := os.ReadFile(filepath.Join(dir, config.PrivateStackFile))
	require.NoError(t, err)
	require.Contains(t, string(named), "ATTUNE__DATABASE__URL="+again.DatabaseURL()+"\n")
	require.NoError(t, again.Reset(ctx))
	silent(t, before)
	require.NoDirExists(t, dir, "a reset leaves nothing")
	_, err = devstack.Attach(ctx, cfg)
	require.ErrorIs(t, err, devstack.ErrNoStack)
}

// publishKept stores a persistent message in a durable queue.
func publishKept(t *testing.T, stack *devstack.Stack) {
	t.Helper()
	broker, err := amqp.Dial(stack.AMQPURL())
	require.NoError(t, err)
	defer func() { _ = broker.Close() }() // the message is confirmed
	channel, err := broker.Channel()
	require.NoError(t, err)
	require.NoError(t, channel.Confirm(false))
	_, err = channel.QueueDeclare("kept", true, false, false, false, nil)
	require.NoError(t, err)
	confirm, err := channel.PublishWithDeferredConfirmWithContext(t.Context(), "", "kept", true, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("still here")})
	require.NoError(t, err)
	require.True(t, confirm.Wait())

	// The broker writes a new queue's declaration to its disk some time after
	// it answered; the confirmed message is not the only thing that must last.
	_, err = stack.Rabbitmqctl(t.Context(), "eval", "mnesia:sync_log().")
	require.NoError(t, err)
}

// requireKept requires the message of publishKept.
func requireKept(t *testing.T, stack *devstack.Stack) {
	t.Helper()
	broker, err := amqp.Dial(stack.AMQPURL())
	require.NoError(t, err)
	channel, err := broker.Channel()
	require.NoError(t, err)
	message, ok, err := channel.Get("kept", true)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "still here", string(message.Body))
	require.NoError(t, broker.Close())
}

// requireOwnPassword asks that a stack's servers refuse every password but its own.
func requireOwnPassword(t *testing.T, stack *devstack.Stack) {
	t.Helper()
	for address, password := range map[string]string{stack.DatabaseURL(): "", stack.AMQPURL(): "guest"} {
		at, err := url.Parse(address)
		require.NoError(t, err)
		own, _ := at.User.Password()
		require.Greater(t, len(own), 20)
		at.User = url.UserPassword(at.User.Username(), password)
		if at.Scheme == "amqp" {
			_, err = amqp.Dial(at.String())
			require.ErrorIs(t, err, amqp.ErrCredentials)
			continue
		}
		_, err = pgx.Connect(within(t), at.String())
		require.ErrorContains(t, err, "28P01")
	}
	info, err := os.Stat(filepath.Join(stack.Dir(), "password"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	broker := filepath.Join(stack.Dir(), "rabbitmq")
	require.NoError(t, filepath.WalkDir(broker, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the broker replaces its files
		}
		if info, err := entry.Info(); err == nil && (entry.Type().IsRegular() || path == broker) {
			require.Zero(t, info.Mode().Perm()&0o077, "only the owner reads what the broker writes: %s", path)
		}
		return err
	}))
}

// TestHostileSurroundings starts a stack in a process with everything wrong at
// once: blanks in the folder's path, no HOME, variables of another broker, and
// a umask that removes rights from new files.
func TestHostileSurroundings(t *testing.T) {
	t.Parallel()
	dir := tempDir(t, "a folder with blanks")
	process := startHelper(t, helperOptions{
		dir: dir, umask: "077", unset: []string{"HOME"},
		env: []string{
			"RABBITMQ_NODENAME=other@host", "RABBITMQ_CONFIG_FILE=/nowhere", "ERL_FLAGS=-bogus", "PGPORT=1",
			"NOTIFY_SOCKET=/x",
		},
	})
	status := process.awaitReady(t)
	require.NotEqual(t, dir, status.Dir)
	require.NotContains(t, status.Dir, " ")
	require.Contains(t, status.Moved, "characters")
	serves(t, status.DatabaseURL, status.AMQPURL)

	// A caller with the same folder finds the stack in its other place.
	found, err := devstack.Attach(within(t), devstack.Config{Dir: dir})
	require.NoError(t, err)
	require.Equal(t, status.Dir, found.Dir())
	wipeAtEnd(t, found)

	// The parent is killed: its servers go with it.
	process.kill(t)
	silent(t, status)
}

// TestAsAnotherUser runs a stack as the user nobody when the caller is root and may choose.
// The long courses start it; the short one checks that root does not enter the folder.
func TestAsAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process as another user; every other test of this run was not root")
	}
	dir := tempDir(t, "stack")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Chown(dir, 65534, 65534))
	lock := filepath.Join(dir, "stack.lock")
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	require.NoError(t, os.Chown(lock, 65534, 65534))
	requireRefused := func() {
		_, err := devstack.Up(within(t), devstack.Config{Dir: dir})
		require.ErrorContains(t, err, "belongs to user id 65534", "root would leave files that lock nobody out")
	}
	requireRefused()
	if !testkit.Slow() {
		return
	}
	process := startHelper(t, helperOptions{dir: dir, uid: 65534})
	theirs := process.awaitReady(t)
	require.Equal(t, dir, theirs.Dir)
	requireRefused()
	serves(t, theirs.DatabaseURL, theirs.AMQPURL)
	process.finish(t)
	silent(t, theirs)
}

// TestStartedByTwoAtOnce starts one folder from two processes at the same
// moment: they end up with one stack.
func TestStartedByTwoAtOnce(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "start one folder twice at once")
	dir := tempDir(t, "stack")
	one, two := startHelper(t, helperOptions{dir: dir}), startHelper(t, helperOptions{dir: dir})
	var statuses [2]devstack.Status
	var both sync.WaitGroup
	both.Go(func() { statuses[0] = one.awaitReady(t) })
	both.Go(func() { statuses[1] = two.awaitReady(t) })
	both.Wait()
	require.Equal(t, statuses[0], statuses[1])
	one.finish(t)
	two.finish(t)
	silent(t, statuses[0])
}

func TestBusyPortsAreLeftAlone(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "start beside busy ports")
	ctx := within(t)
	cfg := devstack.Config{Dir: tempDir(t, "stack")}
	stack := up(t, cfg)
	before := stack.Status()
	require.NoError(t, stack.Down(ctx, true))

	strangers := occupy(t, before.DatabaseURL, before.AMQPURL)
	defer strangers()
	again := up(t, cfg)
	serves(t, again.DatabaseURL(), again.AMQPURL())
	require.NotEqual(t, before.DatabaseURL, again.DatabaseURL())
	require.NotEqual(t, before.AMQPURL, again.AMQPURL())
}

// TestInterruptedInitdb starts on the files of an interrupted first start.
func TestInterruptedInitdb(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "start after an interrupted start")
	dir := tempDir(t, "stack")
	half := filepath.Join(dir, "postgres", "data.new", "base")
	require.NoError(t, os.MkdirAll(half, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(half, "rest"), nil, 0o600))
	stack := up(t, devstack.Config{Dir: dir})
	serves(t, stack.DatabaseURL(), stack.AMQPURL())
	require.NoDirExists(t, filepath.Join(dir, "postgres", "data.new"))
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(parsed.Port())
	require.NoError(t, err)
	return port
}

// TestAFailedStartNamesItsCause breaks the data folder of PostgreSQL: the error is
// one line with the error of the server and the path of its log, and no process is left.
func TestAFailedStartNamesItsCause(t *testing.T) {
	t.Parallel()
	dir := tempDir(t, "stack")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "postgres", "data"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "postgres", "data", "PG_VERSION"), []byte("9\n"), 0o644))

	_, err := devstack.Up(within(t), devstack.Config{Dir: dir})
	require.ErrorContains(t, err, "is of PostgreSQL 9")
	require.ErrorContains(t, err, filepath.Join(dir, "postgres", "postgres.log"))
	require.NotContains(t, err.Error(), "\n")
	noProcesses(t, dir)
}
