package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// LockedError reports that another session holds a lock.
type LockedError struct {
	Name string
	// By is the application name of the holder's session, Address its address. Both are empty if
	// unknown.
	By, Address string
}

// Error names the holder.
func (e *LockedError) Error() string {
	by := e.By
	if by == "" {
		by = "another session"
	}
	if e.Address != "" {
		by += " at " + e.Address
	}
	return fmt.Sprintf("%s is in use by %s", e.Name, by)
}

// SessionLock is a lock that lasts for as long as its connection does.
type SessionLock struct {
	conn    *pgxpool.Conn
	queries *Queries
	name    string
	own     string
}

// Alone is Tx for a loop that one replica at a time runs. Otherwise fn does not run, and won is false.
func (s *Store) Alone(
	ctx context.Context, name, loop string, fn func(ctx context.Context, tx *Tx) error,
) (won bool, err error) {
	err = s.Tx(ctx, name, func(ctx context.Context, tx *Tx) (err error) {
		if won, err = tx.TryLoopLock(ctx, loop); err != nil || !won {
			return err
		}
		return fn(ctx, tx)
	})
	return won, err
}

// Locked runs fn under a session lock, so that no transaction is open meanwhile. While another session holds the lock
// it does nothing.
func (s *Store) Locked(ctx context.Context, name, holder string, fn func() error) error {
	lock, err := s.LockSession(ctx, name, holder)
	if _, locked := errors.AsType[*LockedError](err); locked {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	return fn()
}

// maxHolder is how long a session's name can be.
const maxHolder = 63

// LockSession takes a lock that outlives transactions, on a connection of its own, or fails at once
// with a *LockedError. holder is the application name shown to others.
func (s *Store) LockSession(ctx context.Context, name, holder string) (*SessionLock, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, classified(err))
	}
	l := &SessionLock{conn: conn, queries: New(conn), name: name, own: s.cfg.ApplicationName}
	if err := l.take(ctx, holder); err != nil {
		conn.Release()
		return nil, err
	}
	return l, nil
}

// lockTries bounds the tries when a holder releases the lock before it is identified.
const lockTries = 3

// take names the session before it has the lock, so that another session that finds the lock taken
// also finds the name.
func (l *SessionLock) take(ctx context.Context, holder string) error {
	if _, err := l.queries.NameSession(ctx, holder[:min(len(holder), maxHolder)]); err != nil {
		return fmt.Errorf("lock %s: %w", l.name, err)
	}
	locked := &LockedError{Name: l.name}
	for range lockTries {
		won, err := l.queries.TrySessionLock(ctx, l.name)
		if err != nil {
			_ = l.conn.Conn().Close(ctx) // and the lock with it, if it was taken
			return fmt.Errorf("lock %s: %w", l.name, err)
		}
		if won {
			return nil
		}
		row, err := l.queries.SessionLockHolder(ctx, l.name)
		if err == nil {
			locked.By, locked.Address = row.Holder, row.Address
			break
		}
		if !errors.Is(err, sql.ErrNoRows) {
			_ = l.conn.Conn().Close(ctx) // under a name that is not its own
			return fmt.Errorf("find the holder of lock %s: %w", l.name, err)
		}
	}
	if _, err := l.queries.NameSession(ctx, l.own); err != nil {
		_ = l.conn.Conn().Close(ctx) // under a name that is not its own
	}
	return locked
}

// Check fails when the connection, and with it the lock, is lost.
func (l *SessionLock) Check(ctx context.Context) error {
	if _, err := l.queries.SessionAlive(ctx); err != nil {
		return fmt.Errorf("the lock %s is lost: %w", l.name, classified(err))
	}
	return nil
}

// unlockTimeout is the timeout of releasing a lock; after it the connection is closed.
const unlockTimeout = 3 * time.Second

// Release gives the lock back.
func (l *SessionLock) Release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	defer l.conn.Release()
	_, err := l.queries.SessionUnlock(ctx, l.name)
	if err == nil {
		_, err = l.queries.NameSession(ctx, l.own)
	}
	if err != nil {
		_ = l.conn.Conn().Close(ctx) // and the lock with it
	}
}
