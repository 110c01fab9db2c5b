package admission

import (
	"context"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/store"
)

// Move changes the places of waiting executions. One of its fields is set.
type Move struct {
	Front bool    // before all others of their lane, in their present order
	Lane  *int16  // into this lane, 1, 0 or -1, in the order of arrival
	Back  []Place // back to where these moves took them from
}

// Place is a move of a waiting execution in its queue.
type Place struct {
	Execution int64 `json:"execution_id"`
	Queue     int64 `json:"queue_id"`
	FromLane  int16 `json:"from_lane"`
	FromOrder int64 `json:"from_order"`
	Lane      int16 `json:"lane"`
	Order     int64 `json:"order"`
}

// Moved is what a move changed.
type Moved struct {
	Places  []Place
	Already int    // they are in the lane, or another move took them elsewhere
	Gone    int    // they do not wait
	Heads   []Head // of the queues, whose new heads may be admissible
}

// MoveEntries moves waiting executions in the caller's transaction, under the locks of their queues. Executions that
// were admitted before the lock are not touched.
//
// A moved execution takes nothing from other queues: its queue keeps its turns at shared limits and workers, and the
// new first execution has the turn that the old one had.
func MoveEntries(ctx context.Context, tx *store.Tx, ids []int64, move Move) (*Moved, error) {
	before, err := tx.ControlPlaces(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read the places of %d executions: %w", len(ids), err)
	}
	var queues []int64
	for _, row := range before {
		queues = append(queues, row.StateID)
	}
	queues = slices.Compact(queues)
	if _, err := tx.RepairLockQueues(ctx, queues); err != nil {
		return nil, fmt.Errorf("lock %d queues: %w", len(queues), err)
	}
	rows, err := tx.ControlPlaces(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read the places of %d executions: %w", len(ids), err)
	}
	for _, row := range rows {
		if !slices.Contains(queues, row.StateID) {
			return nil, fmt.Errorf("execution %d joined queue %d: %w", row.ExecutionID, row.StateID, ErrConflict)
		}
	}
	moved := &Moved{Places: move.places(rows), Gone: len(ids) - len(rows)}
	moved.Already = len(rows) - len(moved.Places)
	if len(moved.Places) == 0 {
		return moved, nil
	}
	if err := move.write(ctx, tx, moved.Places); err != nil {
		return nil, fmt.Errorf("move %d executions: %w", len(moved.Places), err)
	}
	moved.Heads, err = Heads(ctx, tx.Queries, queues)
	return moved, err
}

// places computes the moves of waiting executions, which come in the order of their queues.
func (m Move) places(rows []store.ControlPlacesRow) []Place {
	waiting, nth := map[int64]int64{}, map[int64]int64{}
	for _, row := range rows {
		waiting[row.StateID]++
	}
	back := make(map[int64]Place, len(m.Back))
	for _, place := range m.Back {
		back[place.Execution] = place
	}
	var places []Place
	for _, row := range rows {
		place := Place{
			Execution: row.ExecutionID, Queue: row.StateID, FromLane: row.Lane, FromOrder: row.QueueOrder,
			Lane: row.Lane, Order: row.QueueOrder,
		}
		switch old := back[row.ExecutionID]; {
		case m.Front:
			nth[row.StateID]++
			place.Order = row.FrontOrder - waiting[row.StateID] + nth[row.StateID]
		case m.Lane != nil:
			place.Lane = *m.Lane
		case old.Queue == row.StateID && old.Lane == row.Lane && old.Order == row.QueueOrder:
			place.Lane, place.Order = old.FromLane, old.FromOrder
		}
		if place.Lane != place.FromLane || place.Order != place.FromOrder {
			places = append(places, place)
		}
	}
	return places
}

// spot is a lane of a queue.
type spot struct {
	queue int64
	lane  int16
}

func (m Move) write(ctx context.Context, tx *store.Tx, places []Place) error {
	var arg store.ControlMoveEntriesParams
	var queues, lanesOf []int64
	var lanes []int16
	through := map[spot]int64{} // the last order that a move passed, of each lane in which the order changes
	for _, p := range places {
		arg.Executions = append(arg.Executions, p.Execution)
		arg.FromLanes, arg.FromOrders = append(arg.FromLanes, p.FromLane), append(arg.FromOrders, p.FromOrder)
		arg.Lanes, arg.Orders = append(arg.Lanes, p.Lane), append(arg.Orders, p.Order)
		queues = append(queues, p.Queue)
		if p.Lane != p.FromLane {
			lanesOf, lanes = append(lanesOf, p.Execution), append(lanes, p.Lane)
			continue
		}
		at, last := spot{queue: p.Queue, lane: p.Lane}, max(p.FromOrder, p.Order)
		if known, ok := through[at]; !ok || known < last {
			through[at] = last
		}
	}
	slices.Sort(queues)
	queues = slices.Compact(queues)
	written, err := tx.ControlMoveEntries(ctx, arg)
	if err == nil && len(written) != len(places) {
		err = fmt.Errorf("%d of %d entries: %w", len(written), len(places), ErrConflict)
	}
	if err == nil {
		_, err = tx.ControlMoveStates(ctx, queues)
	}
	if err == nil && len(lanes) > 0 {
		err = tx.ControlSetPriorities(ctx, lanesOf, lanes)
	}
	if err != nil || len(through) == 0 {
		return err
	}
	var states, orders []int64
	lanes = nil
	for at, last := range through {
		states, lanes, orders = append(states, at.queue), append(lanes, at.lane), append(orders, last)
	}
	if err := tx.ControlTakeTickets(ctx, states, lanes, orders); err != nil {
		return err
	}
	return tx.ControlGiveTickets(ctx, states)
}
