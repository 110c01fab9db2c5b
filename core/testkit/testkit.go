package testkit

import (
	"context"
	"flag"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestTimeout bounds one test that uses Context.
const TestTimeout = 5 * time.Minute

// cleanupTimeout bounds what happens after a test, when its own context has
// ended already.
const cleanupTimeout = 2 * time.Minute

// Main is the TestMain of a package: it runs the tests and fails when one of
// them left a goroutine behind.
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
func Main(m *testing.M, options ...goleak.Option) {
	Together()
	goleak.VerifyTestMain(m, options...)
}

// Together lets at least four tests run at once, unless a number is set: tests with servers wait
// most of the time, however few processors there are.
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

// patience is how much longer than on a quiet machine things may take.
const patience = 4

// Context returns a context that ends with the test, shortly before the whole
// run's deadline, or after TestTimeout, whichever is first.
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

// Eventually waits until the condition holds, asking the less often the longer it
// has waited, and fails the test when it still does not long after the timeout: that is what
// a quiet machine needs at most, and a busy one is given several times as much.
// The condition runs in the test's own goroutine, so it may use require to give
// up early.
func Eventually(t testing.TB, condition func() bool, timeout time.Duration, msgAndArgs ...any) {
	t.Helper()
	timeout *= patience
	began := time.Now()
	for {
		if condition() {
			return
		}
		waited := time.Since(began)
		if waited > timeout {
			require.Fail(t, "condition not met within "+timeout.String(), msgAndArgs...)
		}
		// Questions cost the servers more than anything else that tests do while they wait.
		time.Sleep(min(max(waited/8, time.Millisecond), 250*time.Millisecond))
	}
}

// Logger returns a logger that writes to the test's own output, so that lines
// show up only with the test that caused them. What is logged after the test's
// end is dropped.
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

// cleanupContext outlives the test it cleans up after.
func cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), cleanupTimeout)
}
