package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

func TestRunFunctions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ended := make(chan struct{})
	actions := worker.Actions{
		"go.params": func(_ context.Context, task worker.Task) (any, error) {
			_, _ = fmt.Fprint(task.Stderr, "a note\x00")
			return map[string]any{"got": task.Params, "text": "nul \x00 and \xff"}, nil
		},
		"go.panic": func(context.Context, worker.Task) (any, error) { panic("oh no") },
		"go.fail":  func(context.Context, worker.Task) (any, error) { return nil, errors.New("because") },
		"go.deaf": func(context.Context, worker.Task) (any, error) {
			<-ended
			return "too late", nil
		},
	}
	w := b.worker(t, func(c *worker.Config) { c.Actions = actions })

	t.Run("ParametersWithDefaultsAndDataThatTheDatabaseCannotStoreUnchanged", func(t *testing.T) {
		t.Parallel()
		action := testkit.Action(t, b.store, "go.params", func(row *testkit.ActionRow) {
			row.ParamSchema = map[string]any{"a": map[string]any{"default": 1}, "b": map[string]any{"default": "x"}}
		})
		status, r := b.run(t, w, action, map[string]any{"b": "mine"})
		require.Equal(t, lifecycle.StatusCompleted, status)
		require.True(t, r.Succeeded)
		require.JSONEq(t, `{"got": {"a": 1, "b": "mine"}, "text": "nul \ufffd and \ufffd"}`, string(r.Data))
		require.Equal(t, "a note\uFFFD", r.StderrLog)
	})

	t.Run("AnErrorFails", func(t *testing.T) {
		t.Parallel()
		status, r := b.run(t, w, testkit.Action(t, b.store, "go.fail"), nil)
		require.Equal(t, lifecycle.StatusFailed, status)
		require.Equal(t, "because", r.Error)
		require.False(t, r.Succeeded)
		require.Equal(t, 1, r.ExitCode)
	})

	t.Run("APanicFails", func(t *testing.T) {
		t.Parallel()
		status, r := b.run(t, w, testkit.Action(t, b.store, "go.panic"), nil)
		require.Equal(t, lifecycle.StatusFailed, status)
		require.Equal(t, "panic: oh no", r.Error)
		require.Contains(t, r.StderrLog, "run_test.go")
	})

	t.Run("TheEntrypointNamesTheFunctionToo", func(t *testing.T) {
		t.Parallel()
		action := testkit.Action(t, b.store, "other.name",
			func(row *testkit.ActionRow) { row.Entrypoint = "go.params" })
		status, _ := b.run(t, w, action, nil)
		require.Equal(t, lifecycle.StatusCompleted, status)
	})

	t.Run("AFunctionThatDoesNotStopTimesOut", func(t *testing.T) {
		t.Parallel()
		defer close(ended)
		one := int32(1)
		action := testkit.Action(t, b.store, "go.deaf", func(row *testkit.ActionRow) { row.TimeoutSeconds = &one })
		status, r := b.run(t, w, action, nil)
		require.Equal(t, lifecycle.StatusFailed, status)
		require.Equal(t, "Execution timed out after 1 seconds", r.Error)
		require.Equal(t, -1, r.ExitCode)
	})

	t.Run("AnUnknownEntrypointFailsClearly", func(t *testing.T) {
		t.Parallel()
		action := testkit.Action(t, b.store, "absent.file",
			func(row *testkit.ActionRow) { row.Entrypoint = "nothing.py" })
		status, r := b.run(t, w, action, nil)
		require.Equal(t, lifecycle.StatusFailed, status)
		require.Contains(t, r.Error, `"nothing.py"`)
	})

	t.Run("ADeletedActionFailsClearly", func(t *testing.T) {
		t.Parallel()
		action := testkit.Action(t, b.store, "soon.gone")
		id := b.schedule(t, w, action, nil)
		testkit.Exec(t, b.store, "delete from action where id = $1", action.ID)
		b.dispatch(t, w, id)
		status, r := b.await(t, id)
		require.Equal(t, lifecycle.StatusFailed, status)
		require.Contains(t, r.Error, "soon.gone does not exist")
		require.Zero(t, b.completions(id)[0].ActionID)
	})
}

func TestRunProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	packs := t.TempDir()
	w := b.worker(t, func(c *worker.Config) {
		c.MaxStdoutBytes, c.MaxStderrBytes, c.APIURL, c.PacksDir = 1000, 100, "http://api", packs
		c.Env = []string{"EXTRA=yes"}
	})
	params := map[string]any{"name": "it's", "n": 5}

	for name, c := range map[string]struct{ delivery, format, script, want string }{
		"JSONByStdin": {
			"stdin", "json",
			`test "$(wc -l)" -eq 1; printf '"%s"' "$ATTUNE_PARAMETER_DELIVERY $ATTUNE_PARAMETER_FORMAT"`,
			`"stdin json"`,
		},
		"JSONIsOneLine": {"stdin", "json", "IFS= read -r line; printf %s \"$line\"", `{"n":5,"name":"it's"}`},
		"NoFileByStdin": {"stdin", "json", `echo "[${ATTUNE_PARAMETER_FILE-1}]"`, `[1]`},
		"DotenvByStdin": {
			"stdin", "dotenv", `eval "$(cat)"; printf '{"n":%s,"name":"%s"}' "$n" "$name"`,
			`{"n":5,"name":"it's"}`,
		},
		"YAMLByStdin": {"stdin", "yaml", `grep -c -e '^"n": 5$' -e "^name: it's$"`, `2`},
		"JSONByFile":  {"file", "json", `test -z "$(cat)" && cat "$ATTUNE_PARAMETER_FILE"`, `{"n":5,"name":"it's"}`},
		"DotenvByFile": {
			"file", "dotenv", `. "$ATTUNE_PARAMETER_FILE"; printf '{"n":%s,"name":"%s"}' "$n" "$name"`,
			`{"n":5,"name":"it's"}`,
		},
		"PrivateFile": {"file", "yaml", `stat -c %a "$ATTUNE_PARAMETER_FILE"`, `600`},
	} {
		t.Run("Delivery"+name, func(t *testing.T) {
			t.Parallel()
			action := b.script(t, "deliver."+strings.ToLower(name), c.script, map[string]any{
				"parameter_delivery": c.delivery, "parameter_format": c.format, "output_format": "json",
				"param_schema": `{"name": {}, "n": {}}`,
			})
			status, r := b.run(t, w, action, params)
			require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
			require.JSONEq(t, c.want, string(r.Data))
		})
	}

	for name, c := range map[string]struct{ format, script, data, stdout, outputError string }{
		"Text":       {"text", `printf 'a\000b'`, "", "a\uFFFDb", ""},
		"JSON":       {"json", `echo '{"a": "\u0000"}'`, `{"a":"\ufffd"}`, "", ""},
		"YAML":       {"yaml", `echo 'a: [1, .nan]'`, `{"a":[1,"NaN"]}`, "", ""},
		"JSONL":      {"jsonl", `echo 1; echo begin; echo '{"b":2}'`, `[1,{"b":2}]`, "", ""},
		"NoJSONL":    {"jsonl", `echo begin; echo end`, "", "begin\nend\n", "read output as jsonl: line 1"},
		"LastLine":   {"json", `echo begin; echo '{"b":2}'`, `{"b":2}`, "", ""},
		"Nothing":    {"json", `echo`, "", "\n", ""},
		"BrokenJSON": {"json", `echo '{'`, "", "{\n", "read output as json"},
	} {
		t.Run("Output"+name, func(t *testing.T) {
			t.Parallel()
			action := b.script(t, "output."+strings.ToLower(name), c.script, map[string]any{"output_format": c.format})
			status, r := b.run(t, w, action, nil)
			require.Equal(t, lifecycle.StatusCompleted, status)
			require.Equal(t, c.stdout, r.Stdout)
			require.Contains(t, r.OutputError, c.outputError)
			if c.data == "" {
				require.Empty(t, r.Data)
			} else {
				require.JSONEq(t, c.data, string(r.Data))
			}
		})
	}

	t.Run("LimitsOfOutput", func(t *testing.T) {
		t.Parallel()
		action := b.script(t, "limit.output",
			"head -c 5000 /dev/zero | tr '\\0' x; head -c 500 /dev/zero | tr '\\0' y >&2; exit 3", nil)
		status, r := b.run(t, w, action, nil)
		require.Equal(t, lifecycle.StatusFailed, status)
		require.Equal(t, 3, r.ExitCode)
		require.Equal(t, strings.Repeat("x", 1000), r.Stdout)
		require.Equal(t, strings.Repeat("y", 100), r.StderrLog)
		require.True(t, r.StdoutTruncated)
		require.True(t, r.StderrTruncated)
	})

	t.Run("EntrypointInItsPackAndNotOutside", func(t *testing.T) {
		t.Parallel()
		require.NoError(t, os.MkdirAll(filepath.Join(packs, "inpack", "actions"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(packs, "inpack", "actions", "hi.sh"), []byte("echo hi"), 0o600))
		inside := testkit.Action(t, b.store, "inpack.hi", func(row *testkit.ActionRow) { row.Entrypoint = "hi.sh" })
		status, r := b.run(t, w, inside, nil)
		require.Equal(t, lifecycle.StatusCompleted, status, r.Error)
		require.Equal(t, "hi\n", r.Stdout)
		outside := testkit.Action(t, b.store, "inpack.out",
			func(row *testkit.ActionRow) { row.Entrypoint = "../../etc/passwd" })
		status, r = b.run(t, w, outside, nil)
		require.Equal(t, lifecycle.StatusFailed, status)
		require.Contains(t, r.Error, "outside its pack")
	})

	t.Run("TimeoutEndsTheWholeProcessGroup", func(t *testing.T) {
		t.Parallel()
		pidFile := filepath.Join(t.TempDir(), "pid")
		action := b.script(t, "slow.group", "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > "+pidFile+
			"; sleep 600' & sleep 600", nil)
		var text []byte
		// On a slow machine the grandchild starts late, so the timeout is doubled until it has started before.
		for seconds := 1; len(text) == 0; seconds *= 2 {
			require.Less(t, seconds, 120)
			testkit.Exec(t, b.store, "update action set timeout_seconds = $2 where id = $1", action.ID, seconds)
			status, r := b.run(t, w, action, nil)
			require.Equal(t, lifecycle.StatusFailed, status, "as existing services expect it")
			require.False(t, r.Succeeded)
			require.Equal(t, -1, r.ExitCode)
			require.Equal(t, fmt.Sprintf("Execution timed out after %d seconds", seconds), r.Error)
			text, _ = os.ReadFile(pidFile) // absent until the grandchild has started
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		require.NoError(t, err)
		testkit.Eventually(t, func() bool { return exited(pid) }, waitTimeout, "the grandchild outlived the timeout")
	})
}

// exited reports whether the process is gone or a zombie.
func exited(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// On the schema of an existing installation timeout_seconds of an action has an effect only if the setting is true.
func TestTimeoutsOfActionsTakeEffectBySetting(t *testing.T) {
	b := setupOn(t, testkit.AdoptedDatabase(t))
	second := map[string]any{"timeout_seconds": 1}
	longer, endless := b.script(t, "slow.longer", "sleep 1.2; echo done", second),
		b.script(t, "slow.endless", "exec sleep 600", second)
	for setting, c := range map[string]struct {
		action testkit.ActionRow
		want   lifecycle.Status
	}{
		"origin": {longer, lifecycle.StatusCompleted}, "false": {longer, lifecycle.StatusCompleted},
		"true": {endless, lifecycle.StatusFailed},
	} {
		w := b.worker(t, func(c *worker.Config) { c.Name, c.ActionTimeouts = "w-"+setting, setting })
		status, r := b.run(t, w, c.action, nil)
		require.Equal(t, c.want, status, "%s: %+v", setting, r)
	}
	own := setupOn(t, testkit.OwnDatabase(t))
	endless = own.script(t, "slow.endless", "exec sleep 600", second)
	status, r := own.run(t, own.worker(t, func(c *worker.Config) { c.ActionTimeouts = "origin" }), endless, nil)
	require.Equal(t, lifecycle.StatusFailed, status, "%+v", r)
}
