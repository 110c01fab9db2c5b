package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// maxHeadsPerQueue bounds how many waiters of one queue a batch reads, and
// maxBlockedQueues how many queues that wait for a worker it tries besides
// those it was asked for. What exceeds them is taken by the next batch.
const (
	maxHeadsPerQueue = 200
	maxBlockedQueues = 64
)

// maxHeadsPerBlocked bounds how many waiters are read of a queue that is only
// tried: workers rarely have room for more, and every batch tries such queues.
const maxHeadsPerBlocked = 8

// spareHeads is how many heads are read beyond the free slots, in case some
// have been cancelled. ReadAdmissionHeads knows it too.
const spareHeads = 2

// Key names a queue: an action, or an action and a group of parameter values.
type Key struct {
	ActionID int64
	Group    string // empty: the action's one queue
}

// Admission finds and locks queues. It is safe for concurrent use.
type Admission struct {
	store *store.Store

	mu     sync.Mutex
	ids    map[Key]int64 // queue rows seen; a row can be pruned, see Forget
	scopes map[ScopeKey]int64
}

// New makes the admission of one engine on a store.
func New(st *store.Store) *Admission {
	return &Admission{store: st, ids: make(map[Key]int64), scopes: make(map[ScopeKey]int64)}
}

// maxCachedKeys bounds the cache of queue ids; beyond it the cache starts
// again, which costs one look-up per key.
const maxCachedKeys = 100_000

// Resolve returns the queue of every key, making the rows that are missing
// with the limit in force. It runs outside the batch's transaction: a queue
// that stays empty because the batch fails is harmless. A key whose action is
// gone has no queue and is not in the result.
func (a *Admission) Resolve(ctx context.Context, wanted map[Key]policy.Limit) (map[Key]int64, error) {
	found := make(map[Key]int64, len(wanted))
	var missing []Key
	a.mu.Lock()
	for key := range wanted {
		if id, ok := a.ids[key]; ok {
			found[key] = id
		} else {
			missing = append(missing, key)
		}
	}
	a.mu.Unlock()
	if len(missing) == 0 {
		return found, nil
	}
	if err := a.find(ctx, missing, found); err != nil {
		return nil, err
	}
	if err := a.create(ctx, missing, wanted, found); err != nil {
		return nil, err
	}
	a.remember(missing, found)
	return found, nil
}

func (a *Admission) find(ctx context.Context, keys []Key, found map[Key]int64) error {
	actions, groups := make([]int64, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		actions[i], groups[i] = key.ActionID, key.Group
	}
	rows, err := a.store.FindAdmissionStates(ctx, actions, groups)
	if err != nil {
		return fmt.Errorf("find %d admission queues: %w", len(keys), err)
	}
	for _, row := range rows {
		found[Key{ActionID: row.ActionID, Group: row.GroupKey}] = row.ID
	}
	return nil
}

func (a *Admission) create(ctx context.Context, keys []Key, limits map[Key]policy.Limit, found map[Key]int64) error {
	var actions []int64
	var groups []string
	var maxima []int32
	var unlimited []bool
	var created []Key
	grouped := false
	for _, key := range keys {
		if _, ok := found[key]; ok {
			continue
		}
		maximum, none := limitColumns(limits[key])
		created = append(created, key)
		actions, groups = append(actions, key.ActionID), append(groups, key.Group)
		maxima, unlimited = append(maxima, int32(maximum)), append(unlimited, none)
		grouped = grouped || key.Group != ""
	}
	if len(created) == 0 {
		return nil
	}
	if err := a.store.EnsureAdmissionStates(ctx, actions, maxima, unlimited); err != nil {
		return fmt.Errorf("create %d admission queues: %w", len(created), err)
	}
	if grouped {
		arg := store.EnsureGroupStatesParams{Actions: actions, Groups: groups, MaxConcurrent: maxima, Unlimited: unlimited}
		if err := a.store.EnsureGroupStates(ctx, arg); err != nil {
			return fmt.Errorf("create %d admission queues of groups: %w", len(created), err)
		}
	}
	return a.find(ctx, created, found)
}

func limitColumns(limit policy.Limit) (maximum int, unlimited bool) {
	if limit.Unlimited {
		return Unlimited, true
	}
	return limit.Max, false
}

func (a *Admission) remember(keys []Key, found map[Key]int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ids)+len(keys) > maxCachedKeys {
		clear(a.ids)
	}
	for _, key := range keys {
		if id, ok := found[key]; ok {
			a.ids[key] = id
		}
	}
}

// Forget drops what is remembered of rows. Callers use it when a batch failed,
// because a row may have been pruned and made again.
func (a *Admission) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.ids)
	clear(a.scopes)
}

// Want says what a batch needs locked.
type Want struct {
	Queues     map[int64]int // queue → how many releases are planned for it
	Workers    []int64       // workers of which Live and Gone are asked
	Executions []int64       // rows to read again under the locks

	// Scopes are the shared limits that the batch may take from or give back to.
	Scopes map[int64]ScopeWant
	// Recount names those of Queues whose lines are counted anew, and Lost the
	// notes of deleted executions whose slots are to be given back.
	Recount []int64
	Lost    []int64

	// Spare are those of Queues that the batch can do without: what another batch holds
	// is not waited for, see Held.
	Spare map[int64]bool

	// Quiet says that probably no execution waits in the wanted queues, nor for anything wider.
	// The heads of queues are then read in a second round trip, if executions wait nevertheless.
	Quiet bool

	// Optimistic says that the queues are probably all open: none has a limit or is paused,
	// and no execution waits, in them or for anything wider. They are read without their
	// locks, and Write changes them only if they are open still. If they are not, Lock
	// fails with ErrNotOpen.
	Optimistic bool

	// Resolved are those of Queues that came from Resolve: if one of them is
	// gone it must be made again, while others may go with their actions.
	Resolved map[int64]bool

	// First queues statements that are run before the first lock is taken, for
	// what comes before the queues in the lock order. Nil has none.
	First func(p *store.Pipeline)

	StaleAfter   time.Duration // heartbeats older than this make a worker not live
	MaxHeads     int           // waiters read of each wanted queue; 0 means as many as a batch bears
	WithoutStats bool          // do not keep queue_stats (executor.queue.enable_metrics: false)
}

// ScopeWant says what a batch may do with a shared limit.
type ScopeWant struct {
	Rule     *policy.Wide // nil: only give back
	Releases int          // how many releases are planned for it
}

// shared returns the shared limits in order of id, and beside each what the
// policies say of it (-1: nothing) and how many releases are planned.
func (w Want) shared() (ids, maxima, releases []int64) {
	ids = slices.Sorted(maps.Keys(w.Scopes))
	if ids == nil {
		ids = []int64{} // a NULL array is not an empty one
	}
	maxima, releases = make([]int64, len(ids)), make([]int64, len(ids))
	for i, id := range ids {
		want := w.Scopes[id]
		releases[i] = int64(want.Releases)
		maxima[i] = -1
		if want.Rule != nil {
			maxima[i] = int64(want.Rule.Max)
		}
	}
	return ids, maxima, releases
}

// maxHeads is how many waiters are read of each wanted queue.
func (w Want) maxHeads() int {
	if w.MaxHeads <= 0 || w.MaxHeads > maxHeadsPerQueue {
		return maxHeadsPerQueue
	}
	return max(w.MaxHeads, maxHeadsPerBlocked)
}

// firmAndSpare parts the queues: the batch waits for the firm ones, and passes over a spare
// one that another batch holds.
func (w Want) firmAndSpare(ids []int64) (firm, spare []int64) {
	firm, spare = make([]int64, 0, len(ids)), []int64{}
	for _, id := range ids {
		if w.Spare[id] {
			spare = append(spare, id)
		} else {
			firm = append(firm, id)
		}
	}
	return firm, spare
}

// ids returns the queues in order of id with their planned releases beside.
func (w Want) ids() (ids []int64, releases []int32) {
	ids = make([]int64, 0, len(w.Queues))
	for id := range w.Queues {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	releases = make([]int32, len(ids))
	for i, id := range ids {
		releases[i] = int32(w.Queues[id])
	}
	return ids, releases
}
