package handover

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
)

// fleetMaxAge is how long the list of workers is used before it is read
// again. Whether a listed worker may still be given work is judged anew by
// every round, under its load's lock.
const fleetMaxAge = time.Second

// capacityDefault is assumed of workers that do not say how many executions
// they run at once; it is the default of existing workers.
const capacityDefault = 10

// fleet is the engine's cached view of the live workers.
type fleet struct {
	store      *store.Store
	staleAfter time.Duration
	now        func() time.Time

	mu     sync.Mutex
	read   time.Time
	latest []placement.Worker
}

func newFleet(st *store.Store, staleAfter time.Duration, now func() time.Time) *fleet {
	return &fleet{store: st, staleAfter: staleAfter, now: now}
}

// live returns the live workers, the deaf ones among them, read again when fresh is asked for or the
// last reading is too old.
func (f *fleet) live(ctx context.Context, fresh bool) ([]placement.Worker, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !fresh && f.now().Sub(f.read) < fleetMaxAge {
		return f.latest, nil
	}
	rows, err := f.store.ReadFleet(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the workers: %w", err)
	}
	var workers []placement.Worker
	var missing []int64
	for _, row := range rows {
		if !f.isLive(row) {
			continue
		}
		workers = append(workers, candidate(row))
		if row.Assigned < 0 {
			missing = append(missing, row.ID)
		}
	}
	if len(missing) > 0 {
		if err := f.store.EnsureWorkerLoads(ctx, missing); err != nil {
			return nil, fmt.Errorf("make load rows of %d workers: %w", len(missing), err)
		}
	}
	f.latest, f.read = workers, f.now()
	return workers, nil
}

// statusDeaf is what a worker says whose heart beats while its queue is not
// consumed. The broker's absence makes every worker say so, and must not fail
// what waits.
const statusDeaf = "error"

func (f *fleet) isLive(row store.ReadFleetRow) bool {
	return (row.Status == "active" || row.Status == statusDeaf) && !row.Cordoned && !row.Draining &&
		row.HeartbeatAge < f.staleAfter.Seconds()
}

// capabilities are the fields of worker.capabilities that placement reads.
type capabilities struct {
	Runtimes      []string `json:"runtimes"`
	MaxConcurrent *int     `json:"max_concurrent_executions"`
	AttemptFence  bool     `json:"attempt_fence"`
}

// candidate reads what a worker announces. Capabilities that cannot be read
// count as none: such a worker gets only work that any worker can do.
func candidate(row store.ReadFleetRow) placement.Worker {
	var c capabilities
	if err := json.Unmarshal(row.Capabilities, &c); err != nil {
		c = capabilities{}
	}
	w := placement.Worker{
		ID: row.ID, Name: row.Name, Capacity: capacityDefault,
		Assigned: max(int(row.Assigned), 0), Runtimes: placement.NormalizeRuntimes(c.Runtimes), AttemptFence: c.AttemptFence,
		Deaf: row.Status == statusDeaf,
	}
	if c.MaxConcurrent != nil && *c.MaxConcurrent > 0 {
		w.Capacity = *c.MaxConcurrent
	}
	return w
}
