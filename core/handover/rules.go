package handover

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// rulesMaxAge is how long a change of an action or its policy may take to be
// noticed.
const rulesMaxAge = time.Second

// maxCachedRules bounds the cache of actions.
const maxCachedRules = 20_000

// Rule is what an action says about its executions.
type Rule struct {
	ActionID    int64
	ActionRef   string
	Workflow    bool
	ParamSchema []byte
	Limit       policy.Limit
	Need        placement.Need
}

// rules caches actions with their policies.
type rules struct {
	now func() time.Time

	mu    sync.Mutex
	byID  map[int64]cachedRule
	byRef map[string]int64
}

type cachedRule struct {
	rule Rule
	read time.Time
}

func newRules(now func() time.Time) *rules {
	return &rules{now: now, byID: make(map[int64]cachedRule), byRef: make(map[string]int64)}
}

// load makes sure that the rules of these actions are known and fresh. q is
// the store or the round's transaction.
func (r *rules) load(ctx context.Context, q *store.Queries, ids []int64, refs []string) error {
	staleIDs, staleRefs := r.stale(ids, refs)
	if len(staleIDs)+len(staleRefs) == 0 {
		return nil
	}
	rows, err := q.ReadActionRules(ctx, staleIDs, staleRefs)
	if err != nil {
		return fmt.Errorf("read the rules of %d actions: %w", len(staleIDs)+len(staleRefs), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.evict()
	for _, id := range staleIDs {
		delete(r.byID, id)
	}
	for _, ref := range staleRefs {
		delete(r.byRef, ref)
	}
	for _, row := range rows {
		r.byID[row.ID] = cachedRule{rule: ruleOf(row), read: r.now()}
		r.byRef[row.Ref] = row.ID
	}
	return nil
}

// rulesKeptFor is how long a rule that is in use by some round may be needed
// after it was read; no round lasts longer.
const rulesKeptFor = time.Minute

// evict makes room when there are too many rules, but never takes one that a
// round under way has read: its executions would seem to have no action.
func (r *rules) evict() {
	if len(r.byID) <= maxCachedRules {
		return
	}
	old := func(c cachedRule) bool { return r.now().Sub(c.read) > rulesKeptFor }
	for ref, id := range r.byRef {
		if c, ok := r.byID[id]; !ok || old(c) {
			delete(r.byRef, ref)
		}
	}
	for id, c := range r.byID {
		if old(c) {
			delete(r.byID, id)
		}
	}
}

func (r *rules) stale(ids []int64, refs []string) (staleIDs []int64, staleRefs []string) {
	staleIDs, staleRefs = []int64{}, []string{} // never nil: a NULL array is not an empty one
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := func(id int64) bool {
		c, ok := r.byID[id]
		return ok && r.now().Sub(c.read) < rulesMaxAge
	}
	seen := map[int64]bool{}
	for _, id := range ids {
		if !seen[id] && !fresh(id) {
			seen[id] = true
			staleIDs = append(staleIDs, id)
		}
	}
	seenRef := map[string]bool{}
	for _, ref := range refs {
		if id, ok := r.byRef[ref]; !seenRef[ref] && (!ok || !fresh(id)) {
			seenRef[ref] = true
			staleRefs = append(staleRefs, ref)
		}
	}
	return staleIDs, staleRefs
}

// find returns the rule of an action, by id or, when id is nil or gone, by
// reference.
func (r *rules) find(id *int64, ref string) (Rule, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id != nil {
		if c, ok := r.byID[*id]; ok {
			return c.rule, true
		}
	}
	if found, ok := r.byRef[ref]; ok {
		c, ok := r.byID[found]
		return c.rule, ok
	}
	return Rule{}, false
}

func ruleOf(row store.ReadActionRulesRow) Rule {
	rule := Rule{
		ActionID: row.ID, ActionRef: row.Ref, Workflow: row.WorkflowDef != nil,
		ParamSchema: row.ParamSchema, Limit: policy.None,
	}
	if row.RuntimeName != nil {
		rule.Need.Runtimes = placement.NormalizeRuntimes(append([]string{*row.RuntimeName}, row.RuntimeAliases...))
	}
	if row.PolicyID != 0 {
		rule.Limit = policy.Of(&policy.Policy{
			ID: row.PolicyID, Ref: row.PolicyRef, Threshold: int(row.Threshold),
			Method: policy.Method(row.Method), Parameters: row.Parameters,
		})
	}
	return rule
}
