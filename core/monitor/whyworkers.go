package monitor

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
)

// readFleet reads the workers as placement sees them.
func (m *Monitor) readFleet(ctx context.Context, tx *store.Tx) ([]placement.Worker, error) {
	rows, err := tx.ViewFleet(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the workers that could take it: %w", err)
	}
	list := make([]placement.Worker, len(rows))
	for i, r := range rows {
		list[i] = placement.Row{
			ID: r.ID, Name: r.Name, Host: r.Host, Status: string(r.Status), Cordoned: r.Cordoned, Draining: r.Draining,
			Suspect: r.Suspect, SuspectReason: r.SuspectReason, HeartbeatAge: r.HeartbeatAge,
			Capabilities: r.Capabilities, Assigned: int(r.Assigned),
		}.Worker(m.cfg.StaleAfter)
	}
	return list, nil
}

// actionNeed reads what an action asks of its workers. One that is gone asks
// for nothing.
func actionNeed(ctx context.Context, tx *store.Tx, id int64, ref string) (placement.Need, error) {
	rows, err := tx.ReadActionRules(ctx, []int64{id}, []string{ref})
	if err != nil {
		return placement.Need{}, fmt.Errorf("read what action %d asks of its workers: %w", id, err)
	}
	if len(rows) == 0 {
		return placement.Need{}, nil
	}
	row := rows[0]
	spec := placement.Spec{
		Version: row.RuntimeVersionConstraint, Required: row.RequiredWorkerRuntimes,
		Selector: row.WorkerSelector, Tolerations: row.WorkerTolerations, Affinity: row.WorkerAffinity,
	}
	if row.RuntimeName != nil {
		spec.Runtimes = append([]string{*row.RuntimeName}, row.RuntimeAliases...)
	}
	return placement.NewNeed(spec), nil
}
