package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
)

// fleetMaxAge is how long the list of workers is cached. Every batch checks again, under the lock
// of the worker's load, whether a worker may receive work.
const fleetMaxAge = time.Second

// fleet is the scheduler's cached view of the registered workers.
type fleet struct {
	store      *store.Store
	staleAfter time.Duration
	now        func() time.Time

	mu     sync.Mutex
	read   time.Time
	latest []placement.Worker // present workers
	absent []placement.Worker // absent workers
	// adopted is true for the schema of an existing installation.
	adopted bool
}

// live returns the present workers, including workers that may receive nothing at the moment. It
// reads them again if fresh is set or the cache is too old.
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
	if len(rows) > 0 {
		f.adopted = rows[0].Adopted
	}
	var present, absent []placement.Worker
	var missing []int64
	for _, row := range rows {
		w := placement.Row(row).Worker(f.staleAfter)
		if w.Standing.Absent() {
			absent = append(absent, w)
			continue
		}
		present = append(present, w)
		if row.Assigned < 0 {
			missing = append(missing, row.ID)
		}
	}
	if len(missing) > 0 {
		if err := f.store.EnsureWorkerLoads(ctx, missing); err != nil {
			return nil, fmt.Errorf("make load rows of %d workers: %w", len(missing), err)
		}
	}
	f.latest, f.absent, f.read = present, absent, f.now()
	return present, nil
}

func (f *fleet) isAdopted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.adopted
}

// standing returns all workers as the batch sees them: present ones with the ledger's facts, and
// absent ones, which receive nothing but appear in the reasons. The write detects a worker that
// left since it was read, when it takes its capacity.
func (f *fleet) standing(ledger *admission.Ledger, workers []placement.Worker) []placement.Worker {
	f.mu.Lock()
	absent := f.absent
	f.mu.Unlock()
	list := make([]placement.Worker, len(workers), len(workers)+len(absent))
	known := make(map[int64]bool, len(absent))
	for i, w := range workers {
		w.Assigned = ledger.Assigned(w.ID)
		if w.Standing != placement.Unwell && ledger.Live(w.ID) { // the ledger does not know health
			w.Standing, w.Note = placement.Live, ""
		}
		list[i] = w
		if len(absent) > 0 {
			known[w.ID] = true
		}
	}
	for _, w := range absent {
		if !known[w.ID] { // a worker may leave after the batch read the workers
			list = append(list, w)
		}
	}
	return list
}
