package process

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-go/attune/core/phrase"
)

// GraceDefault is the time between SIGTERM and SIGKILL.
const GraceDefault = 5 * time.Second

// drainLimit bounds the wait for output after the group was killed. Only a descendant outside the group can hold the
// output open longer.
const drainLimit = 2 * time.Second

// Command configures a child.
type Command struct {
	// Args are the program and its arguments. Required.
	Args []string
	// Dir is the working folder; that of this process if empty.
	Dir string
	// Env is the complete environment of the child.
	Env []string
	// Grace is the time between SIGTERM and SIGKILL. GraceDefault if zero.
	Grace time.Duration
	// Guard kills the child's group if this process dies. With nil the descendants of the child continue then; on Linux
	// the child itself dies in any case.
	Guard *Guard
	// Limits bound the child.
	Limits Limits
	// Started is called when the child exists; nil is none. An error of Run without a call means that nothing ran.
	Started func()
	// Stderr receives standard error; nil discards it.
	Stderr io.Writer
	// Stdin is the input of the child; nil is an empty input.
	Stdin io.Reader
	// Stdout receives standard output; nil discards it.
	Stdout io.Writer
	// User is the user of the child; that of this process if nil. Another one needs root, or the capabilities to change
	// the user and to signal its processes.
	User *User
}

// Outcome is the end of a child.
type Outcome struct {
	// ExitCode is that of the child, or 128 plus the number of the signal that ended it.
	ExitCode int
	// Signal is the signal that ended the child, zero if it exited.
	Signal syscall.Signal
	// OutOfMemory counts the processes that the kernel killed meanwhile for want of memory, in the control group of
	// this process; 0 if unknown.
	OutOfMemory int
	// Interrupted is the cause of the context's end, if the context ended before the child.
	Interrupted error
	// Killed says that the grace period passed and SIGKILL was sent.
	Killed bool
}

// Run starts the child and returns when it and its group have ended.
func Run(ctx context.Context, command Command) (Outcome, error) {
	if len(command.Args) == 0 {
		return Outcome{}, errors.New("start process: no program given")
	}
	if ctx.Err() != nil {
		return Outcome{ExitCode: -1, Interrupted: context.Cause(ctx)}, nil
	}
	cmd, err := command.prepare()
	if err != nil {
		return Outcome{}, fmt.Errorf("start %s: %w", command.Args[0], err)
	}
	if err := command.Guard.ready(); err != nil {
		return Outcome{}, fmt.Errorf("start %s: %w", command.Args[0], err)
	}
	streams, err := attach(cmd, command)
	if err != nil {
		return Outcome{}, fmt.Errorf("start %s: %w", command.Args[0], err)
	}
	killed := oomKills()
	if err := cmd.Start(); err != nil {
		streams.abort()
		return Outcome{}, fmt.Errorf("start %s: %w", command.Args[0], err)
	}
	if command.Started != nil {
		command.Started()
	}
	streams.started()
	defer command.Guard.forget(cmd.Process.Pid)
	if err := command.Guard.watch(cmd.Process.Pid); err != nil {
		signalGroup(cmd.Process.Pid, syscall.SIGKILL)
		_, _ = cmd.Process.Wait() // it was killed
		streams.finish()
		return Outcome{}, fmt.Errorf("start %s: %w", command.Args[0], err)
	}

	exited := make(chan *os.ProcessState, 1)
	go func() {
		state, _ := cmd.Process.Wait() // fails only if already waited for
		exited <- state
	}()
	state, outcome := supervise(ctx, cmd.Process.Pid, cmp.Or(command.Grace, GraceDefault), exited)
	signalGroup(cmd.Process.Pid, syscall.SIGKILL)
	streams.finish()
	outcome.ExitCode, outcome.Signal = exitOf(state)
	if outcome.ExitCode == 128+int(syscall.SIGKILL) {
		outcome.OutOfMemory = max(oomKills()-killed, 0)
	}
	return outcome, nil
}

func (c Command) prepare() (*exec.Cmd, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...) //nolint:noctx // the group is signalled, not only the child
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	if wrapped := c.Limits.wrap(cmd.Path, c.Args[1:]); wrapped != nil {
		cmd = exec.Command(wrapped[0], wrapped[1:]...) //nolint:noctx // as above
	}
	cmd.Dir, cmd.Env = c.Dir, c.Env
	cmd.SysProcAttr = attributes()
	cmd.SysProcAttr.Credential = c.User.credential()
	return cmd, nil
}

// Check starts the command and fails unless this process may signal it and it exits with 0. The command must end when
// its input ends.
func (c Command) Check() error {
	cmd, err := c.prepare()
	if err != nil {
		return err
	}
	read, input := io.Pipe()
	var printed bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = read, nil, &printed
	streams, err := attach(cmd, c)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		streams.abort()
		return err
	}
	streams.started()
	signalled := syscall.Kill(-cmd.Process.Pid, 0)
	_ = input.Close()
	err = cmd.Wait()
	streams.finish()
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(printed.Bytes()))
	}
	if signalled != nil {
		return fmt.Errorf("signal a process of another user: %w", signalled)
	}
	return nil
}

// supervise waits for the child. When the context ends, it stops and then kills its group.
func supervise(ctx context.Context, pid int, grace time.Duration,
	exited <-chan *os.ProcessState,
) (*os.ProcessState, Outcome) {
	select {
	case state := <-exited:
		return state, Outcome{}
	case <-ctx.Done():
	}
	outcome := Outcome{Interrupted: context.Cause(ctx)}
	signalGroup(pid, syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case state := <-exited:
		return state, outcome
	case <-timer.C:
	}
	outcome.Killed = true
	signalGroup(pid, syscall.SIGKILL)
	return <-exited, outcome
}

// signalGroup signals every process of the group that the child leads. The number cannot name
// another group: the kernel does not reuse it while one member lives. Without members the signal
// has no target, unless all process numbers were used up since the child ended.
func signalGroup(pid int, signal syscall.Signal) {
	_ = syscall.Kill(-pid, signal) // an error means an empty group
}

// Death says by which signal the child was killed, or one of its programs, if its exit code says so as shells do; empty
// if none was.
func (o Outcome) Death() string {
	text, signal := "killed by ", o.Signal
	if signal == 0 && slices.Contains(deadly, syscall.Signal(o.ExitCode-128)) {
		text, signal = "a program of it was killed by ", syscall.Signal(o.ExitCode-128)
	}
	switch {
	case signal == 0:
		return ""
	case signal == syscall.SIGKILL && o.OutOfMemory > 0:
		return text + "SIGKILL: out of memory, the kernel killed " +
			phrase.Plural(o.OutOfMemory, "process", "processes") + " of the worker's cgroup"
	case signal == syscall.SIGKILL:
		return text + "SIGKILL, often for want of memory"
	}
	return text + cmp.Or(unix.SignalName(signal), "signal "+strconv.Itoa(int(signal)))
}

// deadly are the signals that a shell reports with the exit code 128 plus their number.
var deadly = []syscall.Signal{
	syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGTERM, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGILL, syscall.SIGFPE,
}

func exitOf(state *os.ProcessState) (int, syscall.Signal) {
	if state == nil {
		return -1, 0
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), status.Signal()
	}
	return state.ExitCode(), 0
}
