package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNewLogger(t *testing.T) {
	t.Parallel()

	t.Run("AutoIsJSONWithoutATerminal", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		logger, err := telemetry.NewLogger(&out, "", "auto")
		require.NoError(t, err)
		logger.Debug("Hidden")
		logger.Info("Shown", "execution", 7, "pause", 1500*time.Millisecond)
		var line map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &line), "exactly one JSON line is written")
		require.Equal(t, "Shown", line["msg"])
		require.EqualValues(t, 7, line["execution"])
		require.Equal(t, "1.5s", line["pause"], "durations are for people")
	})

	t.Run("TextHasNoColourOutsideATerminal", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		logger, err := telemetry.NewLogger(&out, "debug", "text")
		require.NoError(t, err)
		logger.Debug("Shown", "execution", 7)
		require.Contains(t, out.String(), "Shown execution=7")
		require.NotContains(t, out.String(), "\x1b")
	})

	t.Run("RefusesUnknownWords", func(t *testing.T) {
		t.Parallel()
		_, err := telemetry.NewLogger(&bytes.Buffer{}, "loud", "json")
		require.EqualError(t, err, `log level "loud" is unknown: use debug, info, warn or error`)
		_, err = telemetry.NewLogger(&bytes.Buffer{}, "info", "xml")
		require.EqualError(t, err, `log format "xml" is unknown: use auto, json or text`)
	})
}

func TestWithAddsAttributesToEveryLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger, err := telemetry.NewLogger(&out, "info", "json")
	require.NoError(t, err)
	base := telemetry.With(t.Context(), slog.Int64("execution", 7))
	for _, more := range []string{"lane", "batch"} { // with room for a fourth
		base = telemetry.With(base, slog.Int(more, 1))
	}
	one := telemetry.With(base, slog.String("step", "admit"))
	two := telemetry.With(base, slog.String("step", "release"))

	for ctx, step := range map[string]string{"one": "admit", "two": "release"} {
		out.Reset()
		use := one
		if ctx == "two" {
			use = two
		}
		logger.With("replica", "a").InfoContext(use, "Worked")
		var line map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &line))
		require.EqualValues(t, 7, line["execution"])
		require.Equal(t, step, line["step"], "siblings must not share what they add")
		require.Equal(t, "a", line["replica"])
	}
	require.Empty(t, telemetry.Attrs(t.Context()))
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	require.False(t, telemetry.Discard().Enabled(t.Context(), slog.LevelError))
}

func TestNewRegistry(t *testing.T) {
	t.Parallel()
	families, err := telemetry.NewRegistry().Gather()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, family := range families {
		names[family.GetName()] = true
	}
	require.True(t, names["go_goroutines"])
	require.True(t, names["process_start_time_seconds"])
}
