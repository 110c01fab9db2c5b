package telemetry_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/telemetry"
)

// faulty is a writer that can refuse or hold up lines.
type faulty struct {
	mu     sync.Mutex
	err    error
	part   int // bytes that it writes before it fails
	gate   chan struct{}
	out    bytes.Buffer
	writes int
}

func (f *faulty) Write(p []byte) (int, error) {
	f.mu.Lock()
	gate := f.gate
	f.mu.Unlock()
	if gate != nil {
		<-gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	if f.err != nil {
		n := min(f.part, len(p))
		f.out.Write(p[:n])
		return n, f.err
	}
	return f.out.Write(p)
}

func (f *faulty) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *faulty) seen() (string, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.String(), f.writes
}

func dropped(t *testing.T) float64 {
	t.Helper()
	families, err := telemetry.NewRegistry().Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "attune_log_lines_dropped_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	require.Fail(t, "no metric counts dropped lines")
	return 0
}

const patience = 30 * time.Second

// A log that refuses lines loses them, counts each once, and says so once when it works again.
func TestALogThatRefusesLinesDropsAndCountsThem(t *testing.T) { // not parallel: it counts the lines of the process
	to := &faulty{err: errors.New("no space left on device"), part: len("whole\n")}
	log := telemetry.NewLog(to)
	defer log.Close()
	logger, err := telemetry.NewLogger(log, "info", "json")
	require.NoError(t, err)
	before := dropped(t)
	_, _ = log.Write([]byte("whole\nOne\nTwo\n"))
	require.Eventually(t, func() bool { _, writes := to.seen(); return writes == 1 }, patience, time.Millisecond)
	to.set(nil)
	logger.Info("Three")
	contains := func(words string) func() bool {
		return func() bool { text, _ := to.seen(); return strings.Contains(text, words) }
	}
	require.Eventually(t, contains(`"lines":2`), patience, time.Millisecond)
	require.InDelta(t, before+2, dropped(t), 0)
	logger.Info("Four")
	require.Eventually(t, contains("Four"), patience, time.Millisecond)
	text, _ := to.seen()
	require.Contains(t, text, "whole\n")
	require.Contains(t, text, "Three")
	require.NotContains(t, text, "One")
	require.Equal(t, 1, strings.Count(text, `"lines":`))
}

// A log whose reader does not read holds nothing up, and takes no more memory than LogBuffer.
func TestALogThatNoOneReadsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	log := telemetry.NewLog(writer)
	before := dropped(t)
	line := []byte(strings.Repeat("x", 1023) + "\n")
	for range 3 * telemetry.LogBuffer / len(line) {
		n, err := log.Write(line)
		require.NoError(t, err)
		require.Equal(t, len(line), n)
	}
	require.Greater(t, dropped(t)-before, 500.0)
	read := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(reader) // to the end of the pipe
		read <- all
	}()
	log.Close()
	require.NoError(t, writer.Close())
	all := <-read
	require.Zero(t, len(all)%len(line), "lines are whole")
	require.GreaterOrEqual(t, len(all), telemetry.LogBuffer-len(line), "what waited is written at the end")
}

// A closing log gives up on a writer that hangs.
func TestClosingALogIsBounded(t *testing.T) {
	t.Parallel()
	to := &faulty{gate: make(chan struct{})}
	log := telemetry.NewLog(to)
	_, _ = log.Write([]byte("never read\n"))
	begin := time.Now()
	log.Close()
	require.Less(t, time.Since(begin), patience)
	close(to.gate)
	require.Eventually(t, func() bool { _, writes := to.seen(); return writes == 1 }, patience, time.Millisecond)
}

// Neither format passes on characters that control a terminal or turn the direction of text.
func TestLogsEscapeWhatControlsATerminal(t *testing.T) {
	t.Parallel()
	const hostile = "a\u009b31mb\u202ec\u2066d\x1b[2Je\u200bf\u2028g\u007fh\U000e0041i"
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		logger, err := telemetry.NewLogger(&out, "info", format)
		require.NoError(t, err)
		logger.Info("Failed "+hostile, "error", errors.New(hostile), "ref", hostile, hostile, 1)
		for _, steering := range []string{
			"\u009b", "\u202e", "\u2066", "\x1b", "\u200b", "\u2028", "\u007f", "\U000e0041",
		} {
			require.NotContains(t, out.String(), steering, "%s %q", format, steering)
		}
		require.Equal(t, 1, strings.Count(out.String(), "\n"))
	}
}
