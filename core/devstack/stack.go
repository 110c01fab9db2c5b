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

// Stack is one private PostgreSQL and one private RabbitMQ. Its methods may be
// called from several goroutines.
type Stack struct {
	cfg   Config
	place place
	as    *account
	bins  binaries

	launch *launcher
	// password is that of both servers.
	password string

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
	s.adopt()
	if err := s.choosePorts(); err != nil {
		return nil, err
	}
	if err := s.startAll(ctx); err != nil {
		return nil, fmt.Errorf("start the stack in %s: %w", s.place.dir, err)
	}
	return s, nil
}

// Attach finds the stack that was started in cfg.Dir, running or not. Nothing
// is started. It is ErrNoStack when there is none.
func Attach(ctx context.Context, cfg Config) (*Stack, error) {
	if nothingAt(cfg.Dir) { // looking makes no folder
		return nil, fmt.Errorf("find the stack in %s: %w", cfg.Dir, ErrNoStack)
	}
	s, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if s.state, err = loadState(s.place.dir); err != nil {
		_ = os.Remove(s.place.dir) // looking leaves no folder behind; one that holds anything stays
		return nil, fmt.Errorf("find the stack in %s: %w", s.place.dir, err)
	}
	if s.password, err = loadPassword(s.place.dir); err != nil {
		return nil, err
	}
	s.launch = newLauncher(s.state.Detached)
	// The servers can be started again only where they are installed; looking
	// at a stack and stopping it needs no binaries.
	s.bins, _ = findBinaries(ctx)
	return s, nil
}

func open(ctx context.Context, cfg Config) (*Stack, error) {
	cfg, err := cfg.withDefaults().validate()
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
		cfg.Logger.Info("The stack lives in another folder than the one asked for",
			"asked", cfg.Dir, "dir", where.dir, "why", where.moved)
	}
	return &Stack{cfg: cfg, place: where, as: as, launch: newLauncher(cfg.Detached)}, nil
}

// adopt keeps what the folder remembers about ports and about the settings of
// servers that run, and takes everything else from the configuration.
func (s *Stack) adopt() {
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

// choosePorts chooses the ports of a new stack before any server starts, so that concurrent readers
// know them.
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
	// What this call started is stopped again; what ran before stays.
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTimeoutDefault)
	defer cancel()
	if startedPostgres {
		err = errors.Join(err, s.stopPostgres(cleanup, syscall.SIGQUIT, time.Second))
	}
	if startedBroker {
		err = errors.Join(err, s.stopBroker(cleanup, syscall.SIGKILL, 0))
	}
	s.launch.wait()
	return err
}

// Down stops the servers, even if another process started them. Hard kills the broker and shuts
// PostgreSQL down at once; otherwise both shut down in order, which takes the broker six seconds.
// Data stays either way. On a stopped stack it does nothing.
func (s *Stack) Down(ctx context.Context, hard bool) error {
	unlock, err := lockDir(ctx, s.place.dir)
	if err != nil {
		return err
	}
	defer unlock()
	return s.down(ctx, hard)
}

func (s *Stack) down(ctx context.Context, hard bool) error {
	s.refresh()
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
	s.launch.wait()
	return nil
}

// locked runs what starts or stops one server under the folder's lock.
func (s *Stack) locked(ctx context.Context, do func() error) error {
	unlock, err := lockDir(ctx, s.place.dir)
	if err != nil {
		return err
	}
	defer unlock()
	s.refresh()
	return do()
}

// Reset stops the servers at once and removes everything they stored, and the
// folder too when it is not the one that was asked for. The next Up starts from
// nothing.
func (s *Stack) Reset(ctx context.Context) error {
	unlock, err := lockDir(ctx, s.place.dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.down(ctx, true); err != nil {
		return err
	}
	names := []string{"postgres", "rabbitmq", stateFile, passwordFile, shellFile, lockFile} // the lock last
	if s.place.moved != "" {
		names = []string{""}
		_ = os.Remove(filepath.Join(s.cfg.Dir, shellFile))
	}
	for _, name := range names {
		if err := s.removeAll(ctx, filepath.Join(s.place.dir, name)); err != nil {
			return err
		}
	}
	_ = os.Remove(s.cfg.Dir) // it stays where it holds anything else
	if above := filepath.Dir(s.cfg.Dir); filepath.Base(above) == filepath.Dir(DirDefault) {
		_ = os.Remove(above)
	}
	return nil
}

// removeAll removes a folder that dying helper processes may still write to.
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

// refresh reads what another process wrote since; a folder without a state
// leaves what is known.
func (s *Stack) refresh() {
	if st, err := loadState(s.place.dir); err == nil {
		s.mu.Lock()
		s.state = st
		s.mu.Unlock()
	}
}

// update changes the state and writes it down.
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
