package broker

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrNotConnected is the error of what could not be done because no connection
// was to be had in time.
var ErrNotConnected = errors.New("not connected to the message broker")

// ErrBlocked is the ErrNotConnected of a broker that is there but accepts no
// messages, because it runs out of memory or disk.
var ErrBlocked = fmt.Errorf("%w: it blocks publishers", ErrNotConnected)

// ErrStopped is the ErrNotConnected of a Broker that was stopped.
var ErrStopped = fmt.Errorf("%w: stopped", ErrNotConnected)

// State is the condition of a Broker's connections taken together.
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
	// Err is why a connection was lost or blocked, if that is what happened.
	Err error
}

// watchBuffer is how many changes a slow watcher may be behind.
const watchBuffer = 16

// stateBoard holds the current state and tells watchers of changes.
type stateBoard struct {
	mu       sync.Mutex
	state    State
	since    time.Time // of state; the zero time before the first change
	watchers []chan StateChange
}

func (b *stateBoard) current() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
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

// set moves to a state. A watcher that does not keep up loses its oldest
// changes, never the newest.
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
