package scheduler

import (
	"context"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// scopes maps the keys of shared limits to their rules.
type scopes map[admission.ScopeKey]policy.SharedLimit

// Plan collects what a batch needs before it takes any lock.
type Plan struct {
	scheduler     *Scheduler
	rules         *ruleSet
	ids           []int64
	rows          map[int64]store.ReadBatchExecutionsRow
	keys          map[admission.Key]policy.Limit
	queues        map[admission.Key]int64 // filled after every step has planned
	releases      map[int64]int
	workers       map[int64]bool
	recount       map[int64]bool
	lost          []int64
	workflows     map[int64]SeenWorkflow
	newExecutions []*NewExecution

	sparing
	firm   map[int64]bool // queues whose locks the batch waits for
	firmBy map[admission.Key]bool
	claims map[int64]*claim // by execution

	hinted       []Hinted              // steps that planned from their messages
	hints        []func()              // needs of a step, kept only if all its messages say enough
	hintReleases map[admission.Key]int // planned releases of queues known by key only
	hintedBack   map[int64]int         // scopeBack of the hinted steps
	queries      *store.Queries        // without locks; of the batch's transaction once it has locked

	scopes    scopes
	scopeIDs  map[admission.ScopeKey]int64 // filled after every step has planned
	scopeBack map[int64]int                // planned releases of shared limits
}

// sparing says which executions a batch may leave for another one.
type sparing struct {
	spares  bool           // steps may leave executions
	insists map[int64]bool // except these
}

// claim lists the queues that an execution needs which may be left for another batch.
type claim struct {
	queues []int64
	keys   []admission.Key
}

func newPlan(s *Scheduler, spare sparing, carried scopes) *Plan {
	plan := &Plan{
		sparing: spare, scheduler: s, rules: s.rules.ruleSet(), queries: s.store.Queries,
		rows: make(map[int64]store.ReadBatchExecutionsRow), keys: make(map[admission.Key]policy.Limit),
		releases: make(map[int64]int), workers: make(map[int64]bool), recount: make(map[int64]bool),
		workflows: make(map[int64]SeenWorkflow),
		firm:      make(map[int64]bool), firmBy: make(map[admission.Key]bool), claims: make(map[int64]*claim),
		hintReleases: make(map[admission.Key]int), scopes: make(scopes), scopeBack: make(map[int64]int),
	}
	maps.Copy(plan.scopes, carried)
	return plan
}

// Row returns the row of an execution: read without locks, or under them for a hinted step.
func (p *Plan) Row(id int64) (store.ReadBatchExecutionsRow, bool) {
	row, ok := p.rows[id]
	return row, ok
}

// Queries reads further rows that a step needs.
func (p *Plan) Queries() *store.Queries { return p.queries }

// LoadRules loads the rules of these actions.
func (p *Plan) LoadRules(ctx context.Context, ids []int64, refs []string) error {
	return p.rules.load(ctx, p.queries, ids, refs)
}

// Rule returns the rule of an execution's action, by id or by reference.
func (p *Plan) Rule(id *int64, ref string) (Rule, bool) { return p.rules.find(id, ref) }

// Spare returns the needs of an execution that may be left for another batch. If that batch holds a
// queue that the execution needs, this batch does not wait for it, and Batch.Left reports true. In
// a batch that leaves nothing, Spare equals Firm.
func (p *Plan) Spare(execution int64) Needs {
	if !p.spares || p.insists[execution] {
		return p.Firm()
	}
	c := p.claims[execution]
	if c == nil {
		c = &claim{}
		p.claims[execution] = c
	}
	return Needs{plan: p, claim: c}
}

// Firm returns needs whose locks the batch waits for.
func (p *Plan) Firm() Needs { return Needs{plan: p} }

// NeedAdmission is Needs.Admission of Firm.
func (p *Plan) NeedAdmission(rule Rule, config []byte) admission.Key {
	return p.Firm().Admission(rule, config)
}

// NeedQueue is Needs.Queue of Firm.
func (p *Plan) NeedQueue(queue int64) { p.Firm().Queue(queue) }

// NeedRelease is Needs.Release of Firm.
func (p *Plan) NeedRelease(queue int64, scopes []int64) { p.Firm().Release(queue, scopes) }

// Needs collects locks.
type Needs struct {
	plan  *Plan
	claim *claim // nil: the batch waits for the locks
}

// Admission requests everything that admitting an execution may take: its queue (created if
// missing) and its shared limits.
func (n Needs) Admission(rule Rule, config []byte) admission.Key {
	key := rule.Key(config)
	n.plan.keys[key] = rule.Limits.Queue
	for i, scope := range rule.scopes(config) {
		n.plan.scopes[scope] = rule.Limits.Shared[i]
	}
	if n.claim != nil {
		n.claim.keys = append(n.claim.keys, key)
	} else {
		n.plan.firmBy[key] = true
	}
	return key
}

// Queue requests the lock of a queue by id.
func (n Needs) Queue(queue int64) {
	n.plan.releases[queue] += 0
	if n.claim != nil {
		n.claim.queues = append(n.claim.queues, queue)
	} else {
		n.plan.firm[queue] = true
	}
}

// Release requests the locks for releasing one holder.
func (n Needs) Release(queue int64, scopes []int64) {
	n.Queue(queue)
	n.plan.releases[queue]++
	for _, id := range scopes {
		n.plan.scopeBack[id]++
	}
}

// NeedWorker requests the state of a worker: Live and Gone of the ledger.
func (p *Plan) NeedWorker(worker int64) { p.workers[worker] = true }

// NeedCount requests a recount of a queue's waiting executions.
func (p *Plan) NeedCount(queue int64) {
	p.NeedQueue(queue)
	p.recount[queue] = true
}

// NeedLost requests the note that a deleted execution left.
func (p *Plan) NeedLost(note int64) { p.lost = append(p.lost, note) }

func (p *Plan) released() int {
	n := 0
	for _, planned := range p.releases {
		n += planned
	}
	for _, planned := range p.hintReleases {
		n += planned
	}
	return n
}

// wantedScopes are the shared limits to lock, with the releases that the batch plans.
func (p *Plan) wantedScopes() map[int64]admission.ScopeWant {
	wanted := make(map[int64]admission.ScopeWant, len(p.scopeIDs)+len(p.scopeBack))
	for id, n := range p.scopeBack {
		wanted[id] = admission.ScopeWant{Releases: n}
	}
	for key, id := range p.scopeIDs {
		limit := p.scopes[key]
		wanted[id] = admission.ScopeWant{Rule: &limit, Releases: p.scopeBack[id]}
	}
	return wanted
}

// open reports whether the batch can do without the locks of its queues, as far as its steps and
// the rules of its actions tell.
func (p *Plan) open(steps []Step) bool {
	if len(p.keys) == 0 || len(p.scopes)+len(p.scopeBack)+len(p.workflows)+len(p.recount)+len(p.lost) > 0 {
		return false
	}
	for _, limit := range p.keys {
		if !limit.Unlimited {
			return false
		}
	}
	return !slices.ContainsFunc(steps, func(step Step) bool {
		optimistic, ok := step.(Optimistic)
		return !ok || !optimistic.Optimistic()
	})
}
