package devstack

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	stateFile = "stack.json"
	lockFile  = "stack.lock"
	// passwordFile is readable for the stack's owner only.
	passwordFile = "password"
)

// ErrNoStack reports a folder without a stack.
var ErrNoStack = errors.New("no stack was started here")

// state is the stored state of a stack. It is saved before Up waits for a server, so that Down can stop an
// interrupted start.
type state struct {
	Asked    string        `json:"asked_dir"`
	Durable  bool          `json:"durable"`
	Detached bool          `json:"detached"`
	Stats    time.Duration `json:"stats_interval"`
	MaxConns int           `json:"max_connections"`

	Postgres processState `json:"postgres"`
	Broker   processState `json:"broker"`
	Epmd     processState `json:"epmd"`

	PostgresPort   int `json:"postgres_port"`
	AMQPPort       int `json:"amqp_port"`
	ManagementPort int `json:"management_port"`
	DistPort       int `json:"dist_port"`
	EpmdPort       int `json:"epmd_port"`
}

type processState struct {
	PID int `json:"pid"`
}

func loadState(dir string) (state, error) {
	var st state
	raw, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return st, ErrNoStack
	}
	if err != nil {
		return st, fmt.Errorf("read the stack's state: %w", err)
	}
	if err := json.Unmarshal(raw, &st); err != nil {
		// A damaged file is no loss: command lines identify the processes, and Up chooses new ports.
		return state{}, ErrNoStack
	}
	return st, nil
}

func (st state) save(dir string) error {
	raw, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the stack's state: %w", err)
	}
	return replaceFile(filepath.Join(dir, stateFile), string(raw))
}

// replaceFile writes a line into a file atomically.
func replaceFile(name, line string) error {
	if err := os.WriteFile(name+".new", []byte(line+"\n"), 0o600); err != nil {
		return fmt.Errorf("write a file of the stack: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("write a file of the stack: %w", err)
	}
	return nil
}

// loadPassword returns the password of a stack, empty if it has none yet.
func loadPassword(dir string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, passwordFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the stack's password: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// ensurePassword creates the password of a new stack. Existing servers keep theirs.
func ensurePassword(dir string) (string, error) {
	if password, err := loadPassword(dir); err != nil || password != "" {
		return password, err
	}
	password := rand.Text()
	return password, replaceFile(filepath.Join(dir, passwordFile), password)
}

// checkOwner refuses the stack of another user: files of root would lock its owner out.
func checkOwner(dir string) error {
	info, err := os.Stat(filepath.Join(dir, lockFile))
	if err != nil {
		return nil //nolint:nilerr // no stack yet
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("the stack in %s belongs to user id %d, not %d: choose another folder or remove it",
			dir, stat.Uid, os.Geteuid())
	}
	return nil
}

// lockDir takes the folder's lock for starting and stopping. The returned function releases it.
func lockDir(ctx context.Context, dir string) (func(), error) {
	if err := checkOwner(dir); err != nil {
		return nil, err
	}
	var held *os.File
	err := poll(ctx, 50*time.Millisecond, func() (done bool, err error) {
		held, err = tryLock(dir)
		return held != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the lock of the stack in %s: %w", dir, err)
	}
	return func() { _ = held.Close() }, nil // closing releases the lock
}

// tryLock returns nil if another process holds the lock, or has removed the folder.
func tryLock(dir string) (*os.File, error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, lockFile)
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // another process removed the folder
	}
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		mine, errMine := file.Stat()
		current, errCurrent := os.Stat(name)
		if errMine == nil && errCurrent == nil && os.SameFile(mine, current) {
			return file, nil
		}
	}
	_ = file.Close() // nothing was written
	if err == nil || errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock: %w", err)
}

// poll calls check until it returns true or an error, or the context ends.
func poll(ctx context.Context, every time.Duration, check func() (bool, error)) error {
	timer := time.NewTicker(every)
	defer timer.Stop()
	for {
		done, err := check()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}
