package builtin_test

import (
	"bytes"
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

// ran is the outcome of an action.
type ran struct {
	stdout, stderr string
	err            error
}

func run(ctx context.Context, t *testing.T, action, params string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	value, err := builtin.Actions()[action](ctx, worker.Task{
		ActionRef: action, Params: json.RawMessage(params), Stdout: &stdout, Stderr: &stderr,
	})
	require.Nil(t, value, "they write their output, like the files of the core pack")
	return ran{stdout.String(), stderr.String(), err}
}

func TestActions(t *testing.T) {
	t.Parallel()
	const done = "No operation completed successfully\n"
	for name, c := range map[string]struct{ action, params, want string }{
		"Echo":             {"core.echo", `{"message": "hi", "n": 1}`, "hi"},
		"EchoNothing":      {"core.echo", `{}`, ""},
		"EchoNull":         {"core.echo", `{"message": null}`, ""},
		"EchoANumber":      {"core.echo", `{"message": 1.50}`, "1.50"},
		"Noop":             {"core.noop", `{}`, done},
		"NoopWithMessage":  {"core.noop", `{"message": "m", "exit_code": 0}`, "[NOOP] m\n" + done},
		"Sleep":            {"core.sleep", `{"seconds": 0.001}`, "Slept for 0.001 seconds\n"},
		"SleepOfAText":     {"core.sleep", `{"seconds": "0"}`, "Slept for 0 seconds\n"},
		"SleepWithMessage": {"core.sleep", `{"seconds": 0, "message": "m"}`, "m\nSlept for 0 seconds\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t.Context(), t, c.action, c.params)
			require.NoError(t, got.err)
			require.Equal(t, c.want, got.stdout)
			require.Empty(t, got.stderr)
		})
	}
	for name, c := range map[string]struct {
		action, params string
		code           int
		want, stderr   string
	}{
		"NoopThatFails": {"core.noop", `{"exit_code": 3}`, 3, "Command exited with code 3", ""},
		"NoopOfAText":   {"core.noop", `{"exit_code": "255"}`, 255, "Command exited with code 255", ""},
		"NoopTooHigh": {
			"core.noop", `{"exit_code": 256}`, 1, "ERROR: exit_code must be between 0 and 255",
			"ERROR: exit_code must be between 0 and 255\n",
		},
		"NoopNegative": {
			"core.noop", `{"exit_code": -1}`, 1, "ERROR: exit_code must be between 0 and 255",
			"ERROR: exit_code must be between 0 and 255\n",
		},
		"NoopOfAWord": {
			"core.noop", `{"exit_code": "x"}`, 1, "ERROR: exit_code must be between 0 and 255",
			"ERROR: exit_code must be between 0 and 255\n",
		},
		"SleepBackward": {
			"core.sleep", `{"seconds": -1}`, 1, "ERROR: seconds must be between 0 and 3600",
			"ERROR: seconds must be between 0 and 3600\n",
		},
		"SleepTooLong": {
			"core.sleep", `{"seconds": 3601}`, 1, "ERROR: seconds must be between 0 and 3600",
			"ERROR: seconds must be between 0 and 3600\n",
		},
		"SleepForNaN": {
			"core.sleep", `{"seconds": "NaN"}`, 1, "ERROR: seconds must be between 0 and 3600",
			"ERROR: seconds must be between 0 and 3600\n",
		},
		"SleepForAWord": {
			"core.sleep", `{"seconds": "x"}`, 1, "ERROR: seconds must be between 0 and 3600",
			"ERROR: seconds must be between 0 and 3600\n",
		},
		"SleepForObject": {
			"core.sleep", `{"seconds": {}}`, 1, "ERROR: seconds must be between 0 and 3600",
			"ERROR: seconds must be between 0 and 3600\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t.Context(), t, c.action, c.params)
			var exit *worker.ExitError
			require.ErrorAs(t, got.err, &exit)
			require.Equal(t, c.code, exit.Code)
			require.EqualError(t, got.err, c.want)
			require.Equal(t, c.stderr, got.stderr)
		})
	}
	t.Run("Fail", func(t *testing.T) {
		t.Parallel()
		require.EqualError(t, run(t.Context(), t, "core.fail", `{"message": "no luck"}`).err, "no luck")
		require.EqualError(t, run(t.Context(), t, "core.fail", `{}`).err, "failed on request")
	})
	t.Run("SleepEndsWithItsContext", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		cancel(cause)
		require.ErrorIs(t, run(ctx, t, "core.sleep", `{"seconds": 600}`).err, cause)
	})
}
