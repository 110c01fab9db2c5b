package check

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// root is the folder of the project.
var root = sync.OnceValue(func() string {
	path, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		panic(err)
	}
	return path
})

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root()}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// servers are the addresses of a database without tables and of a virtual host.
func servers(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"ATTUNE__DATABASE__URL":                 testkit.EmptyDatabase(t),
		"ATTUNE__DATABASE__MAX_CONNECTIONS":     fmt.Sprint(testkit.EngineConnections),
		"ATTUNE__MESSAGE_QUEUE__URL":            testkit.VHost(t),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL": testkit.ManagementURL(t),
	}
}

// port returns a free port below the range of outgoing connections.
func port(t *testing.T) string {
	t.Helper()
	for range 100 {
		number := fmt.Sprint(20000 + rand.IntN(12000))
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ":"+number)
		if err == nil {
			require.NoError(t, listener.Close())
			return number
		}
	}
	t.Fatal("no port is free")
	return ""
}

// process is a command of a container or unit: its arguments as they stand, in a file system and an environment of the
// test.
type process struct {
	name string
	argv []string
	env  map[string]string
	// replace replaces paths and ports in the arguments, the environment and the configuration.
	replace map[string]string
	health  []string
	grace   time.Duration
}

// replaced replaces paths and ports in a text, the longest first.
func (p process) replaced(text string) string {
	var pairs []string
	for _, key := range slices.SortedFunc(maps.Keys(p.replace), func(a, b string) int { return len(b) - len(a) }) {
		pairs = append(pairs, key, p.replace[key])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// command makes the process of some arguments. It runs the programs that make has built.
func (p process) command(ctx context.Context, t *testing.T, argv []string) *exec.Cmd {
	t.Helper()
	argv = slices.Clone(argv)
	if argv[0] == "/usr/bin/tini" { // images have it, this machine may not
		require.Equal(t, "--", argv[1])
		argv = argv[2:]
	}
	for i := range argv {
		argv[i] = p.replaced(argv[i])
	}
	program, dir := argv[0], filepath.Dir(testkit.Program(t))
	if name := filepath.Base(program); strings.HasPrefix(name, "attune-") {
		require.Contains(t, []string{name, "/usr/bin/" + name}, program)
		program = filepath.Join(dir, name)
		if name == "attune-tui" {
			program = filepath.Join(root(), "bin", name)
		}
	}
	cmd := exec.CommandContext(ctx, program, argv[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + cmd.Dir}
	for key, value := range p.env {
		cmd.Env = append(cmd.Env, key+"="+p.replaced(value))
	}
	return cmd
}

// output runs the process to its end.
func (p process) output(t *testing.T) string {
	t.Helper()
	out, err := p.command(testkit.Context(t), t, p.argv).CombinedOutput()
	require.NoError(t, err, "%s: %s", p.name, out)
	return string(out)
}

// started is a running process.
type started struct {
	process
	cmd   *exec.Cmd
	log   *log
	ended time.Time // set before done
	done  chan error
}

// start starts the process and stops it at the end of the test, unless stop has.
func (p process) start(t *testing.T) *started {
	t.Helper()
	s := &started{process: p, log: &log{}, done: make(chan error, 1)}
	s.cmd = p.command(context.WithoutCancel(t.Context()), t, p.argv)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	require.NoError(t, s.cmd.Start(), p.name)
	go func() {
		err := s.cmd.Wait()
		s.ended = time.Now()
		s.done <- err
	}()
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			<-s.done //nolint:errcheck // it was killed
		}
		if t.Failed() {
			t.Logf("%s:\n%s", p.name, s.log)
		}
	})
	return s
}

// healthy waits until the health command succeeds.
func (s *started) healthy(t *testing.T) {
	t.Helper()
	require.NotEmpty(t, s.health, s.name)
	testkit.Eventually(t, func() bool {
		select {
		case err := <-s.done:
			s.done <- err
			require.Fail(t, "the process has ended", "%s: %v\n%s", s.name, err, s.log)
		default:
		}
		return s.command(testkit.Context(t), t, s.health).Run() == nil
	}, time.Minute, "%s is not healthy", s.name)
}

// pause is how long this process may be paused without stop blaming the processes that it stops.
const pause = 10 * time.Second

// stop ends the processes as their containers or units do, all at once, and fails if one takes longer than its grace
// period.
func stop(t *testing.T, all ...*started) {
	t.Helper()
	began := time.Now()
	for _, s := range all {
		require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, s := range all {
		select {
		case err := <-s.done:
			require.NoError(t, err, "%s: %s", s.name, s.log)
			require.LessOrEqual(t, s.ended.Sub(began), s.grace+pause, "%s: %s", s.name, s.log)
		case <-time.After(s.grace + pause): // others may have taken their time before
			require.Fail(t, "the process still runs after its grace period", "%s: %s", s.name, s.log)
		}
		if s.health != nil {
			require.Error(t, s.command(testkit.Context(t), t, s.health).Run(), "%s has ended and is healthy", s.name)
		}
	}
}

// log collects the output of a process.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is the output so far.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
