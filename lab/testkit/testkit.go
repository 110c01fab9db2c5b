package testkit

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestTimeout bounds one test that uses Context.
const TestTimeout = 5 * time.Minute

// cleanupTimeout bounds the cleanup after a test, whose own context has ended.
const cleanupTimeout = 2 * time.Minute

// Main is the TestMain of a package: it runs the tests and fails if a goroutine remains.
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
func Main(m *testing.M, options ...goleak.Option) {
	Together()
	goleak.VerifyTestMain(Tests{m}, options...)
}

// Tests runs the tests of a package and then closes the connections that this package keeps: on a busy machine pgx
// leaves a reader of an open connection behind, which looks like a leak of the tests.
type Tests struct{ *testing.M }

// Run runs the tests. Programs that they start do not inherit the signals that a shell ignores for jobs in the
// background: a handled signal has its default action in them.
func (t Tests) Run() int {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	code := t.M.Run()
	closeAdmins()
	return code
}

// Together lets at least four tests run at once, unless -parallel is set: tests with servers mostly wait.
func Together() {
	if !flag.Parsed() {
		flag.Parse()
	}
	running, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	if err == nil && running == runtime.GOMAXPROCS(0) && running < together {
		_ = flag.Set("test.parallel", strconv.Itoa(together))
	}
}

const together = 4

// slowdown is the factor of timeouts on a busy machine.
const slowdown = 4

// Context returns a context that ends with the test, shortly before the run's deadline, or after TestTimeout.
func Context(t testing.TB) context.Context {
	t.Helper()
	deadline := time.Now().Add(TestTimeout)
	if timed, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if last, has := timed.Deadline(); has && last.Add(-2*time.Second).Before(deadline) {
			deadline = last.Add(-2 * time.Second)
		}
	}
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// Parallel lets a test run beside others. Database and VHost call it: a test with a part of the servers of its own
// disturbs no other. A test that has called Alone, or sets a variable of the environment, goes on by itself.
func Parallel(t testing.TB) {
	t.Helper()
	if test, ok := t.(*testing.T); ok {
		defer func() { _ = recover() }() // it panics if the test is parallel already, or must not be
		test.Parallel()
	}
}

// Alone makes a test that measures run before the parallel ones.
func Alone(t testing.TB) {
	t.Helper()
	t.Setenv("ATTUNE_TEST_ALONE", "true") // the testing package refuses Parallel after it
}

// stepLimit bounds the part of a timeout that one poll uses up: a longer one is a pause of the machine.
const stepLimit = 5 * time.Second

// Eventually polls the condition at growing intervals until it holds, and fails the test long after the timeout,
// which is for an idle machine. The condition runs in the test's own goroutine, so it may use require to fail
// early.
func Eventually(t testing.TB, condition func() bool, timeout time.Duration, msgAndArgs ...any) {
	t.Helper()
	timeout *= slowdown
	var waited time.Duration
	for began := time.Now(); !condition(); {
		waited += min(time.Since(began), stepLimit)
		if waited > timeout {
			require.Fail(t, "condition not met within "+timeout.String(), msgAndArgs...)
		}
		began = time.Now()
		// Frequent polls would be the largest load of the servers.
		time.Sleep(min(max(waited/8, time.Millisecond), 250*time.Millisecond))
	}
}

// Logger returns a logger for the test's own output. It drops lines after the test's end.
func Logger(t testing.TB) *slog.Logger {
	t.Helper()
	writer := &testWriter{t: t}
	t.Cleanup(writer.close)
	return slog.New(slog.NewTextHandler(writer, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type testWriter struct {
	mu     sync.Mutex
	t      testing.TB
	closed bool // guarded by mu
}

func (w *testWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.t.Log(strings.TrimRight(string(line), "\n"))
	}
	return len(line), nil
}

func (w *testWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// cleanupContext outlives the test.
func cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), cleanupTimeout)
}
