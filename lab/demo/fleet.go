package demo

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long a process may take to drain before it is killed.
const stopTimeout = 20 * time.Second

// fleet is the processes of the demo. They end with it, on Linux also when it is killed.
type fleet struct {
	binary, logs string
	env          []string

	mu        sync.Mutex
	processes map[string]*process
}

type process struct {
	cmd      *exec.Cmd
	args     []string
	done     chan struct{}
	expected bool // it was stopped or killed on purpose
}

// start starts a process under a name; its output goes to a file of that name.
func (f *fleet) start(name string, args ...string) error {
	path := filepath.Join(f.logs, name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer log.Close() //nolint:errcheck // the child has its own descriptor
	cmd := exec.Command(f.binary, append(args, "--log-format", "text")...)
	cmd.Env, cmd.Stdout, cmd.Stderr = f.env, log, log
	cmd.SysProcAttr = dieWithParent()
	p := &process{cmd: cmd, args: args, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes[name] = p
	return nil
}

// kill ends a process at once, as a crash does.
func (f *fleet) kill(name string) { f.signal(name, syscall.SIGKILL) }

// stop asks a process to drain and waits for it.
func (f *fleet) stop(name string) { f.signal(name, syscall.SIGTERM) }

func (f *fleet) signal(name string, signal syscall.Signal) {
	f.mu.Lock()
	p := f.processes[name]
	if p != nil {
		p.expected = true
	}
	f.mu.Unlock()
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(signal) // it may have ended already
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// restart starts a stopped process again with the arguments it had.
func (f *fleet) restart(name string) error {
	f.mu.Lock()
	args := f.processes[name].args
	f.mu.Unlock()
	return f.start(name, args...)
}

// restartDead restarts the processes that have ended.
func (f *fleet) restartDead() (err error) {
	f.mu.Lock()
	processes := maps.Clone(f.processes)
	f.mu.Unlock()
	for name, p := range processes {
		select {
		case <-p.done:
			err = errors.Join(err, f.restart(name))
		default:
		}
	}
	return err
}

// exited returns an error that names a process that ended by itself.
func (f *fleet) exited() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, p := range f.processes {
		select {
		case <-p.done:
			if !p.expected {
				return fmt.Errorf("%s ended by itself (%s); see %s", name, p.cmd.ProcessState,
					filepath.Join(f.logs, name+".log"))
			}
		default:
		}
	}
	return nil
}

// stopAll drains every process, all at the same time.
func (f *fleet) stopAll() {
	f.mu.Lock()
	names := slices.Collect(maps.Keys(f.processes))
	f.mu.Unlock()
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() { f.stop(name) })
	}
	wg.Wait()
}

// wait starts the process, reports it, and closes done at its end.
func (p *process) wait(started chan<- error) {
	defer close(p.done)
	err := p.cmd.Start()
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}
}
