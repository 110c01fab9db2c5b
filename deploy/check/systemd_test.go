package check

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/lab/testkit"
)

// exposure is the greatest permitted result of `systemd-analyze security`, of 10. Units below 2 are "OK".
const exposure = 20 // in tenths

// unit has the values of a unit file by key, in their order.
type unit map[string][]string

var units = []string{"attune-executor.service", "attune-worker@.service"}

func readUnit(t *testing.T, name string) unit {
	t.Helper()
	u := unit{}
	for line := range strings.Lines(read(t, "deploy", "systemd", name)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(key, "#") {
			u[key] = append(u[key], value)
		}
	}
	return u
}

// service makes the process of a unit, with the example file in the place of /etc/attune/attune.yaml.
func (u unit) service(t *testing.T, name string, servers map[string]string) process {
	t.Helper()
	seconds, err := strconv.Atoi(u["TimeoutStopSec"][0])
	require.NoError(t, err)
	p := process{
		name: name, argv: strings.Fields(u["ExecStart"][0]), env: map[string]string{},
		replace: map[string]string{
			"/etc/attune/attune.yaml": filepath.Join(root(), "config.example.yaml"), "%H": "host", "%i": "1",
		},
		grace: time.Duration(seconds) * time.Second,
	}
	for _, assignment := range u["Environment"] {
		key, value, _ := strings.Cut(assignment, "=")
		p.env[key] = value
	}
	maps.Copy(p.env, servers)
	return p
}

// TestUnitsStopAfterTheirTimeouts compares TimeoutStopSec with the timeouts of the configuration.
func TestUnitsStopAfterTheirTimeouts(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load(filepath.Join(root(), "config.example.yaml"), nil)
	require.NoError(t, err)
	for name, timeout := range map[string]time.Duration{
		"attune-executor.service": cfg.Executor.ShutdownTimeout,
		"attune-worker@.service":  cfg.Worker.ShutdownTimeout + 15*time.Second, // in which it reports the outcomes
	} {
		require.Greater(t, readUnit(t, name).service(t, name, nil).grace, timeout, name)
	}
}

// TestUnitsLoadTheirConfiguration: the program reads it as the unit names it.
func TestUnitsLoadTheirConfiguration(t *testing.T) {
	t.Parallel()
	for _, name := range units {
		p := readUnit(t, name).service(t, name, nil)
		require.Equal(t, "/usr/bin/attune-executor", p.argv[0])
		p.argv = []string{p.argv[0], "config", "explain", "--changed"}
		out := p.output(t)
		if strings.HasPrefix(name, "attune-worker") {
			require.Regexp(t, `worker.name +host-1 +environment ATTUNE_WORKER_NAME`, out)
		} else {
			require.Contains(t, out, "every key has its default")
		}
	}
}

// TestSystemdAcceptsTheUnits checks mistakes and privileges with systemd-analyze, where it is installed.
func TestSystemdAcceptsTheUnits(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	for _, name := range units {
		// The programs and pages that the units name are those of the package.
		text := strings.ReplaceAll(read(t, "deploy", "systemd", name), "/usr/bin/attune-executor", testkit.Program(t))
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "man:attune-executor(1)", "")), 0o644))
		out, err := exec.CommandContext(t.Context(), analyze, "verify", path).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Empty(t, string(out))
		out, err = exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--no-pager",
			fmt.Sprintf("--threshold=%d", exposure), path).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

// TestUnitsRun migrates, then starts and stops the services of the units.
func TestUnitsRun(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "run the services of systemd")
	servers := servers(t)
	engine := readUnit(t, units[0]).service(t, units[0], servers)
	address := "127.0.0.1:" + port(t)
	engine.env["ATTUNE__EXECUTOR__HTTP__LISTEN"] = address // the default may be taken on this machine
	migrate := engine
	migrate.argv = []string{engine.argv[0], "migrate", "up"}
	migrate.output(t)
	engine.health = []string{engine.argv[0], "health"}
	worker := readUnit(t, units[1]).service(t, units[1], servers)
	worker.env["ATTUNE__EXECUTOR__HTTP__LISTEN"] = address
	run := worker
	run.argv = []string{engine.argv[0], "run", "core.echo", "-p", "message=hi", "--wait"}
	all := []*started{engine.start(t), worker.start(t)}
	all[0].healthy(t)
	testkit.Eventually(t, func() bool {
		out, _ := worker.command(t.Context(), t, slices.Concat(run.argv[:1], []string{"workers", "list"})).Output()
		return strings.Contains(string(out), "host-1")
	}, time.Minute, "the worker does not register")
	require.Contains(t, run.output(t), "hi")
	stop(t, all...)
}
