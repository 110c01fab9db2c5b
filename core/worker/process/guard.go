package process

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// guardScript collects groups and kills them when its input ends. The kernel ends the input when the writing process
// dies.
const guardScript = `groups=" "
while read -r act group; do
	case $act in
	watch) groups="$groups$group " ;;
	forget) groups="${groups%% $group *} ${groups#* $group }" ;;
	esac
done
for group in $groups; do kill -9 "-$group" 2>/dev/null; done
exit 0`

// Guard kills the groups of running children when this process dies, even by SIGKILL. It is a shell in a group of its
// own, with the rights of this process and an empty environment. A killed shell is replaced with the next child; until
// then children are not guarded. The zero value is ready for use, and a nil Guard does nothing. It is safe for
// concurrent use.
type Guard struct {
	mu     sync.Mutex
	groups map[int]bool // guarded by mu
	shell  *exec.Cmd    // guarded by mu
	orders *os.File     // guarded by mu
	closed bool         // guarded by mu
}

// guardTimeout bounds the wait for a guard that does not read.
const guardTimeout = time.Second

// ready starts the shell if none runs, so that watch follows the start of a child at once: a child whose parent dies in
// between is not guarded.
func (g *Guard) ready() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.orders != nil {
		return nil
	}
	return g.restart()
}

// watch guards a group. It fails if no guard can be started.
func (g *Guard) watch(group int) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.groups == nil {
		g.groups = map[int]bool{}
	}
	g.groups[group] = true
	if g.orders != nil && g.send("watch", group) == nil {
		return nil
	}
	return g.restart()
}

// forget is the opposite of watch. It must come before the kernel can reuse the number.
func (g *Guard) forget(group int) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, group)
	if g.orders != nil && g.send("forget", group) != nil {
		_ = g.restart() // the next child tries again
	}
}

// Close ends the guard. Groups that still run are killed.
func (g *Guard) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.end()
}

func (g *Guard) send(act string, group int) error {
	_ = g.orders.SetWriteDeadline(time.Now().Add(guardTimeout)) // pipes have deadlines
	_, err := fmt.Fprintf(g.orders, "%s %d\n", act, group)
	return err
}

// restart replaces the shell. The old one is killed before its input ends, or it would kill the groups.
func (g *Guard) restart() error {
	if g.shell != nil {
		_ = g.shell.Process.Kill()
	}
	g.end()
	if g.closed {
		return fmt.Errorf("guard processes: %w", os.ErrClosed)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("guard processes: %w", err)
	}
	shell := exec.Command("/bin/sh", "-c", guardScript, "attune-guard") //nolint:noctx // it ends with its input
	shell.Stdin, shell.Dir, shell.Env = read, "/", []string{}
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals to our group are not for it
	err = shell.Start()
	_ = read.Close()
	if err != nil {
		_ = write.Close()
		return fmt.Errorf("guard processes: %w", err)
	}
	g.shell, g.orders = shell, write
	for group := range g.groups {
		if err := g.send("watch", group); err != nil {
			return fmt.Errorf("guard processes: %w", err)
		}
	}
	return nil
}

// end closes the guard's input and waits for it.
func (g *Guard) end() {
	if g.shell == nil {
		return
	}
	_ = g.orders.Close()
	_ = g.shell.Wait() // how it ended does not matter
	g.shell, g.orders = nil, nil
}
