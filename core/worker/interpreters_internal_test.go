package worker

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

// executable writes a shell script and returns its path.
func executable(t *testing.T, dir, name, script string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	WriteExecutable(t, path, "#!/bin/sh\n"+script+"\n")
	return path
}

// search returns a prober that looks for programs in one folder only and waits for slow ones.
func search(t *testing.T, dir string) prober {
	t.Helper()
	p := prober{
		env: []string{"PATH=/usr/bin:/bin", "MARK=yes"}, logger: telemetry.Discard(), wg: &sync.WaitGroup{},
		timeout: time.Minute,
		find: func(name string) (string, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir, name)
			}
			_, err := os.Stat(name)
			return name, err
		},
	}
	t.Cleanup(p.wg.Wait)
	return p
}

func TestVersionsOfInterpreters(t *testing.T) {
	t.Parallel()
	ask := func(want, answer string) string { return `[ "$*" = "` + want + `" ] && ` + answer }
	for name, c := range map[string]struct{ runtime, program, script, want string }{
		"Python":           {"python", "python3", ask("--version", "echo Python 3.11.7"), "3.11.7"},
		"PythonOnStderr":   {"python", "python", ask("--version", "echo Python 2.7.18 >&2"), "2.7.18"},
		"PythonOfAVersion": {"python", "python3.13", ask("--version", "echo Python 3.13.0rc1+"), "3.13.0rc1"},
		"Node":             {"node", "node", ask("--version", "echo v20.20.2"), "20.20.2"},
		"NodeOfDebian": {
			"node", "nodejs", ask("--version", "echo v21.0.0-nightly2023abc"),
			"21.0.0-nightly2023abc",
		},
		"Ruby": {
			"ruby", "ruby",
			ask("--version", "echo 'ruby 3.1.2p20 (2022-04-12 revision 4491bb740a) [x86_64-linux-gnu]'"), "3.1.2",
		},
		"Perl": {
			"perl", "perl",
			ask("--version", "printf '\nThis is perl 5, version 36, subversion 0 (v5.36.0) built for x\n'"), "5.36.0",
		},
		"Go":           {"go", "go", ask("version", "echo go version go1.26.8 linux/amd64"), "1.26.8"},
		"GoPreRelease": {"go", "go", ask("version", "echo go version go1.24rc1 linux/amd64"), "1.24rc1"},
		"Java": {
			"java", "java", ask("-version", `echo 'openjdk version "17.0.15" 2025-04-15' >&2`),
			"17.0.15",
		},
		"JavaWithoutDots": {"java", "java", ask("-version",
			`printf 'Picked up JAVA_TOOL_OPTIONS: -Xmx1.5g\nopenjdk version "21" 2023-09-19\n' >&2`), "21"},
		"R": {
			"r", "Rscript", ask("--version", "echo 'Rscript (R) version 4.2.2 (2022-10-31)' >&2"),
			"4.2.2",
		},
		"Bash": {
			"shell", "bash",
			ask("--version", "echo 'GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)'"), "5.2.15",
		},
		"StdoutGoesFirst": {"node", "node", "echo warning: 1.1 >&2; echo v18.1.0", "18.1.0"},
		"EnvironmentOfRuns": {
			"node", "node", `[ "$MARK $PWD" = "yes /" ] && [ -z "$(cat)" ] && echo v18.1.0`,
			"18.1.0",
		},
		"MoreThanTheBound":   {"node", "node", "echo v18.1.0; head -c 1000000 /dev/zero", "18.1.0"},
		"BeyondTheBound":     {"node", "node", "head -c 5000 /dev/zero; echo v18.1.0", ""},
		"Garbage":            {"node", "node", `printf 'version \377 twenty, 20\n'`, ""},
		"Silent":             {"node", "node", "exit 0", ""},
		"Failing":            {"node", "node", "echo v18.1.0; exit 1", ""},
		"Missing":            {"node", "", "", ""},
		"AnotherProgram":     {"python", "uv", "echo uv 0.9.1", ""},
		"ShellWithoutAnswer": {"shell", "dash", "echo 1.2.3", ""},
		"UnknownRuntime":     {"elixir", "elixir", "echo 1.18.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, command := filepath.Join(dir, c.program), c.program
			if command == "" {
				command = "node"
			} else {
				executable(t, dir, c.program, c.script)
			}
			p := search(t, dir)
			want := []interpreter{{Name: c.runtime, Path: path, Version: c.want}}
			if c.want == "" {
				want = nil
			} else {
				_, err := placement.ParseVersion(c.want)
				require.NoError(t, err)
			}
			require.Equal(t, want,
				p.all(t.Context(), []string{c.runtime, "native"}, map[string][]string{c.runtime: {command, "-flag"}}))
		})
	}
}

func TestInterpretersBehindEnv(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := executable(t, dir, "python3", "echo Python 3.11.7")
	p := search(t, dir)
	p.env = []string{"PATH=" + dir}

	ask, where, err := p.question("python", []string{"/usr/bin/env", "python3", "-u"})
	require.NoError(t, err)
	require.Equal(t, []string{"/usr/bin/env", "python3", "--version"}, ask)
	require.Equal(t, path, where)
	require.Equal(t, []interpreter{{Name: "python", Path: path, Version: "3.11.7"}},
		p.all(t.Context(), []string{"python"}, map[string][]string{"python": {"/usr/bin/env", path}}))

	for _, command := range [][]string{{"env"}, {"env", "-i", "python3"}, {"venv/bin/python3"}, {"sudo", "python3"}} {
		_, _, err := p.question("python", command)
		require.Error(t, err, command)
	}
	_, _, err = p.question("python", []string{"python9"})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// An interpreter that hangs costs the timeout but no version of another one. Neither it nor its children survive.
// On a slow machine the others need a longer timeout, so it is doubled until node has answered and python has started.
func TestAHangingInterpreterDelaysNoOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	executable(t, dir, "python3",
		"trap '' TERM; echo Python 3.11.7; sleep 600 & echo $! $$ >> "+pids+"; wait; sleep 600")
	executable(t, dir, "ruby", "head -c 10000000 /dev/zero; sleep 600")
	executable(t, dir, "node", "echo v20.1.0")
	// A descendant in a session of its own keeps the output open.
	executable(t, dir, "perl", "setsid sleep 5 & sleep 600")
	p := search(t, dir)
	var found []interpreter
	var started []string
	for p.timeout = time.Second; len(found) == 0 || len(started) < 2; p.timeout *= 2 {
		require.Less(t, p.timeout, 2*time.Minute)
		begin := time.Now()
		found = p.all(t.Context(), []string{"perl", "python", "ruby", "node"}, map[string][]string{
			"perl": {"perl"}, "python": {"python3"}, "ruby": {"ruby"}, "node": {"node"},
		})
		require.Less(t, time.Since(begin), p.timeout+time.Minute, "the interpreters run for ten minutes")
		p.wg.Wait()
		text, _ := os.ReadFile(pids) // absent until python has started
		started = strings.Fields(string(text))
	}
	require.Equal(t, []interpreter{{Name: "node", Path: filepath.Join(dir, "node"), Version: "20.1.0"}}, found)
	for _, field := range started {
		pid, err := strconv.Atoi(field)
		require.NoError(t, err)
		testkit.Eventually(t, func() bool { return gone(pid) }, 20*time.Second, "process %d lives", pid)
	}
}

func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ") || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestAMissingInterpreterIsLoggedForDebuggingOnly(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]bool{"debug": true, "info": false} {
		var log strings.Builder
		p := search(t, t.TempDir())
		var err error
		p.logger, err = telemetry.NewLogger(&log, level, "json")
		require.NoError(t, err)
		require.Empty(t, p.all(t.Context(), []string{"node"}, map[string][]string{"node": {"node"}}))
		p.wg.Wait()
		require.Equal(t, want, strings.Contains(log.String(), `"runtime":"node"`), log.String())
	}
}

func TestConfiguredCapabilitiesReplaceDetectedOnes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	path := executable(t, dir, "python3", "touch "+asked+"; echo Python 3.11.7")
	detect := func(capabilities map[string]any) map[string]any {
		cfg := Config{
			Runtimes: []string{"Python3", "python", "native"}, Interpreters: map[string][]string{"python3": {path}},
			Capabilities: capabilities, probeTimeout: time.Minute,
		}.withDefaults()
		var wg sync.WaitGroup
		defer wg.Wait()
		return cfg.capabilities(cfg.detect(t.Context(), slog.New(slog.DiscardHandler), &wg))
	}
	stated, none := map[string]any{"python": []any{"3.9"}}, []any{}

	both := detect(map[string]any{"runtime_versions": stated, "detected_interpreters": none})
	require.Equal(t, stated, both["runtime_versions"])
	require.Equal(t, none, both["detected_interpreters"])
	require.NoFileExists(t, asked, "the answer would not be read")

	found := []interpreter{{Name: "python", Path: path, Version: "3.11.7"}}
	one := detect(map[string]any{"runtime_versions": stated})
	require.Equal(t, stated, one["runtime_versions"])
	require.Equal(t, found, one["detected_interpreters"])

	all := detect(nil)
	require.Equal(t, map[string][]string{"python": {"3.11.7"}}, all["runtime_versions"])
	require.Equal(t, found, all["detected_interpreters"])
}
