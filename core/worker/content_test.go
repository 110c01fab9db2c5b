package worker_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// shellRuntime is the execution_config of the published runtime core.shell.
const shellRuntime = `{"interpreter": {"binary": "/bin/bash", "args": [], "file_extension": ".sh"},
	"inline_execution": {"strategy": "temp_file", "extension": ".sh", "inject_shell_helpers": true}}`

// runtime inserts a runtime.
func (b *bundle) runtime(t testing.TB, ref, name, config string) *int64 {
	t.Helper()
	var id int64
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), `insert into runtime (ref, name, distributions, execution_config)
		values ($1, $2, '{}', $3) returning id`, ref, name, config).Scan(&id))
	return &id
}

// described inserts an action with an entry point and a runtime.
func (b *bundle) described(t testing.TB, ref, entrypoint string, runtime *int64, adhoc bool) testkit.ActionRow {
	t.Helper()
	action := testkit.Action(t, b.store, ref,
		func(row *testkit.ActionRow) { row.Entrypoint, row.Runtime = entrypoint, runtime })
	testkit.Exec(t, b.store, "update action set is_adhoc = $2 where id = $1", action.ID, adhoc)
	return action
}

// put writes a file below a folder of packs.
func put(t testing.TB, packs, name, content string) string {
	t.Helper()
	path := filepath.Join(packs, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// keys returns the members of the result of an execution.
func (b *bundle) keys(t testing.TB, execution int64) map[string]json.RawMessage {
	t.Helper()
	var raw []byte
	require.NoError(t,
		b.store.Pool().QueryRow(testkit.Context(t), "select result from execution where id = $1", execution).Scan(&raw))
	var keys map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &keys))
	return keys
}

func TestCoreActionsAsFilesAndBuiltIn(t *testing.T) {
	t.Parallel()
	const params = `IFS= read -r line; code=$(expr "$line" : '.*"exit_code":\([0-9]*\)'); `
	for name, file := range map[string]bool{"BuiltIn": false, "File": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			packs := t.TempDir()
			if file {
				put(t, packs, "core/actions/noop.sh", params+"echo 'from the file'\nexit \"${code:-0}\"\n")
			}
			w := b.worker(t, func(c *worker.Config) { c.PacksDir = packs })
			noop, echo := b.core(t, "core.noop"), b.core(t, "core.echo")
			if file {
				testkit.Exec(t, b.store, "update action set entrypoint = 'noop.sh', runtime = $2 where id = $1",
					noop.ID,
					b.runtime(t, "core.shell", "Shell", shellRuntime))
			}
			status, r := b.run(t, w, noop, map[string]any{"exit_code": 3})
			require.Equal(t, lifecycle.StatusFailed, status)
			require.Equal(t, 3, r.ExitCode)
			require.Equal(t, "Command exited with code 3", r.Error)
			require.Empty(t, r.Data)
			require.Equal(t, file, r.Stdout == "from the file\n", r.Stdout)

			id := b.schedule(t, w, echo, map[string]any{"message": "hi"})
			b.dispatch(t, w, id)
			status, r = b.await(t, id)
			require.Equal(t, lifecycle.StatusCompleted, status)
			require.Equal(t, "hi", r.Stdout)
			require.NotContains(t, b.keys(t, id), "data")
			id = b.schedule(t, w, echo, map[string]any{})
			b.dispatch(t, w, id)
			_, _ = b.await(t, id)
			require.NotContains(t, b.keys(t, id), "stdout")
		})
	}
}

func TestInlineCode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	packs, temp := t.TempDir(), t.TempDir()
	put(t, packs, "own/actions/run.sh", "echo the file")
	put(t, packs, "own/actions/run.py", "the file")
	put(t, packs, "coreplus/actions/run.sh", "echo the file")
	put(t, packs, "own/actions/folder.sh/run", "echo the file")
	require.NoError(t, syscall.Mkfifo(filepath.Join(packs, "own", "pipe.sh"), 0o600))
	w := b.worker(t, func(c *worker.Config) {
		c.PacksDir, c.TempDir = packs, temp
		c.FoundInterpreters = map[string][]string{"python": {"/bin/cat"}}
	})
	published := b.runtime(t, "core.shell", "Shell", shellRuntime)
	plain := b.runtime(t, "other.shell", "shell", `{}`)
	direct := b.runtime(t, "direct.shell", "shell", `{"interpreter": {"binary": "/bin/bash"}}`)
	unhelped := b.runtime(t, "bare.shell", "shell",
		`{"interpreter": {"binary": "/bin/bash"}, "inline_execution": {"strategy": "temp_file", "extension": "bash"}}`)
	python := b.runtime(t, "core.python", "Python", `{}`)
	params := map[string]any{"name": "it's\n$x", "count": 2, "o": map[string]any{"a": 1}}

	for name, c := range map[string]struct {
		ref, entrypoint string
		runtime         *int64
		adhoc           bool
		want, failure   string
	}{
		"ParametersAndNoInput": {
			"own.a", `printf '%s|%s|%s|%s' "$name" "$PARAM_COUNT" "$o" "$(cat)"`, published, true,
			"it's\n$x|2|{\"a\":1}|", "",
		},
		"ItRunsInItsPack":  {"own.b", "pwd", published, true, packs + "/own\n", ""},
		"WithoutAConfig":   {"own.c", `echo "$PARAM_COUNT"`, plain, true, "2\n", ""},
		"ItEndsAtAFailure": {"own.d", "false\necho on", published, true, "", "Command exited with code 1"},
		"ItsFileIsNamed": {
			"own.e", `basename "$0" | sed s/[0-9][0-9]*/ID/`, published, true, "exec_ID.sh\n",
			"",
		},
		"Direct": {
			"own.f", `printf '%s|%s' "$PARAM_COUNT" "$(cat)"`, direct, true,
			`|{"o":{"a":1},"name":"it's\n$x","count":2}`, "",
		},
		"WithoutHelpers": {
			"own.g", `printf '%s|' "$PARAM_COUNT"; cat`, unhelped, true,
			`|{"o":{"a":1},"name":"it's\n$x","count":2}` + "\n", "",
		},
		"NotTheFile":           {"own.h", "run.sh", published, true, "", "run.sh: command not found"},
		"TheFileOfAPackAction": {"own.i", "run.sh", published, false, "the file\n", ""},
		"CodeOfAPackAction":    {"own.j", "echo code", published, false, "code\n", ""},
		"AMissingFile": {
			"own.q", "gone.sh", published, false, "",
			`No executable content found for action 'own.q': file "gone.sh" of pack own is missing: there is no ` + packs +
				`/own/actions/gone.sh, and no function of this worker has its name`,
		},
		"AMissingFileInAFolder": {
			"own.r", "bin/gone", published, false, "",
			`No executable content found for action 'own.r': file "bin/gone" of pack own is missing`,
		},
		"AFolder": {
			"own.s", "folder.sh", published, false, "",
			`file "folder.sh" of pack own cannot be run: ` + packs + "/own/actions/folder.sh is a folder, and no function",
		},
		"APipe":                 {"own.t", "pipe.sh", published, false, "", packs + "/own/pipe.sh is not a regular file, and no function"},
		"TheCorePacksHaveFiles": {"coreplus.k", "run.sh", published, true, "the file\n", ""},
		"AnotherRuntimesFile":   {"own.l", "run.py", python, true, "the file", ""},
		"AnotherRuntime": {
			"own.m", "print(1)", python, true, "",
			"No executable content found for action 'own.m'",
		},
		"AnotherRuntimesPack": {
			"own.n", "gone.py", python, false, "",
			"No executable content found for action 'own.n'",
		},
		"NoRuntime":    {"own.o", "echo code", nil, true, "", "No executable content found for action 'own.o'"},
		"NothingAtAll": {"own.p", "", published, true, "", "No executable content found for action 'own.p'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			action := b.described(t, c.ref, c.entrypoint, c.runtime, c.adhoc)
			testkit.Exec(t, b.store, `update action set param_schema = '{"name": {}, "o": {}}' where id = $1`, action.ID)
			status, r := b.run(t, w, action, params)
			require.Equal(t, c.want, r.Stdout, "%+v", r)
			if c.failure == "" {
				require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
				return
			}
			require.Equal(t, lifecycle.StatusFailed, status)
			require.Contains(t, r.Error, c.failure)
		})
	}
	t.Cleanup(func() { // after the subtests
		left, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Empty(t, left, "no script is left behind")
	})
}

// The standard error of a failed process becomes its error.
func TestErrorsOfProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.worker(t)
	for name, c := range map[string]struct {
		script, format, want string
		code                 int
	}{
		"Short":  {"echo one >&2; echo two >&2; exit 4", "text", "one\ntwo\n", 4},
		"Long":   {"for i in 1 2 3 4 5 6; do echo line $i >&2; done; exit 1", "text", "line 6", 1},
		"Silent": {"exit 9", "text", "Command exited with code 9", 9},
		"Signal": {"kill -SEGV $$", "text", "Command exited with code -1: killed by SIGSEGV", -1},
		"Said":   {"echo broken >&2; kill -ABRT $$", "text", "broken (killed by SIGABRT)", -1},
		"Killed": {"kill -KILL $$", "text", "Command exited with code -1: killed by SIGKILL, often for want of memory", -1},
		"Program": {"exit 137", "text", "Command exited with code 137: " +
			"a program of it was killed by SIGKILL, often for want of memory", 137},
		"NoData":  {`echo '{"a": 1}'; exit 2`, "json", "Command exited with code 2", 2},
		"QueueOK": {`echo '{"queue_ack": {"ok": true}}'`, "json", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := b.schedule(t, w,
				b.script(t, "err."+strings.ToLower(name), c.script, map[string]any{"output_format": c.format}), nil)
			b.dispatch(t, w, id)
			_, r := b.await(t, id)
			require.Equal(t, c.want, r.Error)
			require.Equal(t, c.code, r.ExitCode)
			keys := b.keys(t, id)
			if c.code != 0 {
				require.NotContains(t, keys, "data")
				return
			}
			require.JSONEq(t, `{"ok": true}`, string(keys["queue_ack"]))
			require.NotContains(t, keys, "stdout")
			require.NotContains(t, keys, "error")
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	packs, envs := t.TempDir(), t.TempDir()
	put(t, packs, "env/actions/show.sh", "#!/bin/false\nenv -0 | sort -z | tr '\\0\\n' '\\n '")
	tokens := secret.NewSigner([]byte("signs"))
	w := b.worker(t, func(c *worker.Config) {
		c.PacksDir, c.RuntimeEnvsDir, c.ArtifactsDir, c.APIURL, c.Tokens = packs, envs, "/artifacts", "http://api:1",
			tokens
		c.Env = []string{"EXTRA=yes"}
	})
	shell := b.runtime(t, "core.shell", "Shell", `{"interpreter": {"binary": "/bin/bash", "args": ["--norc"]},
		"environment": {"dir_name": ".venv", "interpreter_path": "{env_dir}/bin/bash"}, "dependencies": {"manifest_file": "list.txt"},
		"env_vars": {"LIB": "{pack_dir}/lib", "WHERE": "{env_dir} {interpreter} {manifest_path}", "BAD=NAME": "x",
			"EXTRA": {"value": "more", "operation": "append", "separator": ","}, "INHERITED": {"value": "first", "operation": "prepend"},
			"FRESH": {"value": "alone", "operation": "prepend"}}}`)
	action := b.described(t, "env.show", "show.sh", shell, false)
	env := func(t *testing.T, change string, config any) (map[string]string, int64) {
		t.Helper()
		id := b.schedule(t, w, action, config)
		if change != "" {
			testkit.Exec(t, b.store, change, id)
		}
		b.dispatch(t, w, id)
		status, r := b.await(t, id)
		require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
		all := map[string]string{}
		for line := range strings.Lines(r.Stdout) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			all[name] = value
		}
		return all, id
	}

	t.Run("OfEveryProcess", func(t *testing.T) {
		t.Parallel()
		all, id := env(t, "",
			map[string]any{"context": map[string]any{
				"user": "ann", "n": 1.5, "ok": true, "o": map[string]any{"a": nil},
				"x=y": 1, "z": nil,
			}})
		raw, err := json.Marshal(id)
		require.NoError(t, err)
		for name, want := range map[string]string{
			"ATTUNE_EXEC_ID": string(raw), "ATTUNE_ACTION": "env.show", "ATTUNE_PACK_REF": "env",
			"ATTUNE_API_URL":       "http://api:1",
			"ATTUNE_ARTIFACTS_DIR": "/artifacts", "ATTUNE_RUNTIME_ENVS_DIR": envs, "ATTUNE_PARAMETER_DELIVERY": "stdin",
			"ATTUNE_PARAMETER_FORMAT": "json", "ATTUNE_CONTEXT_USER": "ann", "ATTUNE_CONTEXT_N": "1.5",
			"ATTUNE_CONTEXT_OK": "true",
			"ATTUNE_CONTEXT_O":  `{"a": null}`, "ATTUNE_CONTEXT_Z": "null", "LIB": packs + "/env/lib",
			"EXTRA": "yes,more", "INHERITED": "first:yes", "FRESH": "alone",
			"WHERE": envs + "/env/shell /bin/bash " + packs + "/env/list.txt", "PWD": packs + "/env",
		} {
			require.Equal(t, want, all[name], name)
		}
		for _, name := range []string{
			"ATTUNE_RULE", "ATTUNE_TRIGGER", "ATTUNE_API_TOKEN", "ATTUNE_PARAMETER_FILE", "ATTUNE_CONTEXT_X=Y",
			"BAD=NAME",
			"ATTUNE__SECURITY__ENCRYPTION_KEY",
		} {
			require.NotContains(t, all, name)
		}
	})

	t.Run("NoContext", func(t *testing.T) {
		t.Parallel()
		all, _ := env(t, "", map[string]any{"context": "text"})
		for name := range all {
			require.False(t, strings.HasPrefix(name, "ATTUNE_CONTEXT_"), name)
		}
	})

	t.Run("OfAnEnforcement", func(t *testing.T) {
		t.Parallel()
		var enforcement int64
		require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), `insert into enforcement (rule_ref, trigger_ref, config, payload, condition, conditions)
			values ('env.rule', 'env.trigger', '{}', '{}', 'all', '[]') returning id`).Scan(&enforcement))
		id := b.schedule(t, w, action, nil)
		testkit.Exec(t, b.store, "update execution set enforcement = $2 where id = $1", id, enforcement)
		b.dispatch(t, w, id)
		_, r := b.await(t, id)
		require.Contains(t, r.Stdout, "ATTUNE_RULE=env.rule\n")
		require.Contains(t, r.Stdout, "ATTUNE_TRIGGER=env.trigger\n")
	})

	t.Run("WithAToken", func(t *testing.T) {
		t.Parallel()
		all, id := env(t, `update execution set permission_set_refs = '{core.viewer,standard}', executor = 1, workflow_task = '{"timeout_seconds": 7}' where id = $1`, nil)
		claims, err := tokens.Verify(all["ATTUNE_API_TOKEN"])
		require.NoError(t, err)
		require.Equal(t, "1", claims.Subject)
		require.Equal(t, 67*time.Second, claims.Expires.Sub(claims.Issued), "its timeout and a minute")
		require.Equal(t, &secret.TokenMetadata{
			ExecutionID: id, ActionRef: "env.show", PermissionSetRefs: []string{"core.viewer", "standard"},
			StandardAccessActionRefs: []string{"env.show"}, StandardAccessPackRefs: []string{"env"},
		}, claims.Execution)
	})

	t.Run("OfAWorkflow", func(t *testing.T) {
		t.Parallel()
		parent := testkit.Execution(t, b.store, testkit.Action(t, b.store, "env.flow")).ID
		id := b.schedule(t, w, action, nil)
		testkit.Exec(t, b.store,
			`update execution set permission_set_refs = '{standard}', workflow_task = '{}', parent = $2 where id = $1`, id, parent)
		b.dispatch(t, w, id)
		_, r := b.await(t, id)
		_, rest, _ := strings.Cut(r.Stdout, "ATTUNE_API_TOKEN=")
		issued, _, _ := strings.Cut(rest, "\n")
		claims, err := tokens.Verify(issued)
		require.NoError(t, err)
		require.Equal(t, []string{"env.flow", "env.show"}, claims.Execution.StandardAccessActionRefs)
	})

	t.Run("WithoutASecretThereIsNoToken", func(t *testing.T) {
		t.Parallel()
		other := b.worker(t, func(c *worker.Config) {
			c.Name, c.PacksDir, c.Tokens = "w2", packs, secret.NewSigner(nil)
		})
		id := b.schedule(t, other, action, nil)
		testkit.Exec(t, b.store, `update execution set permission_set_refs = '{standard}' where id = $1`, id)
		b.dispatch(t, other, id)
		status, r := b.await(t, id)
		require.Equal(t, lifecycle.StatusCompleted, status)
		require.NotContains(t, r.Stdout, "ATTUNE_API_TOKEN")
	})
}

// The interpreter is that of the configuration, else of the pack's environment, else of the runtime, else of the
// machine.
func TestInterpreters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	packs, envs := t.TempDir(), t.TempDir()
	put(t, packs, "use/actions/x.py", "echo file")
	put(t, packs, "installed/actions/x.py", "echo file")
	own := put(t, envs, "installed/python/bin/own", "")
	worker.WriteExecutable(t, own, "#!/bin/sh\necho installed \"$@\"\n")
	python := b.runtime(t, "core.python", "Python", `{"interpreter": {"binary": "/bin/echo", "args": ["-u"]},
		"environment": {"interpreter_path": "{env_dir}/bin/own"}}`)
	bare := b.runtime(t, "other.python", "Python", `{}`)
	base := func(c *worker.Config) {
		c.PacksDir, c.RuntimeEnvsDir = packs, envs
		c.FoundInterpreters = map[string][]string{"python": {"/bin/echo", "found"}}
	}
	w := b.worker(t, base)
	chosen := b.worker(t, base, func(c *worker.Config) {
		c.Name, c.Interpreters = "w2", map[string][]string{"Python": {"/bin/echo", "chosen"}}
	})
	file := packs + "/use/actions/x.py"
	for name, c := range map[string]struct {
		on      *worker.Worker
		ref     string
		runtime *int64
		want    string
	}{
		"OfTheRuntime": {w, "use.a", python, "-u " + file + "\n"},
		"Installed":    {w, "installed.b", python, "installed -u " + packs + "/installed/actions/x.py\n"},
		"Found":        {w, "use.c", bare, "found " + file + "\n"},
		"ByItsEnding":  {w, "use.d", nil, "found " + file + "\n"},
		"Chosen":       {chosen, "use.e", python, "chosen " + file + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, r := b.run(t, c.on, b.described(t, c.ref, "x.py", c.runtime, false), nil)
			require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
			require.Equal(t, c.want, r.Stdout)
		})
	}
}
