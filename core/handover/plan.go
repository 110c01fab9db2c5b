package handover

import (
	"context"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// Plan collects what a round needs before it takes any lock.
type Plan struct {
	h        *HandOver
	ids      []int64
	rows     map[int64]store.ReadRoundExecutionsRow
	keys     map[admission.Key]policy.Limit
	queues   map[admission.Key]int64 // filled after every step has planned
	releases map[int64]int
	workers  map[int64]bool
}

func newPlan(h *HandOver) *Plan {
	return &Plan{
		h: h, rows: make(map[int64]store.ReadRoundExecutionsRow), keys: make(map[admission.Key]policy.Limit),
		releases: make(map[int64]int), workers: make(map[int64]bool),
	}
}

// Row returns the row of an execution as it was read without locks.
func (p *Plan) Row(id int64) (store.ReadRoundExecutionsRow, bool) {
	row, ok := p.rows[id]
	return row, ok
}

// LoadRules makes the rules of these actions known.
func (p *Plan) LoadRules(ctx context.Context, ids []int64, refs []string) error {
	return p.h.rules.load(ctx, p.h.store.Queries, ids, refs)
}

// Rule returns the rule of an execution's action, by id or by reference.
func (p *Plan) Rule(id *int64, ref string) (Rule, bool) { return p.h.rules.find(id, ref) }

// NeedKey asks for the queue of a key, made with this limit if it is missing.
func (p *Plan) NeedKey(key admission.Key, limit policy.Limit) { p.keys[key] = limit }

// NeedQueue asks for the lock of a queue that an entry names.
func (p *Plan) NeedQueue(queue int64) { p.releases[queue] += 0 }

// NeedRelease asks for the locks that releasing one holder needs.
func (p *Plan) NeedRelease(queue int64, worker *int64) {
	p.releases[queue]++
	if worker != nil {
		p.workers[*worker] = true
	}
}

// released is how many releases are planned.
func (p *Plan) released() int {
	n := 0
	for _, planned := range p.releases {
		n += planned
	}
	return n
}
