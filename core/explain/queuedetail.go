package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
)

// siblingQueues bounds the listed queues of the same action.
const siblingQueues = 20

// QueueRef names a queue by id, or by action and group.
type QueueRef struct {
	ID     int64
	Action string
	// Group is the JSON object of the group's values; empty is the action's plain queue.
	Group string
}

// QueueDetail is everything about one queue.
type QueueDetail struct {
	monitor.Reading
	monitor.Queue
	// Exists is false until the first execution creates the queue. Its policies are known before.
	Exists bool `json:"exists"`
	// Groups lists the busiest other queues of the action.
	Groups     []monitor.Queue `json:"groups"`
	MoreGroups bool            `json:"more_groups,omitempty"`
	// GroupedBy names the parameters that make groups, Together sums up all queues; set when an
	// action was requested instead of a queue.
	GroupedBy []string              `json:"grouped_by,omitempty"`
	Together  *monitor.ActionTotals `json:"together,omitempty"`
	// Scope is the shared limit that blocks the head.
	Holders      *monitor.Holders     `json:"holders"`
	Scope        *monitor.Scope       `json:"scope"`
	ScopeHolders *monitor.Holders     `json:"scope_holders"`
	Policies     []monitor.PolicyLine `json:"policies"`
	// Timing covers the latest admissions.
	Timing monitor.Timing `json:"timing"`
	Ages   *monitor.Ages  `json:"ages"`
	Drain  Drain          `json:"drain"`
	// Empties is when the queue will be empty at that rate.
	Empties Expected `json:"empties"`
	// TimingOut is nil without a timeout, while the queue is paused and while no execution waits.
	TimingOut *TimingOut `json:"timing_out"`
}

// QueueDetail reads everything about one queue. Its cost does not depend on the length of the queue.
// A missing id is ErrNotFound, an impossible group an *admission.TargetError, an unknown action an
// *UnknownActionError. ErrUnmigrated says that the schema records no queues.
func (m *Reader) QueueDetail(ctx context.Context, ref QueueRef) (*QueueDetail, error) {
	d := &QueueDetail{}
	err := m.Read(ctx, "queue "+ref.String(), &d.Reading,
		func(ctx context.Context, tx *store.Tx, s monitor.Shape) error {
			reading := d.Reading
			*d = QueueDetail{Reading: reading} // the transaction may be repeated
			if !s.Ours {
				return monitor.ErrUnmigrated
			}
			action, err := m.findQueue(ctx, tx, ref, d)
			if err != nil {
				return err
			}
			p, err := monitor.ReadPolicies(ctx, tx, action.ID, action.PackID, action.ParamSchema)
			if err != nil {
				return err
			}
			if ref.ID == 0 && ref.Group == "" {
				if err := together(ctx, tx, p, d); err != nil {
					return err
				}
			}
			if err := m.siblings(ctx, tx, action.ID, d); err != nil {
				return err
			}
			return m.queueDetail(ctx, tx, p, d)
		})
	return d, err
}

// String names the queue as requested.
func (r QueueRef) String() string {
	if r.ID != 0 {
		return strconv.FormatInt(r.ID, 10)
	}
	return strings.TrimSpace(r.Action + " " + r.Group)
}

// findQueue finds the queue and its action. A missing queue is no error if the policies would make
// it.
func (m *Reader) findQueue(ctx context.Context, tx *store.Tx, ref QueueRef,
	d *QueueDetail,
) (a store.ViewActionRow, err error) {
	var target admission.Target
	ids := []int64{ref.ID}
	if ref.ID == 0 {
		if a, err = monitor.FindAction(ctx, tx, ref.Action, 0); err != nil {
			return a, err
		}
		d.ActionID, d.ActionRef = a.ID, a.Ref
		if ref.Group != "" {
			if target, err = admission.FindTarget(ctx, tx.Queries, a.Ref, ref.Group); err != nil {
				return a, fmt.Errorf("find the queue of a group: %w", err)
			}
			d.Group = target.Group
		}
		if ids, err = tx.ViewQueueID(ctx, a.ID, d.Group); err != nil {
			return a, fmt.Errorf("find the queue of action %s: %w", a.Ref, err)
		}
	}
	queues, err := m.QueuesByID(ctx, tx, ids)
	switch {
	case err != nil:
		return a, err
	case len(queues) > 0:
		d.Queue, d.Exists = queues[0], true
	case ref.ID != 0:
		return a, fmt.Errorf("queue %d: %w", ref.ID, monitor.ErrNotFound)
	case d.Group != "":
		return a, target.Fits()
	}
	if ref.ID != 0 {
		return monitor.FindAction(ctx, tx, "", d.ActionID)
	}
	return a, nil
}

// together sums up all queues of an action with groups.
func together(ctx context.Context, tx *store.Tx, p *monitor.Policies, d *QueueDetail) error {
	if len(p.Limits.Queue.Parameters) == 0 {
		return nil
	}
	t, err := tx.ViewActionTotals(ctx, d.ActionID)
	if err != nil {
		return fmt.Errorf("sum up the queues of action %s: %w", d.ActionRef, err)
	}
	d.GroupedBy, d.Together = p.Limits.Queue.Parameters, new(monitor.ActionTotals(t))
	return nil
}

// siblings lists the other queues of the action.
func (m *Reader) siblings(ctx context.Context, tx *store.Tx, actionID int64, d *QueueDetail) error {
	ids, err := tx.ViewQueueIDs(ctx, store.ViewQueueIDsParams{ActionID: actionID, Bound: siblingQueues + 2})
	if err != nil {
		return fmt.Errorf("list the queues of action %d: %w", actionID, err)
	}
	list, err := m.QueuesByID(ctx, tx, ids)
	if err != nil {
		return err
	}
	for _, q := range list {
		if q.ID != d.ID && len(d.Groups) < siblingQueues {
			d.Groups = append(d.Groups, q)
		}
	}
	d.MoreGroups = len(list) > siblingQueues+1
	return nil
}

func (m *Reader) queueDetail(ctx context.Context, tx *store.Tx, p *monitor.Policies, d *QueueDetail) (err error) {
	var q *monitor.Queue
	if d.Exists {
		q = &d.Queue
	}
	if d.Policies, err = p.Lines(ctx, tx, q, paramsOf(p, d.Group), d.At); err != nil || q == nil {
		return err
	}
	if d.Holders, err = m.QueueHolders(ctx, tx, q, d.At); err != nil {
		return err
	}
	if d.Scope, d.ScopeHolders, err = m.Keeper(ctx, tx, q, d.At); err != nil {
		return err
	}
	f, list, err := m.forecast(ctx, tx, q, p, d.Policies, d.At)
	if err != nil {
		return err
	}
	d.Timing, d.Drain = monitor.TimingOf(list), f.drain()
	if d.Queued > 0 {
		d.Empties = f.start(d.Queued)
	}
	if d.TimingOut, err = f.readTimingOut(ctx, tx); err != nil {
		return err
	}
	d.Ages, err = monitor.ReadAges(ctx, tx, q)
	return err
}

// paramsOf rebuilds parameters from a group; nil if a shared limit groups by others.
func paramsOf(p *monitor.Policies, group string) map[string]any {
	var values map[string]any
	decoder := json.NewDecoder(strings.NewReader(group))
	decoder.UseNumber()
	if group == "" || decoder.Decode(&values) != nil {
		return nil
	}
	for _, w := range p.Limits.Shared {
		for _, path := range w.Parameters {
			if _, ok := values[path]; !ok {
				return nil
			}
		}
	}
	params := map[string]any{}
	for path, value := range values {
		put(params, strings.Split(path, "."), value)
	}
	return params
}

// put sets a value at a path of objects.
func put(into map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		next, ok := into[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			into[key] = next
		}
		into = next
	}
	into[path[len(path)-1]] = value
}
