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
// until close.
type launcher struct {
	detached bool

	mu   sync.Mutex
	work chan func() // guarded by mu; nil while there is no forking thread
	wg   sync.WaitGroup
}

func newLauncher(detached bool) *launcher { return &launcher{detached: detached} }

// start forks c and returns its pid.
func (l *launcher) start(c child) (pid int, err error) {
	if l.detached {
		return l.fork(c)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.work == nil {
		l.work = make(chan func())
		l.wg.Go(func() { forkingThread(l.work) })
	}
	done := make(chan struct{})
	l.work <- func() {
		defer close(done)
		pid, err = l.fork(c)
	}
	<-done
	return pid, err
}

func forkingThread(work <-chan func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for job := range work {
		job()
	}
}

// close ends the forking thread and waits for the children, which must have
// been stopped. A later start begins anew.
func (l *launcher) close() {
	l.mu.Lock()
	if l.work != nil {
		close(l.work)
		l.work = nil
	}
	l.mu.Unlock()
	l.wg.Wait()
}

func (l *launcher) fork(c child) (int, error) {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return 0, fmt.Errorf("open the log of %s: %w", c.name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	cmd := &exec.Cmd{
		Path: c.path, Args: c.args, Env: c.env, Dir: c.dir,
		Stdout: log, Stderr: log,
		SysProcAttr: processAttributes(c, l.detached),
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", c.name, err)
	}
	pid := cmd.Process.Pid
	if l.detached {
		_ = cmd.Process.Release() // it is not ours to wait for
		return pid, nil
	}
	l.wg.Go(func() { _ = cmd.Wait() }) // reaps; how it ended is in the server's log
	return pid, nil
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
