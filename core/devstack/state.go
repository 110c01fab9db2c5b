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
	// formerPassword is that of every stack that was made before each had its own.
	formerPassword = "attune"
)

// ErrNoStack is what Attach returns for a folder in which no stack was ever
// started, or which was reset since.
var ErrNoStack = errors.New("no stack was started here")

// state is what the folder remembers about its servers. It is written before a
// server is waited for, so that a start that is cut off can still be stopped.
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
		// A torn file is as good as none: processes are recognised by their
		// command line, and ports are chosen anew.
		return state{}, ErrNoStack
	}
	return st, nil
}

func (st state) save(dir string) error {
	raw, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the stack's state: %w", err)
	}
	name := filepath.Join(dir, stateFile)
	if err := os.WriteFile(name+".new", append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the stack's state: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("write the stack's state: %w", err)
	}
	return nil
}

// loadPassword reads the password of a stack's servers.
func loadPassword(dir string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, passwordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return formerPassword, nil
	}
	if err != nil {
		return "", fmt.Errorf("read the stack's password: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// ensurePassword makes one where there is none and no server has stored anything.
func ensurePassword(dir string) (string, error) {
	for _, made := range []string{passwordFile, "postgres", "rabbitmq"} {
		if _, err := os.Lstat(filepath.Join(dir, made)); err == nil {
			return loadPassword(dir)
		}
	}
	password := rand.Text()
	name := filepath.Join(dir, passwordFile)
	if err := os.WriteFile(name+".new", []byte(password+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the stack's password: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return "", fmt.Errorf("write the stack's password: %w", err)
	}
	return password, nil
}

// checkOwner refuses a folder whose stack belongs to another user: files left
// by root would lock its owner out for ever.
func checkOwner(dir string) error {
	info, err := os.Stat(filepath.Join(dir, lockFile))
	if err != nil {
		return nil //nolint:nilerr // nothing there yet
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("the stack in %s belongs to user id %d, not %d: choose another folder or remove it",
			dir, stat.Uid, os.Geteuid())
	}
	return nil
}

// lockDir takes the folder's lock, which starting and stopping hold. The
// returned function gives it back.
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
	return func() { _ = held.Close() }, nil // closing gives the lock back
}

// tryLock returns nil if another process holds the lock, or removed the folder meanwhile.
func tryLock(dir string) (*os.File, error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, lockFile)
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the folder was removed meanwhile
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

// poll asks until the answer is yes, an error, or the context's end.
func poll(ctx context.Context, every time.Duration, ask func() (bool, error)) error {
	timer := time.NewTicker(every)
	defer timer.Stop()
	for {
		done, err := ask()
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
