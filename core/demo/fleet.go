package demo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long a process may take to drain before it is killed.
const stopTimeout = 20 * time.Second

// fleet is the processes of the demo. They die with it, also when it is
// killed.
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
	expected bool // it is being stopped or was killed on purpose
}

func newFleet(binary, logs string, env []string) *fleet {
	return &fleet{binary: binary, logs: logs, env: append(os.Environ(), env...), processes: make(map[string]*process)}
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

// kill ends a process at once, as a crash would.
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
	names := make([]string, 0, len(f.processes))
	for name := range f.processes {
		names = append(names, name)
	}
	f.mu.Unlock()
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() { f.stop(name) })
	}
	wg.Wait()
}

var errNotStarted = errors.New("the process did not start")

// wait starts the process, reports it, and closes done at its end.
func (p *process) wait(started chan<- error) {
	defer close(p.done)
	err := p.cmd.Start()
	if err != nil {
		err = errors.Join(errNotStarted, err)
	}
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}
}
