package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Stack is one private PostgreSQL and one private RabbitMQ. It is safe for concurrent use.
type Stack struct {
	cfg   Config
	place place
	as    *account
	bins  binaries

	launch   *Launcher
	password string // of both servers

	mu    sync.Mutex
	state state // guarded by mu
}

// Up starts the servers of the stack in cfg.Dir, or attaches to the running ones, and returns when
// both accept connections. Both start at the same time. A missing server is a *MissingError.
func Up(ctx context.Context, cfg Config) (*Stack, error) {
	s, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if s.bins, err = findBinaries(ctx); err != nil {
		return nil, err
	}
	unlock, err := lockDir(ctx, s.place.dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if s.state, err = loadState(s.place.dir); err != nil && !errors.Is(err, ErrNoStack) {
		return nil, err
	}
	if s.password, err = ensurePassword(s.place.dir); err != nil {
		return nil, err
	}
	s.applyConfig()
	if err := s.choosePorts(); err != nil {
		return nil, err
	}
	if err := s.startAll(ctx); err != nil {
		return nil, fmt.Errorf("start the stack in %s: %w", s.place.dir, err)
	}
	return s, s.publish()
}

// With starts a stack, calls do, and removes the stack with its data.
func With(ctx context.Context, cfg Config, do func(*Stack) error) (err error) {
	stack, err := Up(ctx, cfg)
	if err != nil {
		return fmt.Errorf("start the servers: %w", err)
	}
	defer func() { err = errors.Join(err, stack.Reset(context.WithoutCancel(ctx))) }()
	return do(stack)
}

// Attach finds the stack in cfg.Dir, running or not, without starting a server. Without a stack it returns
// ErrNoStack.
func Attach(ctx context.Context, cfg Config) (*Stack, error) {
	if nothingAt(cfg.Dir) { // open would create the folder
		return nil, fmt.Errorf("find the stack in %s: %w", cfg.Dir, ErrNoStack)
	}
	s, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if s.state, err = loadState(s.place.dir); err != nil {
		_ = os.Remove(s.place.dir) // fails if the folder is not empty
		return nil, fmt.Errorf("find the stack in %s: %w", s.place.dir, err)
	}
	if s.password, err = loadPassword(s.place.dir); err != nil {
		return nil, err
	}
	s.launch = &Launcher{detached: s.state.Detached}
	// Only a restart of servers needs the binaries.
	s.bins, _ = findBinaries(ctx)
	return s, nil
}

func open(ctx context.Context, cfg Config) (*Stack, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	as, err := postgresAccount()
	if err != nil {
		return nil, err
	}
	where, err := findPlace(ctx, cfg.Dir, as)
	if err != nil {
		return nil, err
	}
	if where.moved != "" {
		cfg.Logger.Info("Stack uses another folder than configured",
			"asked", cfg.Dir, "dir", where.dir, "why", where.moved)
	}
	return &Stack{cfg: cfg, place: where, as: as, launch: &Launcher{detached: cfg.Detached}}, nil
}

// applyConfig applies the configuration to the stored state, except the ports and the settings of running
// servers.
func (s *Stack) applyConfig() {
	st := &s.state
	postgres, broker := alive(st.Postgres.PID, s.postgresMark()), alive(st.Broker.PID, s.brokerMark())
	st.Asked = s.cfg.Dir
	if !postgres {
		st.Durable, st.MaxConns = s.cfg.Durable, s.cfg.MaxConnections
	}
	if !broker {
		st.Stats = s.cfg.StatsInterval
	}
	if !postgres && !broker {
		st.Detached = s.cfg.Detached
	}
}

// choosePorts chooses the ports of a new stack before any server starts, for concurrent readers of its state.
func (s *Stack) choosePorts() error {
	if st := s.snapshot(); st.PostgresPort != 0 && st.AMQPPort != 0 {
		return nil
	}
	ports, err := freePorts(5)
	if err != nil {
		return err
	}
	return s.update(func(st *state) {
		st.PostgresPort, st.AMQPPort, st.ManagementPort, st.DistPort, st.EpmdPort = ports[0], ports[1], ports[2],
			ports[3], ports[4]
	})
}

// server describes how to start one of the servers.
type server struct {
	name       string
	pid        int
	mark       string // identifies its process
	start      func(context.Context) error
	await      func(ctx context.Context, pid int) error
	forgetPort func(*state)
	logs       []string
}

// ensure starts a server unless it runs, and waits until it answers. It retries with other ports if another
// process has taken them. started reports whether a process was forked, also with an error.
func (s *Stack) ensure(ctx context.Context, one server) (started bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.StartTimeout,
		fmt.Errorf("%s was not ready within %s", one.name, s.cfg.StartTimeout))
	defer cancel()
	if alive(one.pid, one.mark) {
		return false, one.await(ctx, one.pid)
	}
	began := time.Now()
	for range 3 {
		if err = one.start(ctx); !errors.Is(err, errPortTaken) {
			break
		}
		if err = s.update(one.forgetPort); err != nil {
			break
		}
	}
	if err != nil {
		return true, withLogs(err, one.logs...)
	}
	s.cfg.Logger.Debug("Server is ready", "server", one.name, "after", time.Since(began))
	return true, nil
}

// await polls a starting server with probe until it succeeds or the server is too old.
func await(ctx context.Context, name string, pid int, mark string, probe func() error, ports ...int) error {
	var last error
	err := poll(ctx, 30*time.Millisecond, func() (bool, error) {
		if !alive(pid, mark) {
			if !allFree(ports...) {
				return false, errPortTaken
			}
			return false, errors.New(name + " ended while it started")
		}
		last = probe()
		return last == nil || errors.Is(last, errTooOld), nil
	})
	switch {
	case errors.Is(last, errTooOld):
		return last
	case err != nil && last != nil && !errors.Is(err, errPortTaken):
		return fmt.Errorf("%w (last answer: %w)", err, last)
	}
	return err
}

func (s *Stack) startAll(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	var startedPostgres, startedBroker bool
	group.Go(func() (err error) {
		startedPostgres, err = s.ensurePostgres(groupCtx)
		return err
	})
	group.Go(func() (err error) {
		startedBroker, err = s.ensureBroker(groupCtx)
		return err
	})
	err := group.Wait()
	if err == nil {
		return nil
	}
	// Stop only the servers that this call started.
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTimeoutDefault)
	defer cancel()
	if startedPostgres {
		err = errors.Join(err, s.stopPostgres(cleanup, syscall.SIGQUIT, time.Second))
	}
	if startedBroker {
		err = errors.Join(err, s.stopBroker(cleanup, syscall.SIGKILL, 0))
	}
	s.launch.wg.Wait()
	return err
}

// Down stops the servers, also those of another process. Hard kills the broker and shuts PostgreSQL down at
// once; otherwise both shut down in order, which takes the broker six seconds. The data stays. On a stopped
// stack Down does nothing.
func (s *Stack) Down(ctx context.Context, hard bool) error {
	return s.locked(ctx, func() error { return s.down(ctx, hard) })
}

func (s *Stack) down(ctx context.Context, hard bool) error {
	pgSignal, brokerSignal := syscall.SIGINT, syscall.SIGTERM
	if hard {
		pgSignal, brokerSignal = syscall.SIGQUIT, syscall.SIGKILL
	}
	var group errgroup.Group
	group.Go(func() error { return s.stopPostgres(ctx, pgSignal, StopTimeoutDefault) })
	group.Go(func() error { return s.stopBroker(ctx, brokerSignal, StopTimeoutDefault) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("stop the stack in %s: %w", s.place.dir, err)
	}
	s.launch.wg.Wait()
	s.withdraw()
	return nil
}

// locked starts or stops servers under the folder's lock, with the present state.
func (s *Stack) locked(ctx context.Context, do func() error) error {
	unlock, err := lockDir(ctx, s.place.dir)
	if err != nil {
		return err
	}
	defer unlock()
	s.refresh()
	return do()
}

// Reset stops the servers at once and removes their data. It also removes an alternative folder. The next Up
// starts from nothing.
func (s *Stack) Reset(ctx context.Context) error {
	return s.locked(ctx, func() error { return s.reset(ctx) })
}

func (s *Stack) reset(ctx context.Context) error {
	if err := s.down(ctx, true); err != nil {
		return err
	}
	names := []string{"postgres", "rabbitmq", stateFile, passwordFile, lockFile} // the lock last
	if s.place.moved != "" {
		names = []string{""}
	}
	for _, name := range names {
		if err := s.removeAll(ctx, filepath.Join(s.place.dir, name)); err != nil {
			return err
		}
	}
	_ = os.Remove(s.cfg.Dir) // fails if the folder is not empty
	if above := filepath.Dir(s.cfg.Dir); filepath.Base(above) == filepath.Dir(DirDefault) {
		_ = os.Remove(above)
	}
	return nil
}

// removeAll removes a folder to which ending helper processes may still write.
func (s *Stack) removeAll(ctx context.Context, path string) error {
	bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var last error
	err := poll(bounded, 20*time.Millisecond, func() (bool, error) {
		last = os.RemoveAll(path)
		return last == nil || errors.Is(last, fs.ErrPermission), nil
	})
	if err = errors.Join(last, err); err != nil {
		return fmt.Errorf("remove the stack's data: %w", err)
	}
	return nil
}

// refresh reads the state, which another process may have changed. Without a stored state it changes
// nothing.
func (s *Stack) refresh() {
	if st, err := loadState(s.place.dir); err == nil {
		s.mu.Lock()
		s.state = st
		s.mu.Unlock()
	}
}

// update changes and saves the state.
func (s *Stack) update(change func(st *state)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.state)
	return s.state.save(s.place.dir)
}

func (s *Stack) snapshot() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}
