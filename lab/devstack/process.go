package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child describes a server process to start.
type child struct {
	name    string
	path    string
	args    []string // args[0] included: it need not be the path
	env     []string
	dir     string
	log     string
	as      *account
	onDeath syscall.Signal // of an attached server when its parent dies
}

// Process is a started program.
type Process struct {
	*os.Process
	Ended chan struct{} // closed at its end, if it is attached
	State *os.ProcessState
}

// Launcher starts programs that end with this process, on Linux also when it is killed. The operating system ends an
// attached child with the thread that forked it, so one thread forks all of them and lives until the last has ended.
type Launcher struct {
	detached bool

	mu       sync.Mutex
	work     chan func() // guarded by mu; nil without a forking thread
	children int         // guarded by mu; attached children before their end
	wg       sync.WaitGroup
}

// Start starts a program whose output goes to a file.
func (l *Launcher) Start(name, path string, args, env []string, log string) (*Process, error) {
	return l.start(child{
		name: name, path: path, args: append([]string{path}, args...), env: env, log: log, onDeath: syscall.SIGKILL,
	})
}

func (l *Launcher) start(c child) (*Process, error) {
	if l.detached { // it outlives this process
		cmd, err := fork(c, true)
		if err != nil {
			return nil, err
		}
		return &Process{Process: cmd.Process}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.work == nil {
		work := make(chan func())
		l.work = work
		l.wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for job := range work {
				job()
			}
		})
	}
	var cmd *exec.Cmd
	var err error
	done := make(chan struct{})
	l.work <- func() {
		defer close(done)
		cmd, err = fork(c, false)
	}
	<-done
	if err != nil {
		l.endIfIdle()
		return nil, err
	}
	l.children++
	p := &Process{Process: cmd.Process, Ended: make(chan struct{})}
	l.wg.Go(func() {
		_ = cmd.Wait() // its log has the reason of its end
		p.State = cmd.ProcessState
		close(p.Ended)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.children--
		l.endIfIdle()
	})
	return p, nil
}

// endIfIdle ends the forking thread after its last child; the caller holds mu.
func (l *Launcher) endIfIdle() {
	if l.children == 0 && l.work != nil {
		close(l.work)
		l.work = nil
	}
}

func fork(c child, detached bool) (*exec.Cmd, error) {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", c.name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	cmd := &exec.Cmd{
		Path: c.path, Args: c.args, Env: c.env, Dir: c.dir,
		Stdout: log, Stderr: log,
		SysProcAttr: processAttributes(c, detached),
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	return cmd, nil
}

// alive reports whether pid is a running process with the mark in its command line. A zombie has no command
// line, and a process with a reused number has no mark.
func alive(pid int, mark string) bool {
	return pid > 0 && strings.Contains(commandLine(pid), mark)
}

// signal sends sig to pid if it still is the process with the mark.
func signal(pid int, mark string, sig syscall.Signal) error {
	if !alive(pid, mark) {
		return nil
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", sig, pid, err)
	}
	return nil
}

// stop sends sig, and kills the process if it runs after the timeout.
func stop(ctx context.Context, pid int, mark string, sig syscall.Signal, timeout time.Duration) error {
	if err := signal(pid, mark, sig); err != nil {
		return err
	}
	gone := func() (bool, error) { return !alive(pid, mark), nil }
	first, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if poll(first, 10*time.Millisecond, gone) == nil {
		return nil
	}
	if err := signal(pid, mark, syscall.SIGKILL); err != nil {
		return err
	}
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancelLast()
	if err := poll(last, 10*time.Millisecond, gone); err != nil {
		return fmt.Errorf("process %d does not end: %w", pid, err)
	}
	return nil
}
