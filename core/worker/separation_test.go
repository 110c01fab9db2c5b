package worker_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/process"
	"github.com/attune-go/attune/lab/testkit"
)

// enterable is a temporary folder that other users can enter.
func enterable(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != filepath.Clean(os.TempDir()) && len(at) > 1; at = filepath.Dir(at) {
		require.NoError(t, os.Chmod(at, 0o755))
	}
	return dir
}

// Each execution has its own folder for temporary files, which is removed after it.
func TestTemporaryFilesAreRemoved(t *testing.T) {
	b := setup(t)
	temp := t.TempDir()
	w := b.worker(t, func(c *worker.Config) { c.TempDir = temp })
	action := b.script(t, "probe.temp", `cat >/dev/null; echo "$TMPDIR"; f=$(mktemp) && echo x > "$f"
mkdir -p "$TMPDIR/a/b"; echo y > "$TMPDIR/a/b/c"; chmod 0500 "$TMPDIR/a/b" "$TMPDIR/a"`, nil)
	seen := map[string]bool{}
	for range 2 {
		status, r := b.run(t, w, action, nil)
		require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
		dir := strings.TrimSpace(r.Stdout)
		require.Equal(t, temp, filepath.Dir(dir))
		require.NoDirExists(t, dir)
		seen[dir] = true
	}
	require.Len(t, seen, 2)
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// Actions that run as another user read their own files and parameters, and none of the worker's.
func TestActionsRunAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("run as root to start actions as another user")
	}
	b := setup(t)
	temp, own := enterable(t), filepath.Join(enterable(t), "key")
	require.NoError(t, os.WriteFile(own, []byte("of the worker"), 0o600))
	w := b.worker(t, func(c *worker.Config) {
		c.RunAs, c.TempDir = "65534:65534", temp
		c.Limits = process.Limits{OpenFiles: 77, CPU: time.Minute}
	})
	action := b.described(t, "probe.user", `id -u; id -g; echo "$HOME" "$USER"; ulimit -n; cat "$ATTUNE_PARAMETER_FILE"; echo
echo x > "$TMPDIR/file" && cat "$TMPDIR/file"; cat "$own" 2>&1 || :; cat "/proc/$PPID/environ" 2>&1 || :
test -O "$0" && echo "own script"; kill -0 $PPID 2>&1 || :`, b.runtime(t, "core.shell", "Shell", shellRuntime), true)
	testkit.Exec(t, b.store, `update action set parameter_delivery = 'file', param_schema = '{"own": {}}' where id = $1`,
		action.ID)
	status, r := b.run(t, w, action, map[string]any{"own": own})
	require.Equal(t, lifecycle.StatusCompleted, status, "%+v", r)
	lines := strings.Split(r.Stdout, "\n")
	require.Equal(t, []string{"65534", "65534", "/nonexistent nobody", "77", `{"own":"` + own + `"}`}, lines[:5])
	require.Contains(t, r.Stdout, "\nx\n")
	require.Contains(t, r.Stdout, "own script")
	require.NotContains(t, r.Stdout, "of the worker")
	require.Equal(t, 2, strings.Count(r.Stdout, "Permission denied"), r.Stdout)
	require.Contains(t, r.Stdout, "not permitted")
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, lifecycle.StatusCancelled, b.cancelled(t, w, "probe.sleepy"),
		"the worker may stop processes of that user")
}

// cancelled cancels a long action while it runs.
func (b *bundle) cancelled(t testing.TB, w *worker.Worker, ref string) lifecycle.Status {
	t.Helper()
	action := b.script(t, ref, "", nil)
	testkit.Exec(t, b.store, "update action set entrypoint = 'sleep 600', is_adhoc = true, runtime = (select id from runtime where ref = 'core.shell') where id = $1", action.ID)
	id := b.schedule(t, w, action, nil)
	b.dispatch(t, w, id)
	b.awaitRunning(t, id)
	testkit.Exec(t, b.store, "update execution set status = 'canceling' where id = $1", id)
	b.cancel(t, w, id)
	status, _ := b.await(t, id)
	return status
}

// A worker that cannot run actions as the configured user does not start.
func TestAnImpossibleUserIsRefused(t *testing.T) {
	b := setup(t)
	for spec, want := range map[string]string{
		"nobody-of-this-name": "worker w1: run actions as nobody-of-this-name: there is no user nobody-of-this-name",
		"root":                "worker w1: run actions as root: an action that is root can do whatever the worker can",
		"0:0":                 "an action that is root",
	} {
		_, err := worker.New(worker.Config{Name: "w1", RunAs: spec}, worker.Deps{Store: b.store, Broker: b.engine})
		require.ErrorContains(t, err, want)
	}
	if os.Geteuid() == 0 {
		closed := t.TempDir() // which the other user cannot enter
		require.NoError(t, os.Chmod(closed, 0o700))
		w := b.unstarted(t, func(c *worker.Config) { c.RunAs, c.TempDir = "65534:65534", closed })
		require.ErrorContains(t, w.Start(testkit.Context(t)),
			"worker w1: start actions with worker.run_as and limits: ")
		return
	}
	w := b.unstarted(t, func(c *worker.Config) { c.RunAs = strconv.Itoa(os.Geteuid()+1) + ":1" })
	require.ErrorContains(t, w.Start(testkit.Context(t)), "worker w1: give temporary files to user ")
}

// A symbolic link may lead to a file in the pack, and not out of it.
func TestLinksStayInTheirPack(t *testing.T) {
	b := setup(t)
	packs, elsewhere := t.TempDir(), t.TempDir()
	put(t, elsewhere, "evil.sh", "echo evil")
	put(t, elsewhere, "linked/actions/of-a-linked-pack.sh", "echo fine")
	put(t, packs, "links/lib/good.sh", "echo good")
	put(t, packs, "links/actions/plain.sh", "echo plain")
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "evil.sh"), filepath.Join(packs, "links/actions/out.sh")))
	require.NoError(t, os.Symlink("../lib/good.sh", filepath.Join(packs, "links/actions/in.sh")))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(packs, "links/actions/folder")))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "linked"), filepath.Join(packs, "linked")))
	w := b.worker(t, func(c *worker.Config) { c.PacksDir = packs })
	runtime := b.runtime(t, "core.shell", "Shell", shellRuntime)
	for name, c := range map[string]struct{ ref, entrypoint, stdout, failure string }{
		"AFile":  {"links.plain", "plain.sh", "plain\n", ""},
		"Inside": {"links.in", "in.sh", "good\n", ""},
		"Outside": {
			"links.out", "out.sh", "",
			`action links.out: "out.sh" is refused: it leads out of its pack by a link`,
		},
		"ByAFolder": {
			"links.deep", "folder/evil.sh", "",
			`action links.deep: "folder/evil.sh" is refused: it leads out of its pack by a link`,
		},
		"OfALinkedPack":  {"linked.a", "of-a-linked-pack.sh", "fine\n", ""},
		"AnAbsoluteName": {"links.abs", filepath.Join(elsewhere, "evil.sh"), "evil\n", ""},
	} {
		_, r := b.run(t, w, b.described(t, c.ref, c.entrypoint, runtime, false), nil)
		require.Equal(t, c.stdout, r.Stdout, name)
		require.Equal(t, c.failure, r.Error, name)
	}
}

// Undeclared parameters do not have their own names, nor do parameters that would change the shell of an action.
func TestParameterNames(t *testing.T) {
	b := setup(t)
	w := b.worker(t)
	action := b.script(t, "probe.dotenv", `cat`,
		map[string]any{"parameter_format": "dotenv", "param_schema": `{"a":{}, "PATH":{}, "INHERITED":{}}`})
	_, r := b.run(t, w, action, map[string]any{"a": 1, "PATH": "/x", "INHERITED": "x", "RANDOM": "a[$(id)]", "b+": 2})
	require.Equal(t, "PARAM_B_='2'\nPARAM_INHERITED='x'\nPARAM_PATH='/x'\nPARAM_RANDOM='a[$(id)]'\na='1'\n", r.Stdout)
	status, r := b.run(t, w, action, map[string]any{"a-b": 1, "a_b": 2})
	require.Equal(t, lifecycle.StatusFailed, status)
	require.Equal(t, `action probe.dotenv: the parameter "a_b" becomes the same variable as "a-b": rename it, or declare it in the parameters of the action`, r.Error)
	require.Empty(t, r.Stdout)

	code := b.described(t, "probe.code", `echo "$PARAM_A_B$b|$PARAM_B"`, b.runtime(t, "core.shell", "Shell", shellRuntime), true)
	_, r = b.run(t, w, code, map[string]any{"a-b": 1, "b": 2})
	require.Equal(t, "1|2\n", r.Stdout)
	_, r = b.run(t, w, code, map[string]any{"a-b": 1, "a_b": 2})
	require.Contains(t, r.Error, `the parameter "a_b" becomes the same variable as "a-b"`)
}
