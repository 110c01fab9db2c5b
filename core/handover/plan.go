package handover

import (
	"context"
	"maps"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// scopes are shared limits by their keys.
type scopes map[admission.ScopeKey]policy.Wide

// Plan collects what a round needs before it takes any lock.
type Plan struct {
	h         *HandOver
	book      *book
	ids       []int64
	rows      map[int64]store.ReadRoundExecutionsRow
	keys      map[admission.Key]policy.Limit
	queues    map[admission.Key]int64 // filled after every step has planned
	releases  map[int64]int
	workers   map[int64]bool
	recount   map[int64]bool
	lost      []int64
	workflows map[int64]SeenWorkflow

	scopes    scopes
	scopeIDs  map[admission.ScopeKey]int64 // filled after every step has planned
	scopeBack map[int64]int                // planned releases of shared limits
}

func newPlan(h *HandOver, carried scopes) *Plan {
	plan := &Plan{
		h: h, book: h.rules.book(), rows: make(map[int64]store.ReadRoundExecutionsRow),
		keys: make(map[admission.Key]policy.Limit), releases: make(map[int64]int), workers: make(map[int64]bool),
		recount: make(map[int64]bool), workflows: make(map[int64]SeenWorkflow), scopes: make(scopes), scopeBack: make(map[int64]int),
	}
	maps.Copy(plan.scopes, carried)
	return plan
}

// Row returns the row of an execution as it was read without locks.
func (p *Plan) Row(id int64) (store.ReadRoundExecutionsRow, bool) {
	row, ok := p.rows[id]
	return row, ok
}

// Queries reads what a step needs besides, without locks.
func (p *Plan) Queries() *store.Queries { return p.h.store.Queries }

// LoadRules makes the rules of these actions known.
func (p *Plan) LoadRules(ctx context.Context, ids []int64, refs []string) error {
	return p.book.load(ctx, p.h.store.Queries, ids, refs)
}

// Rule returns the rule of an execution's action, by id or by reference.
func (p *Plan) Rule(id *int64, ref string) (Rule, bool) { return p.book.find(id, ref) }

// NeedAdmission asks for everything that admitting an execution of an action
// may take: its queue, made if it is missing, and its shared limits.
func (p *Plan) NeedAdmission(rule Rule, config []byte) admission.Key {
	key := rule.Key(config)
	p.keys[key] = rule.Limits.Queue
	for i, scope := range rule.scopes(config) {
		p.scopes[scope] = rule.Limits.Wide[i]
	}
	return key
}

// NeedQueue asks for the lock of a queue that an entry names.
func (p *Plan) NeedQueue(queue int64) { p.releases[queue] += 0 }

// NeedRelease asks for the locks that releasing one holder needs.
func (p *Plan) NeedRelease(queue int64, scopes []int64) {
	p.releases[queue]++
	for _, id := range scopes {
		p.scopeBack[id]++
	}
}

// NeedWorker asks for how a worker stands: Live and Gone of the ledger.
func (p *Plan) NeedWorker(worker int64) { p.workers[worker] = true }

// NeedCount asks for the lines of a queue to be counted anew.
func (p *Plan) NeedCount(queue int64) {
	p.NeedQueue(queue)
	p.recount[queue] = true
}

// NeedLost asks for the note that a deleted execution left.
func (p *Plan) NeedLost(note int64) { p.lost = append(p.lost, note) }

// released is how many releases are planned.
func (p *Plan) released() int {
	n := 0
	for _, planned := range p.releases {
		n += planned
	}
	return n
}

// wantedScopes are the shared limits to lock, with what the round may do with
// them.
func (p *Plan) wantedScopes() map[int64]admission.ScopeWant {
	wanted := make(map[int64]admission.ScopeWant, len(p.scopeIDs)+len(p.scopeBack))
	for id, n := range p.scopeBack {
		wanted[id] = admission.ScopeWant{Releases: n}
	}
	for key, id := range p.scopeIDs {
		wide := p.scopes[key]
		wanted[id] = admission.ScopeWant{Rule: &wide, Releases: p.scopeBack[id]}
	}
	return wanted
}
