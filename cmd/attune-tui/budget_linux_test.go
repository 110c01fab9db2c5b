package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/attune-go/attune/lab/testkit"
)

// The budgets of the program on two idle cores. A test shares them, so it allows tolerance times as much, and takes
// the fastest of several tries. Memory has no tolerance.
const (
	frameBudget = 200 * time.Millisecond // until the first frame with both servers up
	downBudget  = 300 * time.Millisecond // until the first frame with both servers down
	keyBudget   = 16 * time.Millisecond  // until a key press shows
	idleBudget  = 0.01                   // of a core while no key is pressed
	memory      = 40 << 20               // resident
	tolerance   = 5
)

// TestTheProgramKeepsItsBudgets measures the released program, not the one with the race detector.
func TestTheProgramKeepsItsBudgets(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "attune-tui")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	address := testkit.Database(t)
	testkit.Worker(t, testkit.OpenStore(t, address), "worker-a",
		func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	database, through1 := through(t, address)
	broker, through2 := through(t, testkit.ManagementURL(t))
	database.mend()
	broker.mend()
	up := []string{
		"ATTUNE__DATABASE__URL=" + through1, "ATTUNE__MESSAGE_QUEUE__URL=" + testkit.VHost(t),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + through2,
	}

	var down, first, full []time.Duration
	for range 3 {
		p := launch(t, program, noServers)
		down = append(down, p.shows("ATTUNE"))
		p.kill()
		p = launch(t, program, up)
		first, full = append(first, p.shows("ATTUNE")), append(full, p.shows("MQ ●"))
		p.kill()
	}
	p := launch(t, program, up, "--view", "workers")
	p.shows("worker-a")
	p.shows("MQ ●")
	idle := p.idle(4 * time.Second)
	database.clog()
	broker.clog()
	var keys []time.Duration
	for i := range 20 {
		time.Sleep(time.Duration(30+7*i) * time.Millisecond) // as people type: not at the rhythm of the frames
		keys = append(keys, p.press("p", []string{"FROZEN", "poll 2s"}[i%2]))
	}
	slices.Sort(keys)
	resident := p.resident()
	t.Logf(
		"first frame %s, with both servers down %s, with their data %s; a key %s, the median %s; idle %.2f %% of a core; "+
			"%.1f MB", fastest(first), fastest(down), fastest(full), keys[0], keys[len(keys)/2], 100*idle,
		float64(resident)/(1<<20))
	require.Less(t, fastest(first), tolerance*frameBudget)
	require.Less(t, fastest(down), tolerance*downBudget)
	require.Less(t, fastest(keys), tolerance*keyBudget, "a key waits for a poll that is stuck")
	require.Less(t, idle, tolerance*idleBudget)
	require.Less(t, resident, int64(memory))
}

func fastest(list []time.Duration) time.Duration {
	least := list[0]
	for _, d := range list {
		least = min(least, d)
	}
	return least
}

// dashboard is the program on a terminal that answers nothing.
type dashboard struct {
	t     *testing.T
	cmd   *exec.Cmd
	begun time.Time
	keys  *os.File // the operator's end of the terminal

	mu     sync.Mutex
	output bytes.Buffer // guarded by mu
	read   sync.WaitGroup
}

// launch starts the program on a terminal of 140×40.
func launch(t *testing.T, program string, environ []string, args ...string) *dashboard {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("this machine makes no terminals")
	}
	fd := int(keys.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 140}))
	screen, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	p := &dashboard{t: t, keys: keys, begun: time.Now()}
	p.cmd = exec.Command(program, args...) //nolint:noctx // It is killed at the end.
	// Without colours texts are drawn in one piece.
	p.cmd.Env = append([]string{"HOME=/nonexistent", "TERM=xterm-256color", "NO_COLOR=1"}, environ...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = screen, screen, screen
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, p.cmd.Start())
	require.NoError(t, screen.Close())
	p.read.Go(p.watch)
	t.Cleanup(p.kill)
	return p
}

// watch reads the output of the program until it ends.
func (p *dashboard) watch() {
	part := make([]byte, 64<<10)
	for {
		n, err := p.keys.Read(part)
		p.mu.Lock()
		p.output.Write(part[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// kill ends the program. It may be called again.
func (p *dashboard) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	p.awaitExit()
}

// awaitExit waits until the program ends.
func (p *dashboard) awaitExit() {
	p.t.Helper()
	stuck := time.AfterFunc(wait, func() {
		p.t.Error("the program does not end")
		_ = p.cmd.Process.Kill()
	})
	defer stuck.Stop()
	_ = p.cmd.Wait() // its state has the outcome
	p.read.Wait()
	_ = p.keys.Close() // the terminal is gone
}

// shows waits until the program draws a text, and returns the time since its start.
func (p *dashboard) shows(text string) time.Duration {
	p.t.Helper()
	return p.sees(0, text, p.begun)
}

// press types a key and returns the time until a text is drawn.
func (p *dashboard) press(key, text string) time.Duration {
	p.t.Helper()
	p.mu.Lock()
	from := p.output.Len()
	p.mu.Unlock()
	begun := time.Now()
	_, err := p.keys.WriteString(key)
	require.NoError(p.t, err)
	return p.sees(from, text, begun)
}

func (p *dashboard) sees(from int, text string, since time.Time) time.Duration {
	p.t.Helper()
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		p.mu.Lock()
		there := bytes.Contains(p.output.Bytes()[from:], []byte(text))
		p.mu.Unlock()
		if there {
			return time.Since(since)
		}
	}
	require.Fail(p.t, "the program has not drawn "+text)
	return 0
}

// idle returns the share of a core that the idle program uses.
func (p *dashboard) idle(lasts time.Duration) float64 {
	p.t.Helper()
	before := p.spent()
	time.Sleep(lasts)
	return float64(p.spent()-before) / float64(lasts)
}

// spent returns the CPU time of the program.
func (p *dashboard) spent() (total time.Duration) {
	p.t.Helper()
	tasks, err := filepath.Glob(p.proc("task/*/schedstat"))
	require.NoError(p.t, err)
	for _, task := range tasks {
		raw, _ := os.ReadFile(filepath.Clean(task)) // a thread may end meanwhile
		first, _, _ := strings.Cut(string(raw), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		total += time.Duration(n)
	}
	return total
}

// resident is how much memory the program takes.
func (p *dashboard) resident() int64 {
	p.t.Helper()
	raw, err := os.ReadFile(p.proc("statm"))
	require.NoError(p.t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	require.NoError(p.t, err)
	return pages * int64(os.Getpagesize())
}

func (p *dashboard) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), name)
}
