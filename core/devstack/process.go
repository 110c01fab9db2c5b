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

// child describes one server process to be started.
type child struct {
	name    string
	path    string
	args    []string // args[0] included: it need not be the path
	env     []string
	dir     string
	log     string
	as      *account
	onDeath syscall.Signal // what the server gets when an attached parent dies
}

// launcher starts children. The operating system ties an attached child's
// life to the thread that forked it, so all are forked on one thread that lives
// until the last of them has ended.
type launcher struct {
	detached bool

	mu       sync.Mutex
	work     chan func() // guarded by mu; nil while there is no forking thread
	children int         // guarded by mu; attached children that were not reaped
	wg       sync.WaitGroup
}

func newLauncher(detached bool) *launcher { return &launcher{detached: detached} }

// start forks c and returns its pid.
func (l *launcher) start(c child) (int, error) {
	if l.detached {
		cmd, err := fork(c, true)
		if err != nil {
			return 0, err
		}
		pid := cmd.Process.Pid
		_ = cmd.Process.Release() // it is not ours to wait for
		return pid, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.work == nil {
		work := make(chan func())
		l.work = work
		l.wg.Go(func() { forkingThread(work) })
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
		return 0, err
	}
	l.children++
	l.wg.Go(func() { l.reap(cmd) })
	return cmd.Process.Pid, nil
}

func (l *launcher) reap(cmd *exec.Cmd) {
	_ = cmd.Wait() // how it ended is in the server's log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.children--
	l.endIfIdle()
}

// endIfIdle ends the forking thread when nothing depends on it; mu is held.
func (l *launcher) endIfIdle() {
	if l.children == 0 && l.work != nil {
		close(l.work)
		l.work = nil
	}
}

func forkingThread(work <-chan func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for job := range work {
		job()
	}
}

// wait returns when every attached child has been reaped; they must have been
// stopped.
func (l *launcher) wait() { l.wg.Wait() }

func fork(c child, detached bool) (*exec.Cmd, error) {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
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

// alive reports whether pid is a running process whose command line holds the
// mark. A zombie has no command line, and a number that was given to another
// process does not hold the mark.
func alive(pid int, mark string) bool {
	return pid > 0 && strings.Contains(commandLine(pid), mark)
}

// signal sends sig to pid when it is still the process that holds the mark.
func signal(pid int, mark string, sig syscall.Signal) error {
	if !alive(pid, mark) {
		return nil
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", sig, pid, err)
	}
	return nil
}

// stop sends sig, waits, and kills what has not gone when patience ends.
func stop(ctx context.Context, pid int, mark string, sig syscall.Signal, patience time.Duration) error {
	if err := signal(pid, mark, sig); err != nil {
		return err
	}
	gone := func() (bool, error) { return !alive(pid, mark), nil }
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if poll(patient, 10*time.Millisecond, gone) == nil {
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
