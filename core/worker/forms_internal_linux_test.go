package worker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/worker/output"
	"github.com/attune-go/attune/core/worker/process"
)

// forms are the ways in which documented scripts read their parameters. Each prints the parameter name.
var forms = map[string]struct{ runtime, delivery, format, script string }{
	"SourcedInput":       {shell, "stdin", "dotenv", `. /dev/stdin; echo "$name"`},
	"EvaluatedInput":     {shell, "stdin", "dotenv", `eval "$(cat)"; echo "$name"`},
	"InputByDescriptor":  {shell, "stdin", "dotenv", `. /dev/fd/0; echo "$name"`},
	"InputBySystem":      {shell, "stdin", "dotenv", `. /proc/self/fd/0; echo "$name"`},
	"InputOfAChild":      {shell, "stdin", "json", `sh -c 'cat /dev/stdin' | cut -d'"' -f4`},
	"InputLine":          {shell, "stdin", "json", `IFS= read -r line; echo "$line" | cut -d'"' -f4`},
	"InputYAML":          {shell, "stdin", "yaml", `cut -d' ' -f2 < /dev/stdin`},
	"NamedOutput":        {shell, "stdin", "dotenv", `. /dev/stdin; echo 1 > /dev/stderr; echo "$name" > /dev/stdout`},
	"SourcedFile":        {shell, "file", "dotenv", `. "$ATTUNE_PARAMETER_FILE"; echo "$name"`},
	"FileJSON":           {shell, "file", "json", `cut -d'"' -f4 "$ATTUNE_PARAMETER_FILE"`},
	"FileYAML":           {shell, "file", "yaml", `cut -d' ' -f2 "$ATTUNE_PARAMETER_FILE"; cat /dev/stdin`},
	"PythonInput":        {"python", "stdin", "json", "import json, sys\nprint(json.load(sys.stdin)['name'])"},
	"PythonInputByName":  {"python", "stdin", "json", "import json\nprint(json.load(open('/dev/stdin'))['name'])"},
	"PythonFile":         {"python", "file", "json", "import json, os\nprint(json.load(open(os.environ['ATTUNE_PARAMETER_FILE']))['name'])"},
	"NodeInput":          {"node", "stdin", "json", "console.log(JSON.parse(require('fs').readFileSync(0)).name)"},
	"NodeInputByName":    {"node", "stdin", "json", "console.log(JSON.parse(require('fs').readFileSync('/dev/stdin')).name)"},
	"NodeFile":           {"node", "file", "json", "console.log(JSON.parse(require('fs').readFileSync(process.env.ATTUNE_PARAMETER_FILE)).name)"},
	"ShellCode":          {shell, "", "", `echo "$name"`},
	"ShellCodeParameter": {shell, "", "", `echo "$PARAM_NAME"; cat /dev/stdin`},
}

// Each documented form of a script gets its parameters under each separation of actions from the worker.
func TestParametersArriveUnderEachSeparation(t *testing.T) {
	t.Parallel()
	temp, packs := t.TempDir(), t.TempDir()
	for _, dir := range []string{temp, packs, filepath.Dir(temp), filepath.Dir(packs)} {
		require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // other users enter it
	}
	limits := process.Limits{CPU: time.Minute, OpenFiles: 256}
	separations := map[string]Config{"None": {}, "Limits": {Limits: limits}}
	if os.Geteuid() == 0 {
		separations["User"] = Config{RunAs: "65534:65534"}
		separations["UserAndLimits"] = Config{RunAs: "65534:65534", Limits: limits}
	}
	interpreters := map[string][]string{shell: {"bash"}, "python": {"/usr/bin/python3"}, "node": {"/usr/bin/node"}}
	for under, cfg := range separations {
		cfg.Name, cfg.TempDir, cfg.PacksDir, cfg.Interpreters = "w1", temp, packs, interpreters
		cfg = cfg.withDefaults()
		separated, err := cfg.separation()
		require.NoError(t, err)
		require.NoError(t, separated.check(t.Context(), telemetry.Discard()))
		guard := &process.Guard{}
		t.Cleanup(guard.Close)
		r := newRunner(cfg, newVault(cfg.Keyring, nil, telemetry.Discard()), nil, nil, separated, guard)
		for name, form := range forms {
			t.Run(under+"/"+name, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(interpreters[form.runtime][0]); err != nil {
					t.Skip("there is no " + form.runtime)
				}
				pack := filepath.Join(packs, under+name, "actions")
				require.NoError(t, os.MkdirAll(pack, 0o755)) //nolint:gosec // as above
				file := filepath.Join(pack, "run.sh")
				require.NoError(t, os.WriteFile(file, []byte(form.script), 0o644)) //nolint:gosec // as above
				entrypoint, ref := "run.sh", under+name
				row := started{execution{ActionRef: "p.a"}, action{
					Entrypoint: &entrypoint, PackRef: &ref, Runtime: &form.runtime,
					ParameterDelivery: &form.delivery, ParameterFormat: &form.format,
					ParamSchema: []byte(`{"name": {}}`),
				}}
				if form.delivery == "" {
					entrypoint, row.IsAdhoc = form.script, true
				}
				does, err := r.find(row)
				require.NoError(t, err)
				params := []byte(`{"name":"Ada"}`)
				stdout, stderr := output.NewCapture(1000), output.NewCapture(1000)
				j := &job{row: row, begun: make(chan struct{})}
				rep, _, err := r.process(t.Context(), j, does, params, trusted(row, params),
					r.environment(row, params, 0), stdout, stderr)
				require.NoError(t, err)
				require.True(t, rep.Succeeded, "%s", stderr.Bytes())
				require.Equal(t, "Ada\n", string(stdout.Bytes()), "%s", stderr.Bytes())
			})
		}
	}
}

// What bash runs is one version of a script, although the file is overwritten while it runs.
func TestAnOverwrittenScriptRunsInOneVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "run.sh")
	for name, command := range map[string][]string{
		"Bash": {"bash"}, "WithArguments": {"bash", "-e", "-o", "pipefail"}, "ByEnv": {"/usr/bin/env", "bash"},
	} {
		const first = "echo \"$0 ${BASH_SOURCE[0]} $# $(pwd)\"\nprintf '%s\\n' '#' 'echo second' 'echo second' 'echo second' > \"$0\"\necho first\n"
		require.NoError(t, os.WriteFile(path, []byte(first), 0o600))
		args := launcher{command: command}.file(path)
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, path+" "+path+" 0 "+dir+"\nfirst\n", string(out), name)
	}
	require.Equal(t, []string{"python3", "x.py"}, launcher{command: []string{"python3"}}.file("x.py"))
	require.Equal(t, []string{"bash", "--", "x.sh"}, launcher{command: []string{"bash", "--"}}.file("x.sh"))
	require.Equal(t, []string{"./x"}, launcher{}.file("./x"))
}

// While the worker removes the folder of an execution, a remaining process of its action replaces folders by links. No
// mode of a file outside changes.
func TestRemovalChangesNothingOutside(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	require.NoError(t, os.Chmod(outside, 0o755)) //nolint:gosec // the mode that must stay
	for name, s := range map[string]separation{
		"OwnUser": {temp: t.TempDir()}, "AnotherUser": {temp: t.TempDir(), user: &process.User{UID: 65534, GID: 65534}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, _, err := s.folder()
			require.NoError(t, err)
			done := make(chan struct{})
			var attackers sync.WaitGroup
			for i := range 4 {
				attackers.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-done:
							return
						default:
						}
						for k := range 100 { // folders first, links when they are about to be removed
							path := filepath.Join(folder, strconv.Itoa(i), strconv.Itoa(k))
							if n%2 == 0 {
								_ = os.MkdirAll(path, 0o700) // the worker may have removed anything, here and below
							} else if os.Remove(path) == nil {
								_ = os.Symlink(outside, path)
							}
						}
					}
				})
			}
			for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
				s.removeAll(folder)
				_ = os.MkdirAll(folder, 0o700)
			}
			close(done)
			attackers.Wait()
			s.removeAll(folder)
			require.NoDirExists(t, folder)
			info, err := os.Stat(outside)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
		})
	}
}

// The folder of an execution changes its owner after its files: its user could replace them before.
func TestAFolderIsGivenAwayLast(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("run as root to give files to another user")
	}
	s := separation{temp: t.TempDir(), user: &process.User{UID: 65534, GID: 65534}}
	folder, remove, err := s.folder()
	require.NoError(t, err)
	defer remove()
	for i := range 2000 { // their changes take longer than a tick of the file system's clock
		require.NoError(t, os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), nil, 0o600))
	}
	require.NoError(t, s.own(folder))
	changed := func(path string) time.Time {
		var stat syscall.Stat_t
		if syscall.Lstat(path, &stat) != nil || stat.Uid != s.user.UID {
			return time.Time{}
		}
		return time.Unix(stat.Ctim.Unix())
	}
	last := changed(folder)
	require.False(t, last.IsZero())
	for i := range 2000 {
		if at := changed(filepath.Join(folder, strconv.Itoa(i))); at.IsZero() || at.After(last) {
			require.Fail(t, "a file is not given away before its folder", "%d: %s, folder: %s", i, at, last)
		}
	}
}

// Neither an entry point nor the ref of a pack leads out of the folder of packs.
func TestFilesAreLocatedInTheirPack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, pack := range []string{"packs/mine/actions", "evil/actions"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, pack), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, pack, "run.sh"), nil, 0o600))
	}
	r := &runner{cfg: Config{PacksDir: filepath.Join(dir, "packs")}}
	for pack, entries := range map[string]map[string]string{
		"mine":    {"run.sh": "", "../../../evil/actions/run.sh": "lies outside its pack"},
		"../evil": {"run.sh": "lies outside its pack"},
	} {
		for entrypoint, want := range entries {
			path, err := r.locate(started{action: action{Entrypoint: &entrypoint, PackRef: &pack}})
			if want == "" {
				require.NoError(t, err)
				require.Equal(t, filepath.Join(dir, "packs/mine/actions/run.sh"), path)
			} else {
				require.ErrorContains(t, err, want)
			}
		}
	}
}
