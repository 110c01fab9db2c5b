package batch_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sql is an error as the store gives it.
func sql(code, message string) error {
	return fmt.Errorf("round: statement 2 of 5 (ReadHeads): %w",
		&pgconn.PgError{Severity: "ERROR", Code: code, Message: message})
}

var (
	errColumn = sql("42703", "column e.note does not exist")
	errData   = sql("22P02", "invalid input syntax")
	errAway   = sql("57P01", "terminating connection")
)

// logBuffer is a log in memory.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), text)
}

func newGate() (*batch.Gate, *logBuffer) {
	b := &logBuffer{}
	return batch.NewGate(batch.GateConfig{Logger: slog.New(slog.NewTextHandler(b, nil))}), b
}

// A consumer tries again after growing pauses until it succeeds. The log has one line at the start, one each
// minute, and one at the end.
func TestAConsumerTriesAgainUntilTheInstallationIsMended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, log := newGate()
		begun := time.Now()
		var pauses []time.Duration
		for time.Since(begun) < 3*time.Minute {
			before := time.Now()
			require.True(t, gate.Retry(t.Context(), "rounds", errColumn))
			pauses = append(pauses, time.Since(before))
		}
		require.Equal(t, []time.Duration{1e9, 2e9, 4e9, 8e9, 15e9, 15e9}, pauses[:6])
		require.Equal(t, 1, log.count("Installation is at fault"))
		require.Equal(t, 2, log.count("Installation is still at fault"))
		require.Len(t, gate.Faults(), 1)
		fault := gate.Faults()[0]
		require.Equal(t, "rounds", fault.Source)
		require.Equal(t, "the schema does not fit this program (column e.note does not exist, SQLSTATE 42703)", fault.Problem)
		require.Contains(t, fault.Fix, "add to the schema what is missing")
		require.Equal(t, begun, fault.Since)
		require.True(t, gate.Unsure(0))
		require.Zero(t, gate.Undisturbed())

		require.False(t, gate.Retry(t.Context(), "rounds", nil))
		require.Empty(t, gate.Faults())
		require.Equal(t, 1, log.count("Installation is repaired"))
		require.True(t, gate.Unsure(time.Minute), "for a while afterwards no loop can have reported")
		time.Sleep(time.Minute)
		require.False(t, gate.Unsure(time.Minute))
		require.Equal(t, time.Minute, gate.Undisturbed())
	})
}

// All other consumers start nothing new until the last held one has succeeded.
func TestTheOtherConsumersWaitAtTheGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, log := newGate()
		require.True(t, gate.Enter(t.Context()))
		require.True(t, gate.Retry(t.Context(), "rounds", errColumn))
		require.True(t, gate.Retry(t.Context(), "events", errColumn))
		var entered atomic.Bool
		go func() { entered.Store(gate.Enter(t.Context())) }()
		synctest.Wait()
		require.False(t, entered.Load())
		require.True(t, gate.Holding())

		require.False(t, gate.Retry(t.Context(), "rounds", nil))
		synctest.Wait()
		require.False(t, entered.Load(), "events are still held")
		require.False(t, gate.Retry(t.Context(), "events", errData),
			"its own data is at fault now: the statement was accepted")
		synctest.Wait()
		require.True(t, entered.Load())
		require.False(t, gate.Holding())
		require.Equal(t, 1, log.count("Installation is at fault"), "one line, however many meet it")
		require.Equal(t, 1, log.count("Installation is repaired"))
	})
}

// An unreachable server does not mean that the installation is repaired.
func TestAServerThatIsAwayOpensNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, _ := newGate()
		require.True(t, gate.Retry(t.Context(), "rounds", errColumn))
		for _, err := range []error{errAway, context.DeadlineExceeded} {
			require.False(t, gate.Retry(t.Context(), "rounds", err))
			require.True(t, gate.Holding())
		}
	})
}

// The end of the engine ends the wait.
func TestAStopEndsTheWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, _ := newGate()
		require.True(t, gate.Retry(t.Context(), "rounds", errColumn))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, gate.Retry(ctx, "rounds", errColumn))
		require.False(t, gate.Enter(ctx))
	})
}

// A loop reports like a consumer, and holds no consumer.
func TestALoopHoldsNoEnforcement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, log := newGate()
		require.Zero(t, gate.Tick("loop recovery", errData), "it is the loop's own affair")
		require.Equal(t, time.Second, gate.Tick("loop recovery", errColumn))
		require.Equal(t, 2*time.Second, gate.Tick("loop recovery", errColumn))
		require.Len(t, gate.Faults(), 1)
		require.False(t, gate.Holding())
		require.True(t, gate.Enter(t.Context()))
		require.Zero(t, gate.Tick("loop retries", context.DeadlineExceeded))
		require.True(t, gate.Retry(t.Context(), "rounds", errColumn))
		require.Positive(t, gate.Tick("loop retries", context.DeadlineExceeded),
			"it has waited for the rounds, which are held")
		require.False(t, gate.Retry(t.Context(), "rounds", nil))
		require.Zero(t, gate.Tick("loop recovery", nil))
		require.Empty(t, gate.Faults())
		require.Equal(t, 1, log.count("Installation is at fault"))
		require.Equal(t, 1, log.count("Installation is repaired"))
	})
}

// Consumers with a long hold are asked once to requeue their messages.
func TestALongFaultHasDeliveriesGivenBackOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		gate := batch.NewGate(batch.GateConfig{Prolonged: func() { asked++ }})
		for range 4 {
			require.True(t, gate.Retry(t.Context(), "rounds", errColumn))
		}
		require.Zero(t, asked)
		for range 20 {
			require.True(t, gate.Retry(t.Context(), "rounds", errColumn))
		}
		require.Equal(t, 1, asked)
	})
}

// The advice to the operator fits the error.
func TestAFaultSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"42501 permission denied for table execution":                 "attune-executor doctor --as engine",
		"42501 keine Berechtigung für Tabelle execution":              "attune-executor doctor --as engine",
		"28P01 password authentication failed for user \"attune\"":    "correct the user and the password in database.url",
		"3D000 database \"attune\" does not exist":                    "create it, or correct database.url",
		"42P10 there is no unique or exclusion constraint":            "add to the schema what is missing",
		"3F000 schema \"attune\" does not exist":                      "add to the schema what is missing",
		"0A000 cached plan must not change result type":               "add to the schema what is missing",
		"42804 column \"status\" is of type text but expression is x": "add to the schema what is missing",
	} {
		gate, _ := newGate()
		code, text, _ := strings.Cut(message, " ")
		require.Positive(t, gate.Tick("loop x", sql(code, text)), message)
		fault := gate.Faults()[0]
		if code != "3D000" {
			require.Contains(t, fault.Problem, "("+text+", SQLSTATE "+code+")")
		}
		require.Contains(t, fault.Fix, want, message)
	}
}
