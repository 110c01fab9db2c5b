package worker_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// An action of an existing installation runs with the newest available version of its runtime that meets its
// constraint and is installed at the worker.
func TestRuntimeVersionsChooseTheInterpreter(t *testing.T) {
	b := setupOn(t, testkit.AdoptedDatabase(t))
	dir := t.TempDir()
	python := func(name, version string) string {
		path := filepath.Join(dir, name)
		script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && echo Python %s && exit\nprintf 'ran %s'\n", version,
			name)
		worker.WriteExecutable(t, path, script)
		return path
	}
	interpreter := func(path string) string { return `{"interpreter": {"binary": "` + path + `"}}` }
	runtime := b.runtime(t, "probe.python", "Python", interpreter(python("python3", "3.9.2")))
	add := func(version, path string, isDefault, available bool) {
		testkit.Exec(t, b.store, `insert into runtime_version (runtime, runtime_ref, version, execution_config, is_default, available)
			values ($1, 'probe.python', $2, $3, $4, $5)`, *runtime, version, interpreter(path), isDefault, available)
	}
	add("3.11", python("python3.11", "3.11.7"), true, true)
	add("3.12", python("python3.12", "3.12.4"), false, true)
	add("3.13", filepath.Join(dir, "python3.13"), false, true) // not installed here
	add("3.14", python("python3.14", "3.14.0"), false, false)
	add("3.10", python("python3.10", "3.9.1"), false, true) // another version than its row
	w := b.worker(t, func(c *worker.Config) {
		c.FoundInterpreters = map[string][]string{"python": {filepath.Join(dir, "python3")}}
	})

	var announced struct {
		Versions map[string][]string `json:"runtime_versions"`
	}
	var raw []byte
	require.NoError(t,
		b.store.Pool().QueryRow(testkit.Context(t), "select capabilities from worker where id = $1", w.ID()).Scan(&raw))
	require.NoError(t, json.Unmarshal(raw, &announced))
	require.ElementsMatch(t, []string{"3.9.2", "3.11", "3.12"}, announced.Versions["python"])

	script := put(t, t.TempDir(), "action.py", "")
	ran := func(ref string, constraint any) string {
		action := b.described(t, ref, script, runtime, false)
		testkit.Exec(t, b.store, "update action set runtime_version_constraint = $2 where id = $1", action.ID,
			constraint)
		status, r := b.run(t, w, action, nil)
		require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
		return r.Stdout
	}
	require.Equal(t, "ran python3.12", ran("probe.newest", ">=3.10"))
	require.Equal(t, "ran python3.11", ran("probe.exact", "3.11"))
	require.Equal(t, "ran python3.11", ran("probe.default", nil), "the default version")
	require.Equal(t, "ran python3", ran("probe.none", ">=3.14"), "the runtime's own execution_config")
	add("3.15", python("python3.15", "3.15.0"), false, true)
	require.Equal(t, "ran python3.15", ran("probe.later", ">=3.14"), "a row that is newer than the worker's start")

	w2 := b.worker(t, func(c *worker.Config) {
		c.Name, c.Interpreters = "w2", map[string][]string{"python": {filepath.Join(dir, "python3")}}
	})
	action := b.described(t, "probe.chosen", script, runtime, false)
	_, r := b.run(t, w2, action, nil)
	require.Equal(t, "ran python3", r.Stdout, "worker.interpreters wins")
}

// The environment of a pack for a version is in a folder of that version.
func TestAnEnvironmentOfAVersionHasItsOwnFolder(t *testing.T) {
	b := setup(t)
	packs, envs := t.TempDir(), t.TempDir()
	config := `{"interpreter": {"binary": "/bin/sh"}, "environment": {"dir_name": ".venv", "interpreter_path": "{env_dir}/bin/run"}}`
	runtime := b.runtime(t, "probe.sh", "Shell", config)
	testkit.Exec(t, b.store, `insert into runtime_version (runtime, runtime_ref, version, execution_config) values ($1, 'probe.sh', '5.2', $2)`,
		*runtime, config)
	put(t, packs, "probe/actions/a.sh", "echo from sh")
	path := put(t, envs, "probe/shell-5.2/bin/run", "")
	worker.WriteExecutable(t, path, "#!/bin/sh\nprintf 'from the environment'\n")
	w := b.worker(t, func(c *worker.Config) { c.PacksDir, c.RuntimeEnvsDir = packs, envs })
	status, r := b.run(t, w, b.described(t, "probe.a", "a.sh", runtime, false), nil)
	require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
	require.Equal(t, "from the environment", r.Stdout)
}
