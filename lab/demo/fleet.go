package demo

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/attune-go/attune/lab/devstack"
)

// stopTimeout is how long a process may take to drain before it is killed.
const stopTimeout = 20 * time.Second

// fleet is the processes of the demo, which end with it.
type fleet struct {
	binary, logs string
	env          []string
	launcher     devstack.Launcher

	mu        sync.Mutex
	processes map[string]*process
}

type process struct {
	*devstack.Process
	args     []string
	expected bool // it was stopped or killed on purpose
}

func (f *fleet) log(name string) string { return filepath.Join(f.logs, name+".log") }

// start starts a process under a name; its output goes to a file of that name.
func (f *fleet) start(name string, args ...string) error {
	started, err := f.launcher.Start(name, f.binary, append(args, "--log-format", "text"), f.env, f.log(name))
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes[name] = &process{Process: started, args: args}
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
	_ = p.Signal(signal) // it may have ended already
	select {
	case <-p.Ended:
	case <-time.After(stopTimeout):
		_ = p.Kill()
		<-p.Ended
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
		case <-p.Ended:
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
		case <-p.Ended:
			if !p.expected {
				return fmt.Errorf("%s ended by itself (%s); see %s", name, p.State, f.log(name))
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
