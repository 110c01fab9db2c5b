package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/nearest"
	"github.com/attune-go/attune/core/store"
)

// siblingQueues is how many other queues of the same action a detail lists.
const siblingQueues = 20

// hintRefs bounds how many refs are read to find the nearest one.
const hintRefs = 5_000

// QueueRef names a queue: by its id, or by an action and a group.
type QueueRef struct {
	ID     int64
	Action string
	// Group is the JSON object of a group's values, in any spelling; empty means
	// the action's plain queue.
	Group string
}

// UnknownActionError says that no action has the ref.
type UnknownActionError struct {
	Ref     string
	Nearest string // empty when none is alike
}

// Error names the ref and the nearest one.
func (e *UnknownActionError) Error() string {
	if e.Nearest == "" {
		return "there is no action " + e.Ref
	}
	return "there is no action " + e.Ref + "; the nearest is " + e.Nearest
}

// ErrUnmigrated says that the database lacks what the question is about.
var ErrUnmigrated = errors.New("this database has not been migrated by this engine, which alone records that: run `attune-executor migrate up`")

// QueueDetail is everything about one queue that people ask for.
type QueueDetail struct {
	Reading
	Queue
	// Exists is false while no execution of the action has made the queue; the
	// policies are known all the same.
	Exists bool `json:"exists"`
	// Groups lists the busiest other queues of the same action, and MoreGroups
	// says that there are further ones.
	Groups     []Queue `json:"groups"`
	MoreGroups bool    `json:"more_groups,omitempty"`
	// GroupedBy names the parameters by whose values the action has queues of
	// their own, and Together what all of them hold; set when the action was asked
	// for and not one queue.
	GroupedBy []string      `json:"grouped_by,omitempty"`
	Together  *ActionTotals `json:"together,omitempty"`
	// Holders hold the slots, Scope is the shared limit that keeps the head.
	Holders      *Holders     `json:"holders"`
	Scope        *Scope       `json:"scope"`
	ScopeHolders *Holders     `json:"scope_holders"`
	Policies     []PolicyLine `json:"policies"`
	// Timing covers the executions that were admitted last.
	Timing Timing `json:"timing"`
	Ages   *Ages  `json:"ages"`
	Drain  Drain  `json:"drain"`
	// Empties is when the queue will have drained at that rate.
	Empties Expected `json:"empties"`
}

// ActionTotals is what all queues of an action hold together.
type ActionTotals struct {
	// Groups is how many groups have a queue.
	Groups int64 `json:"groups"`
	Queued int64 `json:"queued"`
	Active int64 `json:"active"`
}

// QueueDetail reads everything about one queue, at a cost that does not depend
// on how many wait. A queue id that does not exist is ErrNotFound; a group that
// the action's policies cannot make is an *admission.TargetError, as it is for
// acts on queues; an action that does not exist is an *UnknownActionError, and
// ErrUnmigrated says that nobody records queues here.
func (m *Monitor) QueueDetail(ctx context.Context, ref QueueRef) (*QueueDetail, error) {
	d := &QueueDetail{}
	err := m.database(ctx, "queue "+ref.String(), &d.Reading, func(ctx context.Context, tx *store.Tx, s shape) error {
		reading := d.Reading
		*d = QueueDetail{Reading: reading} // the transaction may be repeated
		if !s.shared {
			return ErrUnmigrated
		}
		action, err := m.findQueue(ctx, tx, ref, d)
		if err != nil {
			return err
		}
		p, err := readPolicies(ctx, tx, action.ID, action.PackID, action.ParamSchema)
		if err != nil {
			return err
		}
		if err := p.fits(d); err != nil {
			return err
		}
		if ref.ID == 0 && ref.Group == "" {
			if err := p.together(ctx, tx, d); err != nil {
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

// String is the name by which the queue was asked for.
func (r QueueRef) String() string {
	if r.ID != 0 {
		return strconv.FormatInt(r.ID, 10)
	}
	return strings.TrimSpace(r.Action + " " + r.Group)
}

// findQueue finds the queue and its action.
func (m *Monitor) findQueue(ctx context.Context, tx *store.Tx, ref QueueRef, d *QueueDetail) (store.ViewActionRow, error) {
	if ref.ID != 0 {
		found, err := m.queueByID(ctx, tx, ref.ID, d)
		if err == nil && !found {
			err = fmt.Errorf("queue %d: %w", ref.ID, ErrNotFound)
		}
		if err != nil {
			return store.ViewActionRow{}, err
		}
		return action(ctx, tx, "", d.ActionID)
	}
	a, err := action(ctx, tx, ref.Action, 0)
	if err != nil {
		return a, err
	}
	d.ActionID, d.ActionRef = a.ID, a.Ref
	return a, m.queueOfAction(ctx, tx, a, ref.Group, d)
}

func (m *Monitor) queueByID(ctx context.Context, tx *store.Tx, id int64, d *QueueDetail) (bool, error) {
	queues, err := m.queuesByID(ctx, tx, []int64{id})
	if err != nil || len(queues) == 0 {
		return false, err
	}
	d.Queue, d.Exists = queues[0], true
	return true, nil
}

// queueOfAction finds the queue of a group, without a group the plain one. That
// it does not exist yet is no error if the policies in force would make it.
func (m *Monitor) queueOfAction(ctx context.Context, tx *store.Tx, a store.ViewActionRow, group string, d *QueueDetail) error {
	if group != "" {
		target, err := admission.FindTarget(ctx, tx.Queries, a.Ref, group)
		if err != nil {
			return fmt.Errorf("find the queue of a group: %w", err)
		}
		group = target.Group
	}
	ids, err := tx.ViewQueueID(ctx, a.ID, group)
	if err != nil {
		return fmt.Errorf("find the queue of action %s: %w", a.Ref, err)
	}
	if len(ids) > 0 {
		_, err := m.queueByID(ctx, tx, ids[0], d)
		return err
	}
	d.Group = group
	return nil
}

// fits reports whether the policies in force make the group of a queue that
// does not exist, in the words of acts on queues.
func (p *policies) fits(d *QueueDetail) error {
	if d.Exists || d.Group == "" {
		return nil
	}
	var values map[string]any
	if err := json.Unmarshal([]byte(d.Group), &values); err != nil {
		return &admission.TargetError{Kind: admission.ErrGroup, Text: fmt.Sprintf("%s is not a group of parameter values: %v", d.Group, err)}
	}
	wanted := slices.Clone(p.limits.Queue.Parameters)
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	switch {
	case len(wanted) == 0:
		return &admission.TargetError{
			Kind: admission.ErrNoQueue,
			Text: fmt.Sprintf("there is no queue %s: no policy groups the executions of %s", d.Name(), d.ActionRef),
		}
	case !slices.Equal(wanted, slices.Sorted(maps.Keys(values))):
		return &admission.TargetError{
			Kind: admission.ErrGroup,
			Text: fmt.Sprintf("%s is not a group of %s: its policy groups by %s", d.Group, d.ActionRef, strings.Join(wanted, ", ")),
		}
	}
	return nil
}

// together adds what all queues of an action with groups hold.
func (p *policies) together(ctx context.Context, tx *store.Tx, d *QueueDetail) error {
	if len(p.limits.Queue.Parameters) == 0 {
		return nil
	}
	t, err := tx.ViewActionTotals(ctx, d.ActionID)
	if err != nil {
		return fmt.Errorf("sum up the queues of action %s: %w", d.ActionRef, err)
	}
	d.GroupedBy, d.Together = p.limits.Queue.Parameters, &ActionTotals{Groups: t.Groups, Queued: t.Queued, Active: t.Active}
	return nil
}

// action finds an action by ref or id.
func action(ctx context.Context, tx *store.Tx, ref string, id int64) (store.ViewActionRow, error) {
	rows, err := tx.ViewAction(ctx, ref, id)
	if err != nil {
		return store.ViewActionRow{}, fmt.Errorf("read action %s: %w", ref, err)
	}
	if len(rows) > 0 {
		return rows[0], nil
	}
	refs, err := tx.ViewActionRefs(ctx, hintRefs)
	if err != nil {
		refs = nil // the hint is not worth a second error
	}
	return store.ViewActionRow{}, &UnknownActionError{Ref: ref, Nearest: nearest.Of(ref, refs)}
}

// siblings lists the other queues of the action.
func (m *Monitor) siblings(ctx context.Context, tx *store.Tx, actionID int64, d *QueueDetail) error {
	ids, err := tx.ViewQueueIDs(ctx, store.ViewQueueIDsParams{ActionID: actionID, Bound: siblingQueues + 2})
	if err != nil {
		return fmt.Errorf("list the queues of action %d: %w", actionID, err)
	}
	list, err := m.queuesByID(ctx, tx, ids)
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

func (m *Monitor) queueDetail(ctx context.Context, tx *store.Tx, p *policies, d *QueueDetail) (err error) {
	var q *Queue
	if d.Exists {
		q = &d.Queue
	}
	if d.Policies, err = p.lines(ctx, tx, q, p.paramsOf(d.Group), d.At); err != nil || q == nil {
		return err
	}
	if d.Holders, err = m.queueHolders(ctx, tx, q, d.At); err != nil {
		return err
	}
	if d.Scope, d.ScopeHolders, err = m.keeper(ctx, tx, q, d.At); err != nil {
		return err
	}
	f, list, err := m.forecast(ctx, tx, q, p, d.Policies, d.At)
	if err != nil {
		return err
	}
	d.Timing, d.Drain = timing(list), f.drain()
	if d.Queued > 0 {
		d.Empties = f.start(d.Queued, false)
	}
	d.Ages, err = readAges(ctx, tx, q)
	return err
}

// paramsOf rebuilds, from the group of a queue, as much of the parameters as
// shared limits with the same groups need. Where they group by anything else
// their use is not known, and it is nil.
func (p *policies) paramsOf(group string) map[string]any {
	var values map[string]any
	decoder := json.NewDecoder(strings.NewReader(group))
	decoder.UseNumber()
	if group == "" || decoder.Decode(&values) != nil {
		return nil
	}
	for _, w := range p.limits.Wide {
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

// QueueStats is what the published table of queue statistics says of an action.
type QueueStats struct {
	ActionID    int64  `json:"action_id"`
	ActionRef   string `json:"action_ref"`
	QueueLength int64  `json:"queue_length"`
	ActiveCount int64  `json:"active_count"`
	// MaxConcurrent is the limit of the action's queues; nil when nothing limits them,
	// which the table writes as admission.Unlimited.
	MaxConcurrent    *int64     `json:"max_concurrent"`
	OldestEnqueuedAt *time.Time `json:"oldest_enqueued_at"`
	TotalEnqueued    int64      `json:"total_enqueued"`
	TotalCompleted   int64      `json:"total_completed"`
	LastUpdated      time.Time  `json:"last_updated"`
}

// QueueStats reads the published statistics of an action's queues. An action
// that does not exist is an *UnknownActionError; one without statistics, since
// none of its executions was requested yet, is ErrNotFound.
func (m *Monitor) QueueStats(ctx context.Context, ref string) (*QueueStats, error) {
	var out *QueueStats
	err := m.database(ctx, "queue statistics of "+ref, &Reading{}, func(ctx context.Context, tx *store.Tx, _ shape) error {
		a, err := action(ctx, tx, ref, 0)
		if err != nil {
			return err
		}
		rows, err := tx.ViewQueueStats(ctx, a.ID)
		if err != nil {
			return fmt.Errorf("read the queue statistics of action %s: %w", ref, err)
		}
		if len(rows) == 0 {
			return fmt.Errorf("queue statistics of action %s: %w", ref, ErrNotFound)
		}
		r := rows[0]
		out = &QueueStats{
			ActionID: r.ActionID, ActionRef: r.ActionRef, QueueLength: int64(r.QueueLength), ActiveCount: int64(r.ActiveCount),
			OldestEnqueuedAt: r.OldestEnqueuedAt, TotalEnqueued: r.TotalEnqueued, TotalCompleted: r.TotalCompleted, LastUpdated: r.LastUpdated,
		}
		if r.MaxConcurrent < admission.Unlimited {
			out.MaxConcurrent = wide(&r.MaxConcurrent)
		}
		return nil
	})
	return out, err
}
