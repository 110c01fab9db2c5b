package telemetry_test

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/telemetry"
)

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) lines(t *testing.T) (list []map[string]any) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	decoder := json.NewDecoder(bytes.NewReader(s.b.Bytes()))
	for decoder.More() {
		var line map[string]any
		require.NoError(t, decoder.Decode(&line))
		list = append(list, line)
	}
	return list
}

// Thousands of lines that bad messages cause become two: the first, and one that counts the others. Other lines
// are written as they come.
func TestOftenWritesOneLineASecond(t *testing.T) {
	t.Parallel()
	var out syncBuffer
	logger, err := telemetry.NewLogger(&out, "info", "json")
	require.NoError(t, err)
	ctx := telemetry.Often(t.Context())
	begin := time.Now()
	const n = 5000
	for i := range n {
		logger.With("a", 1).WarnContext(ctx, "Bad message", "i", i)
	}
	for range 3 {
		logger.WarnContext(t.Context(), "Other line")
	}
	logger.WarnContext(ctx, "Another kind")
	var last any
	written := func() (lines, of int) {
		for _, line := range out.lines(t) {
			if line["msg"] != "Bad message" {
				continue
			}
			lines++
			of++
			last = line["i"]
			if more, ok := line["lines"].(float64); ok {
				of += int(more) - 1
				require.InDelta(t, 1, line["a"], 0)
			}
		}
		return lines, of
	}
	require.Eventually(t, func() bool { _, of := written(); return of == n }, 30*time.Second, 10*time.Millisecond,
		"every line is counted")
	lines, _ := written()
	require.InDelta(t, n-1, last, 0, "the latest line is written, not the oldest")
	require.LessOrEqual(t, lines, 2+int(time.Since(begin)/time.Second))
	require.Len(t, out.lines(t), lines+4)
}
