package scheduler

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// Hinted is a step whose messages can name the queues that it needs. The batch then reads its
// executions once, under the locks.
type Hinted interface {
	Step
	// Hint names the queues that the step probably needs, as the messages say. It reports false if
	// a message says too little: the batch then reads the executions before it locks, and Plan
	// names the queues.
	//
	// After Hint, the batch calls Plan under the locks, with the current rows. If Plan names a lock
	// that the batch lacks, the batch runs again without hints.
	Hint(ctx context.Context, plan *Plan) (bool, error)
}

// Hint is what a message says about its execution. It may be wrong or empty.
type Hint struct {
	ActionID  int64
	ActionRef string
	Config    []byte // the parameters; nil where the message does not carry them
}

// LoadHinted loads the rules of the named actions.
func (p *Plan) LoadHinted(ctx context.Context, hints []Hint) error {
	var ids []int64
	var refs []string
	for _, hint := range hints {
		if hint.ActionID != 0 {
			ids = append(ids, hint.ActionID)
		} else if hint.ActionRef != "" {
			refs = append(refs, hint.ActionRef)
		}
	}
	return p.LoadRules(ctx, ids, refs)
}

func (p *Plan) hintedRule(hint Hint) (Rule, bool) {
	if hint.ActionID == 0 {
		return p.Rule(nil, hint.ActionRef)
	}
	return p.Rule(&hint.ActionID, hint.ActionRef)
}

// hint lets steps plan from their messages. Executions of the other steps must be read first.
func (p *Plan) hint(ctx context.Context, steps []Step) error {
	for _, step := range steps {
		hinted, ok := step.(Hinted)
		if !ok || len(step.Executions()) == 0 {
			continue
		}
		p.hints = nil
		enough, err := hinted.Hint(ctx, p)
		if err != nil {
			return err
		}
		if !enough {
			continue
		}
		p.hinted = append(p.hinted, hinted)
		for _, ask := range p.hints {
			ask()
		}
	}
	p.hintedBack = maps.Clone(p.scopeBack)
	return nil
}

func (p *Plan) isHinted(step Step) bool {
	return slices.ContainsFunc(p.hinted, func(hinted Hinted) bool { return Step(hinted) == step })
}

// verify plans hinted steps again, under the locks. It reports whether the batch holds every lock
// that they need.
func (p *Plan) verify(ctx context.Context, tx *store.Tx, ledger *admission.Ledger) (bool, error) {
	if len(p.hinted) == 0 {
		return true, nil
	}
	for _, row := range ledger.Rows() {
		if _, read := p.rows[row.ID]; !read {
			p.rows[row.ID] = row
		}
	}
	before := p.size()
	p.queries, p.scopeBack = tx.Queries, make(map[int64]int)
	for _, step := range p.hinted {
		if err := step.Plan(ctx, p); err != nil {
			return false, err
		}
	}
	for id, n := range p.scopeBack {
		if n > p.hintedBack[id] {
			return false, nil
		}
	}
	return p.size() == before, nil
}

// size counts everything that the batch locks or reads for its steps.
func (p *Plan) size() int {
	return len(p.keys) + len(p.releases) + len(p.workers) + len(p.recount) + len(p.lost) +
		len(p.workflows) + len(p.newExecutions) + len(p.scopes) + len(p.firm)
}

type holding struct {
	queue  int64
	scopes []int64 // shared limits of which it holds a slot
}

// maxHoldings bounds the remembered executions and the remembered queues.
const maxHoldings = 50_000

// memory is what earlier batches of this process saw. It only saves reads: every batch verifies it
// under its locks.
type memory struct {
	mu       sync.Mutex
	holdings map[int64]holding   // by execution, where the action alone does not determine the queue
	crowds   map[int64]bool      // queues in which executions waited
	closed   map[int64]bool      // queues with a limit or a pause, or held by another batch
	blocked  bool                // a queue waits for a shared limit or a worker
	refused  map[int64]time.Time // queues whose executions could not be released without a read
}

// refusedFor is how long all executions of a queue are read after one could not be released without: others are
// probably like it, such as tasks of workflows.
const refusedFor = time.Second

func (m *memory) refuse(queues map[int64]int, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused == nil || len(m.refused) > maxHoldings {
		m.refused = make(map[int64]time.Time)
	}
	for id := range queues {
		m.refused[id] = now
	}
}

func (m *memory) refusedLately(queues map[int64]int, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range queues {
		if at, ok := m.refused[id]; ok && now.Sub(at) < refusedFor {
			return true
		}
	}
	return false
}

func (m *memory) holdingOf(execution int64) (holding, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held, ok := m.holdings[execution]
	return held, ok
}

// quiet reports whether these queues had no waiting executions and no queue was blocked beyond its
// own limit.
func (m *memory) quiet(queues map[int64]int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.blocked && none(queues, m.crowds)
}

// none reports whether none of the queues is in a set.
func none(queues map[int64]int, set map[int64]bool) bool {
	for id := range queues {
		if set[id] {
			return false
		}
	}
	return true
}

// open reports whether these queues had no limit, no pause and no waiting executions.
func (m *memory) open(queues map[int64]int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.blocked && none(queues, m.crowds) && none(queues, m.closed)
}

// learn remembers what a committed batch saw.
func (m *memory) learn(b *Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.holdings) > maxHoldings {
		clear(m.holdings)
	}
	m.blocked = b.Ledger.Blocked()
	for _, q := range b.Ledger.Queues() {
		remember(m.crowds, q.ID, q.Queued > 0)
		remember(m.closed, q.ID, q.Max < admission.Unlimited || q.Paused)
	}
	for _, id := range b.plan.queues {
		if b.Ledger.Held(id) {
			remember(m.closed, id, true) // until a batch gets its lock
		}
	}
	for _, id := range b.Ledger.ReleasedIDs() {
		delete(m.holdings, id)
	}
	for _, g := range b.Ledger.Granted() {
		if rule, ok := b.plan.Rule(&g.ActionID, ""); ok && !rule.plain() {
			m.holdings[g.ExecutionID] = holding{queue: g.Queue, scopes: g.Scopes}
		}
	}
}

// remember keeps whether a queue is in a set of bounded size.
func remember(set map[int64]bool, id int64, in bool) {
	if !in {
		delete(set, id)
		return
	}
	if len(set) > maxHoldings {
		clear(set)
	}
	set[id] = true
}

// plain reports whether all executions of the action share one queue and have no other limit.
func (r Rule) plain() bool { return len(r.Limits.Queue.Parameters)+len(r.Limits.Shared) == 0 }

// grouped reports whether a limit of the action depends on parameters.
func (r Rule) grouped() bool {
	return len(r.Limits.Queue.Parameters) > 0 ||
		slices.ContainsFunc(r.Limits.Shared, func(limit policy.SharedLimit) bool { return len(limit.Parameters) > 0 })
}

// HintAdmission plans Needs.Admission from a message. It reports false if the message does not
// determine the queue.
func (n Needs) HintAdmission(hint Hint) bool {
	rule, ok := n.plan.hintedRule(hint)
	switch {
	case !ok, hint.Config == nil && rule.grouped():
		return false
	case rule.Workflow:
		return true // it takes no slot
	}
	n.plan.hints = append(n.plan.hints, func() { n.Admission(rule, hint.Config) })
	return true
}

// HintRelease plans the locks for releasing an execution, from a message and from earlier batches.
// It reports false if the queue is unknown.
func (n Needs) HintRelease(execution int64, hint Hint) bool {
	if held, ok := n.plan.scheduler.memory.holdingOf(execution); ok {
		n.plan.hints = append(n.plan.hints, func() { n.Release(held.queue, held.scopes) })
		return true
	}
	rule, ok := n.plan.hintedRule(hint)
	switch {
	case !ok, !rule.plain():
		return false
	case rule.Workflow:
		return true
	}
	n.plan.hints = append(n.plan.hints, func() { n.plan.hintReleases[n.Admission(rule, nil)]++ })
	return true
}
