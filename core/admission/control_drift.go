package admission

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
)

// Limits of one transaction of a repair.
const (
	maxCorrected = 500 // queues, workers, shared limits or notes
	maxReleased  = 100 // ended executions
	maxEnded     = 10_000
)

// Drift is a counter or row that contradicts the facts.
type Drift struct {
	Kind    string `json:"kind"`              // queue, worker, scope, deleted, ended or statistics
	ID      int64  `json:"id"`                // of the queue, worker, scope, execution or action
	Name    string `json:"name,omitempty"`    // action and group, worker, or scope
	Counter string `json:"counter,omitempty"` // which of its numbers
	Stored  int64  `json:"stored"`
	Counted int64  `json:"counted"`
	Note    string `json:"note,omitempty"` // an explanation, where numbers say too little
}

// String describes the drift for users.
func (d Drift) String() string {
	if d.Note != "" {
		return fmt.Sprintf("%s %d (%s): %s", d.Kind, d.ID, d.Name, d.Note)
	}
	return fmt.Sprintf("%s %d (%s): %s is %d, counted %d", d.Kind, d.ID, d.Name, d.Counter, d.Stored, d.Counted)
}

// The kinds of drift.
const (
	DriftQueue      = "queue"      // a counter of a queue
	DriftWorker     = "worker"     // the load of a worker
	DriftScope      = "scope"      // the counter of a shared limit
	DriftDeleted    = "deleted"    // a deleted execution's slot was not released
	DriftEnded      = "ended"      // an ended execution still holds a slot or waits
	DriftStatistics = "statistics" // queue_stats of an action
)

// RepairConfig configure FindDrift and Release.
type RepairConfig struct {
	ActionID int64 // only this action's queues; 0: everything
	// Grace is how long an ended execution may hold its slot, because its report may be on its way.
	Grace time.Duration
	// StaleAfter is the heartbeat age from which a worker counts as absent.
	StaleAfter time.Duration
	// WithoutStats leaves queue_stats unchanged.
	WithoutStats bool
}

// Findings are what FindDrift found, and the locks that the correction needs.
type Findings struct {
	Drifts []Drift

	fix   correction
	ended []store.RepairEndedRow
}

// correction names rows to lock, count again and correct.
type correction struct {
	queues, workers, scopes, notes, actions []int64
}

// Empty reports whether there is no drift.
func (f *Findings) Empty() bool { return len(f.Drifts) == 0 }

// FindDrift compares the counters with the facts, in the snapshot of the caller's transaction.
func FindDrift(ctx context.Context, tx *store.Tx, config RepairConfig) (*Findings, error) {
	f := &Findings{Drifts: []Drift{}}
	queues, err := tx.RepairQueues(ctx, nil, config.ActionID, true)
	if err != nil {
		return nil, fmt.Errorf("count queues: %w", err)
	}
	for _, row := range queues {
		f.Drifts = append(f.Drifts, queueDrifts(row)...)
		f.fix.queues = append(f.fix.queues, row.ID)
	}
	if config.ActionID == 0 {
		if err := f.findShared(ctx, tx); err != nil {
			return nil, err
		}
	}
	if err := f.findDeleted(ctx, tx, config); err != nil {
		return nil, err
	}
	if err := f.findEnded(ctx, tx, config); err != nil {
		return nil, err
	}
	return f, f.findStats(ctx, tx, config)
}

func queueDrifts(row store.RepairQueuesRow) []Drift {
	name := row.Ref
	if row.GroupKey != "" {
		name += " " + row.GroupKey
	}
	return compare(Drift{Kind: DriftQueue, ID: row.ID, Name: name}, []counter{
		{"active_count", int64(row.ActiveCount), int64(row.Active)},
		{"queued_count", int64(row.QueuedCount), int64(row.Queued)},
		{"queued_high", int64(row.QueuedHigh), int64(row.High)},
		{"queued_low", int64(row.QueuedLow), int64(row.Low)},
		{"head_order", row.HeadOrder, row.Head},
		{"head_high", row.HeadHigh, row.FirstHigh},
		{"head_low", row.HeadLow, row.FirstLow},
		{"next_queue_order", row.NextQueueOrder, row.NextOrder},
	})
}

type counter struct {
	name            string
	stored, counted int64
}

// compare returns a drift for each wrong counter of one row.
func compare(of Drift, counters []counter) []Drift {
	var drifts []Drift
	for _, c := range counters {
		if c.stored != c.counted {
			of.Counter, of.Stored, of.Counted = c.name, c.stored, c.counted
			drifts = append(drifts, of)
		}
	}
	return drifts
}

func loadDrift(row store.RepairLoadsRow) Drift {
	return Drift{
		Kind: DriftWorker, ID: row.Worker, Name: row.Name, Counter: "assigned", Stored: int64(row.Assigned),
		Counted: int64(row.Held),
	}
}

func scopeDrift(row store.RepairScopesRow) Drift {
	return Drift{
		Kind: DriftScope, ID: row.ID, Name: row.Kind + " " + row.ScopeKey, Counter: "active_count",
		Stored: int64(row.ActiveCount), Counted: int64(row.Taken),
	}
}

func statsDrifts(row store.RepairStatsRow) []Drift {
	return compare(Drift{Kind: DriftStatistics, ID: row.ActionID, Name: row.Ref}, []counter{
		{"queue_length", int64(row.QueueLength), int64(row.Queued)},
		{"active_count", int64(row.ActiveCount), int64(row.Active)},
	})
}

// findShared checks what belongs to no single action.
func (f *Findings) findShared(ctx context.Context, tx *store.Tx) error {
	loads, err := tx.RepairLoads(ctx, nil)
	if err != nil {
		return fmt.Errorf("count the load of workers: %w", err)
	}
	for _, row := range loads {
		f.Drifts = append(f.Drifts, loadDrift(row))
		f.fix.workers = append(f.fix.workers, row.Worker)
	}
	scopes, err := tx.RepairScopes(ctx, nil)
	if err != nil {
		return fmt.Errorf("count shared slots: %w", err)
	}
	for _, row := range scopes {
		f.Drifts = append(f.Drifts, scopeDrift(row))
		f.fix.scopes = append(f.fix.scopes, row.ID)
	}
	return nil
}

func (f *Findings) findDeleted(ctx context.Context, tx *store.Tx, config RepairConfig) error {
	notes, err := tx.RepairLost(ctx, config.ActionID, maxEnded)
	if err != nil {
		return fmt.Errorf("read the notes of deleted executions: %w", err)
	}
	for _, row := range notes {
		note := "was deleted while it waited"
		if row.StateID != 0 {
			note = "was deleted while it held a slot"
		}
		f.Drifts = append(f.Drifts,
			Drift{Kind: DriftDeleted, ID: row.Execution, Name: "note " + strconv.FormatInt(row.ID, 10), Note: note})
		f.fix.notes = append(f.fix.notes, row.ID)
		f.fix.queues = appendKnown(f.fix.queues, row.StateID, row.WaitedIn)
		f.fix.workers = appendKnown(f.fix.workers, row.Worker)
		f.fix.scopes = append(f.fix.scopes, row.Scopes...)
	}
	return nil
}

func appendKnown(list []int64, ids ...int64) []int64 {
	for _, id := range ids {
		if id != 0 {
			list = append(list, id)
		}
	}
	return list
}

func (f *Findings) findEnded(ctx context.Context, tx *store.Tx, config RepairConfig) error {
	rows, err := tx.RepairEnded(ctx, store.RepairEndedParams{
		OlderThan: config.Grace.Seconds(), Action: config.ActionID, Page: maxEnded, Entries: true,
	})
	if err != nil {
		return fmt.Errorf("find ended executions that hold or wait: %w", err)
	}
	f.ended = rows
	for _, row := range rows {
		note := row.Status + ", and still waits in queue " + strconv.FormatInt(row.Waits, 10)
		if row.StateID != 0 {
			note = row.Status + ", and still holds a slot of queue " + strconv.FormatInt(row.StateID, 10)
		}
		f.Drifts = append(f.Drifts, Drift{Kind: DriftEnded, ID: row.ID, Name: row.ActionRef, Note: note})
	}
	return nil
}

func (f *Findings) findStats(ctx context.Context, tx *store.Tx, config RepairConfig) error {
	if config.WithoutStats {
		return nil
	}
	var actions []int64
	if config.ActionID != 0 {
		actions = []int64{config.ActionID}
	}
	rows, err := tx.RepairStats(ctx, actions)
	if err != nil {
		return fmt.Errorf("sum up queues: %w", err)
	}
	for _, row := range rows {
		f.Drifts = append(f.Drifts, statsDrifts(row)...)
		f.fix.actions = append(f.fix.actions, row.ActionID)
	}
	return nil
}
