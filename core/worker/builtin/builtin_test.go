package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(ctx context.Context, t *testing.T, action, params string) (string, error) {
	t.Helper()
	value, err := builtin.Actions()[action](ctx, worker.Task{ActionRef: action, Params: json.RawMessage(params)})
	raw, encodeErr := json.Marshal(value)
	require.NoError(t, encodeErr)
	return string(raw), err
}

func TestActions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ action, params, want string }{
		"EchoMessage":    {"core.echo", `{"message": "hi"}`, `{"message":"hi"}`},
		"EchoEverything": {"core.echo", `{"message": "hi", "n": 1}`, `{"message":"hi","n":1}`},
		"Noop":           {"core.noop", `{}`, `null`},
		"Sleep":          {"core.sleep", `{"seconds": 0.001}`, `{"slept":0.001}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := run(t.Context(), t, c.action, c.params)
			require.NoError(t, err)
			require.JSONEq(t, c.want, got)
		})
	}
	for name, c := range map[string]struct{ action, params, want string }{
		"Fail":          {"core.fail", `{"message": "no luck"}`, "no luck"},
		"FailByDefault": {"core.fail", `{}`, "failed on request"},
		"SleepBackward": {"core.sleep", `{"seconds": -1}`, "cannot sleep"},
		"SleepForAWord": {"core.sleep", `{"seconds": "x"}`, "read the parameters of core.sleep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t.Context(), t, c.action, c.params)
			require.ErrorContains(t, err, c.want)
		})
	}
	t.Run("SleepEndsWithItsContext", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		cancel(cause)
		_, err := run(ctx, t, "core.sleep", `{"seconds": 600}`)
		require.ErrorIs(t, err, cause)
	})
}
