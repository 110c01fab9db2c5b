package broker

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrNotConnected is the error of a call that had no connection in time.
var ErrNotConnected = errors.New("not connected to the message broker")

// ErrBlocked is the ErrNotConnected of a connected broker that accepts no messages, because it
// lacks memory or disk.
var ErrBlocked = fmt.Errorf("%w: it blocks publishers", ErrNotConnected)

// ErrStopped is the ErrNotConnected of a stopped Broker.
var ErrStopped = fmt.Errorf("%w: stopped", ErrNotConnected)

// State is the common state of a Broker's connections.
type State int

// The states of a Broker.
const (
	StateConnecting   State = iota // not yet connected for the first time
	StateConnected                 // both connections are up
	StateBlocked                   // up, but the broker accepts no messages
	StateDisconnected              // a connection was lost and is dialled again
	StateStopped                   // stopped for good
)

// String names the state in lower case.
func (s State) String() string {
	switch s {
	case StateConnecting:
		return "connecting"
	case StateConnected:
		return "connected"
	case StateBlocked:
		return "blocked"
	case StateDisconnected:
		return "disconnected"
	case StateStopped:
		return "stopped"
	default:
		return fmt.Sprintf("State(%d)", int(s))
	}
}

// StateChange is one step from state to state.
type StateChange struct {
	At   time.Time
	From State
	To   State
	// Err is why a connection was lost or blocked, if it was.
	Err error
}

// watchBuffer is how many changes a slow watcher may lag behind.
const watchBuffer = 16

type stateBoard struct {
	mu       sync.Mutex
	state    State
	since    time.Time // of state; the zero time before the first change
	watchers []chan StateChange
}

func (b *stateBoard) held() (State, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.since
}

func (b *stateBoard) watch() <-chan StateChange {
	b.mu.Lock()
	defer b.mu.Unlock()
	watcher := make(chan StateChange, watchBuffer)
	b.watchers = append(b.watchers, watcher)
	return watcher
}

// set changes the state. A slow watcher loses its oldest changes, never the newest.
func (b *stateBoard) set(to State, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if to == b.state || b.state == StateStopped {
		return
	}
	change := StateChange{At: time.Now(), From: b.state, To: to, Err: cause}
	b.state, b.since = to, change.At
	for _, watcher := range b.watchers {
		for sent := false; !sent; {
			select {
			case watcher <- change:
				sent = true
			default:
				select {
				case <-watcher:
				default:
				}
			}
		}
	}
}
