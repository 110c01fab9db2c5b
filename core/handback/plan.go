package handback

import (
	"cmp"
	"slices"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// rule is the other executor's limit of an action: one policy, with one queue per group. limited is false
// without a policy, and for workflows.
type rule struct {
	limited bool
	most    int32
	paths   []string
	schema  []byte
}

// ruleOf returns the newest policy of the action, else of its pack, else of all actions.
func ruleOf(action store.ReadActionRulesRow, policies []store.ReadPoliciesRow) rule {
	r := rule{schema: action.ParamSchema}
	if action.WorkflowDef != nil {
		return r
	}
	var best *store.ReadPoliciesRow
	scope := func(p *store.ReadPoliciesRow) int {
		switch {
		case p.Action != nil:
			return 0
		case p.Pack != nil:
			return 1
		default:
			return 2
		}
	}
	for i := range policies {
		p := &policies[i]
		mine := p.Action != nil && *p.Action == action.ID || p.Action == nil &&
			(p.Pack == nil || *p.Pack == action.Pack)
		if !mine || policy.Kind(p.Kind) != policy.KindConcurrency {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(scope(p), scope(best)), best.Created.Compare(p.Created),
			cmp.Compare(best.ID, p.ID)) < 0 {
			best = p
		}
	}
	if best != nil {
		r.limited, r.most, r.paths = true, best.Threshold, best.Parameters
	}
	return r
}

// queue names a queue of the other executor; key is empty for no group.
type queue struct {
	action int64
	key    string
}

// entry is one row of the admission entries.
type entry struct {
	execution           int64
	active              bool
	lane                int16
	order               int64
	enqueued, activated time.Time
}

// list is the key of a task over a list: its name and the execution of its workflow.
type list struct {
	parent int64
	task   string
}

// window is the progress of a list.
type window struct {
	most int // children that run at once
	busy int // running children, and those in the queue of their action
	rest []store.LiveExecutionsRow
}

// plan is the set of writes and messages for the live executions.
type plan struct {
	queues map[queue][]entry
	most   map[int64]int32 // limits by action
	lists  map[list]*window
	wake   []int64 // executions to request
}

// add places one live execution.
func (p *plan) add(e store.LiveExecutionsRow, r rule, now time.Time) {
	status := lifecycle.Status(e.Status)
	requested := status == lifecycle.StatusRequested
	if r.limited {
		p.most[e.Action] = r.most
	}
	placed := r.limited && (e.Holds || requested && e.Waits)
	if placed {
		q := queue{e.Action, groupKey(r.paths, policy.WithDefaults(e.Config, r.schema), e.GroupKey)}
		one := entry{
			execution: e.ID, active: e.Holds, lane: e.Lane, order: e.QueueOrder, enqueued: e.EnqueuedAt,
			activated: now,
		}
		if e.AdmittedAt != nil {
			one.activated = *e.AdmittedAt
		}
		p.queues[q] = append(p.queues[q], one)
	}
	w := p.lists[list{e.Parent, e.List}]
	switch waiting := placed && !e.Holds; {
	case w != nil && requested && !placed:
		w.rest = append(w.rest, e)
		return
	case (requested || status == lifecycle.StatusScheduling) && !waiting:
		p.wake = append(p.wake, e.ID)
	}
	if w != nil && status != lifecycle.StatusCanceling {
		w.busy++
	}
}

// finish sorts every queue: active entries, then high, normal and low priority, each in order of arrival. The
// first queued executions get a message for each free slot: the other executor starts a queued execution only
// on a message or a completion. The same holds for the children of lists.
func (p *plan) finish() {
	for _, w := range p.lists {
		if w == nil {
			continue
		}
		slices.SortFunc(w.rest, func(a, b store.LiveExecutionsRow) int { return cmp.Compare(a.Index, b.Index) })
		for _, e := range w.rest[:min(len(w.rest), max(w.most-w.busy, 0))] {
			p.wake = append(p.wake, e.ID)
		}
	}
	for q, entries := range p.queues {
		active := func(e entry) int {
			if e.active {
				return 1
			}
			return 0
		}
		slices.SortFunc(entries, func(a, b entry) int {
			return cmp.Or(cmp.Compare(active(b), active(a)), cmp.Compare(b.lane, a.lane), cmp.Compare(a.order, b.order),
				a.enqueued.Compare(b.enqueued), cmp.Compare(a.execution, b.execution))
		})
		free := int(p.most[q.action])
		for _, one := range entries { // the active entries come first
			if !one.active && free > 0 {
				p.wake = append(p.wake, one.execution)
			}
			free--
		}
	}
}
