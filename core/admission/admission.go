package admission

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// maxHeadsPerQueue bounds the heads that a batch reads of one queue. maxBlockedQueues bounds the
// queues waiting for a worker that it tries besides the wanted ones. The next batch takes the rest.
const (
	maxHeadsPerQueue = 200
	maxBlockedQueues = 64
)

// maxHeadsPerBlocked bounds the heads read of a queue that is only tried: workers rarely have
// capacity for more, and every batch tries such queues.
const maxHeadsPerBlocked = 8

// spareHeads is how many heads are read beyond the free slots, because some may be cancelled.
// ReadAdmissionHeads repeats this number.
const spareHeads = 2

// Key names a queue: an action, or an action and a group of parameter values.
type Key struct {
	ActionID int64
	Group    string // empty: the action's only queue
}

// Admission finds and locks queues. It is safe for concurrent use.
type Admission struct {
	store  *store.Store
	queues idCache[Key]
	scopes idCache[ScopeKey]
}

// New makes the admission of one engine on a store.
func New(st *store.Store) *Admission { return &Admission{store: st} }

// Known returns the queue of a key if an earlier batch has resolved it.
func (a *Admission) Known(key Key) (int64, bool) {
	a.queues.mu.Lock()
	defer a.queues.mu.Unlock()
	id, ok := a.queues.ids[key]
	return id, ok
}

// maxCachedKeys bounds a cache of ids; beyond it the cache starts empty, which costs one look-up
// per key.
const maxCachedKeys = 100_000

// idCache caches the ids of rows. A row can be pruned, see Forget.
type idCache[K comparable] struct {
	mu  sync.Mutex
	ids map[K]int64
}

// find returns the known ids of keys, and the unknown keys.
func (c *idCache[K]) find(keys iter.Seq[K]) (known map[K]int64, unknown []K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known = make(map[K]int64)
	for key := range keys {
		if id, ok := c.ids[key]; ok {
			known[key] = id
		} else {
			unknown = append(unknown, key)
		}
	}
	return known, unknown
}

// add adds the found ids of keys.
func (c *idCache[K]) add(keys []K, found map[K]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil || len(c.ids)+len(keys) > maxCachedKeys {
		c.ids = make(map[K]int64)
	}
	for _, key := range keys {
		if id, ok := found[key]; ok {
			c.ids[key] = id
		}
	}
}

func (c *idCache[K]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.ids)
}

// Resolve returns the queue of every key and creates missing rows with the limit in force. It runs
// outside the batch's transaction: a queue that stays empty because the batch fails is harmless. A
// key whose action was deleted has no queue and is not in the result.
func (a *Admission) Resolve(ctx context.Context, wanted map[Key]policy.Limit) (map[Key]int64, error) {
	found, missing := a.queues.find(maps.Keys(wanted))
	if len(missing) == 0 {
		return found, nil
	}
	if err := a.find(ctx, missing, found); err != nil {
		return nil, err
	}
	if err := a.create(ctx, missing, wanted, found); err != nil {
		return nil, err
	}
	a.queues.add(missing, found)
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
		limit := limits[key]
		if limit.Unlimited {
			limit.Max = Unlimited
		}
		created = append(created, key)
		actions, groups = append(actions, key.ActionID), append(groups, key.Group)
		maxima, unlimited = append(maxima, int32(limit.Max)), append(unlimited, limit.Unlimited)
		grouped = grouped || key.Group != ""
	}
	if len(created) == 0 {
		return nil
	}
	if err := a.store.EnsureAdmissionStates(ctx, actions, maxima, unlimited); err != nil {
		return fmt.Errorf("create %d admission queues: %w", len(created), err)
	}
	if grouped {
		arg := store.EnsureGroupStatesParams{
			Actions: actions, Groups: groups, MaxConcurrent: maxima,
			Unlimited: unlimited,
		}
		if err := a.store.EnsureGroupStates(ctx, arg); err != nil {
			return fmt.Errorf("create %d admission queues of groups: %w", len(created), err)
		}
	}
	return a.find(ctx, created, found)
}

// Forget empties the caches of rows. Callers use it when a batch failed, because a row may have
// been pruned and created again.
func (a *Admission) Forget() {
	a.queues.forget()
	a.scopes.forget()
}

// Want says what a batch needs locked and read.
type Want struct {
	Queues     map[int64]int // queue → how many releases are planned for it
	Workers    []int64       // workers to read for Live and Gone
	Executions []int64       // rows to read again under the locks

	// Scopes are the shared limits of which the batch may take or release slots.
	Scopes map[int64]ScopeWant
	// Recount names those of Queues whose waiting executions are recounted. Lost are the notes of
	// deleted executions whose slots are released.
	Recount []int64
	Lost    []int64

	// Spare are those of Queues that the batch can do without: it does not wait for a lock that
	// another batch holds, see Held.
	Spare map[int64]bool

	// Quiet says that the wanted queues probably have no waiting executions, and that no queue
	// waits for a shared limit or a worker. If executions wait nevertheless, their heads cost a
	// second round trip.
	Quiet bool

	// Optimistic says that the queues are probably all open: they have no limit, no pause and no
	// waiting executions, and no queue waits for a shared limit or a worker. Lock reads them
	// without locks, and Write changes them only if they are still open. If they are not, Lock
	// fails with ErrNotOpen.
	Optimistic bool

	// Resolved are those of Queues that came from Resolve: a missing one must be created again. The
	// others may have been deleted with their actions.
	Resolved map[int64]bool

	// First queues statements that run before the first lock, for rows that precede queues in the
	// lock order. Nil has none.
	First func(p *store.Pipeline)

	StaleAfter   time.Duration // heartbeats older than this make a worker not live
	MaxHeads     int           // heads read of each wanted queue; 0 means as many as a batch may read
	WithoutStats bool          // do not keep queue_stats (executor.queue.enable_metrics: false)
}

// ScopeWant says what a batch may do with a shared limit.
type ScopeWant struct {
	Rule     *policy.SharedLimit // nil: only release
	Releases int                 // how many releases are planned for it
}

// shared returns the shared limits in order of id, with the limit of their policies (-1: none) and
// the planned releases.
func (w Want) shared() (ids, maxima, releases []int64) {
	ids = sortedIDs(w.Scopes)
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

// sortedIDs returns the keys of a map in order. It is never nil: a NULL array is not an empty one.
func sortedIDs[V any](of map[int64]V) []int64 {
	ids := slices.AppendSeq(make([]int64, 0, len(of)), maps.Keys(of))
	slices.Sort(ids)
	return ids
}

// maxHeads is the number of heads read of each wanted queue.
func (w Want) maxHeads() int {
	if w.MaxHeads <= 0 || w.MaxHeads > maxHeadsPerQueue {
		return maxHeadsPerQueue
	}
	return max(w.MaxHeads, maxHeadsPerBlocked)
}

// firmAndSpare splits the queues: the batch waits for firm ones, and skips a spare one that another
// batch holds.
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

// ids returns the queues in order of id, with their planned releases.
func (w Want) ids() (ids []int64, releases []int32) {
	ids = sortedIDs(w.Queues)
	releases = make([]int32, len(ids))
	for i, id := range ids {
		releases[i] = int32(w.Queues[id])
	}
	return ids, releases
}
