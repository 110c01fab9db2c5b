package scheduler

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// maxCachedRules bounds the cache of actions; beyond it the cache starts empty.
const maxCachedRules = 20_000

// maxPlainScopes bounds the shared limits that every batch locks even if it does not need them.
const maxPlainScopes = 64

// Rule is the configuration of an action for its executions.
type Rule struct {
	ActionID    int64
	ActionRef   string
	Workflow    bool
	ParamSchema []byte
	Limits      policy.Limits
	Need        placement.Need
	MaxRetries  int // default of its executions; a row can override it
}

// Key is the queue of an execution with these parameters.
func (r Rule) Key(config []byte) admission.Key {
	key := admission.Key{ActionID: r.ActionID}
	if len(r.Limits.Queue.Parameters) > 0 {
		key.Group, _ = policy.GroupKey(r.Limits.Queue.Parameters, policy.WithDefaults(config, r.ParamSchema))
	}
	return key
}

// scopes are the shared limits of an execution with these parameters, in the order in which they
// are checked.
func (r Rule) scopes(config []byte) []admission.ScopeKey {
	if len(r.Limits.Shared) == 0 {
		return nil
	}
	var params map[string]any
	keys := make([]admission.ScopeKey, len(r.Limits.Shared))
	for i, limit := range r.Limits.Shared {
		if len(limit.Parameters) > 0 && params == nil {
			params = policy.WithDefaults(config, r.ParamSchema)
		}
		keys[i] = admission.ScopeKey{Kind: limit.Kind, Key: limit.Key(params)}
	}
	return keys
}

// ruleCache caches the rules of actions until any rule changes. The database counts the changes.
// Every batch reads the count under its locks and runs again if it decided by older rules. So
// replicas never disagree about a limit, and an unchanged rule is read once.
type ruleCache struct {
	mu      sync.Mutex
	current *ruleSet
}

// ruleSet holds the rules of one change count.
type ruleSet struct {
	epoch int64

	mu    sync.Mutex
	byID  map[int64]Rule
	byRef map[string]int64
	plain map[admission.ScopeKey]policy.SharedLimit // shared limits without groups, of the loaded rules
}

func newRuleSet(epoch int64) *ruleSet {
	return &ruleSet{
		epoch: epoch, byID: make(map[int64]Rule), byRef: make(map[string]int64),
		plain: make(map[admission.ScopeKey]policy.SharedLimit),
	}
}

// ruleSet returns the rules to plan with.
func (r *ruleCache) ruleSet() *ruleSet {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil || r.current.size() > maxCachedRules {
		epoch := int64(0)
		if r.current != nil {
			epoch = r.current.epoch
		}
		r.current = newRuleSet(epoch)
	}
	return r.current
}

// invalidate starts an empty rule set if the change count differs.
func (r *ruleCache) invalidate(epoch int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil || r.current.epoch != epoch {
		r.current = newRuleSet(epoch)
	}
}

func (b *ruleSet) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.byID)
}

// load loads the rules of these actions that are not cached. q is the store or the batch's
// transaction.
func (b *ruleSet) load(ctx context.Context, q *store.Queries, ids []int64, refs []string) error {
	unknownIDs, unknownRefs := b.unknown(ids, refs)
	if len(unknownIDs)+len(unknownRefs) == 0 {
		return nil
	}
	rows, err := q.ReadActionRules(ctx, unknownIDs, unknownRefs)
	if err != nil {
		return fmt.Errorf("read the rules of %d actions: %w", len(unknownIDs)+len(unknownRefs), err)
	}
	actions, packs := make([]int64, len(rows)), make([]int64, len(rows))
	for i, row := range rows {
		actions[i], packs[i] = row.ID, row.Pack
	}
	policies, err := q.ReadPolicies(ctx, actions, packs)
	if err != nil {
		return fmt.Errorf("read the policies of %d actions: %w", len(actions), err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range rows {
		rule := ruleOf(row, policies)
		b.byID[row.ID], b.byRef[row.Ref] = rule, row.ID
		for _, limit := range rule.Limits.Shared {
			if len(limit.Parameters) == 0 && len(b.plain) < maxPlainScopes {
				b.plain[admission.ScopeKey{Kind: limit.Kind, Key: limit.Base}] = limit
			}
		}
	}
	return nil
}

func (b *ruleSet) unknown(ids []int64, refs []string) (unknownIDs []int64, unknownRefs []string) {
	unknownIDs, unknownRefs = []int64{}, []string{} // never nil: a NULL array is not an empty one
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := map[int64]bool{}
	for _, id := range ids {
		if _, ok := b.byID[id]; !ok && !seen[id] {
			seen[id] = true
			unknownIDs = append(unknownIDs, id)
		}
	}
	seenRef := map[string]bool{}
	for _, ref := range refs {
		if _, ok := b.byRef[ref]; !ok && !seenRef[ref] {
			seenRef[ref] = true
			unknownRefs = append(unknownRefs, ref)
		}
	}
	return unknownIDs, unknownRefs
}

// find returns the rule of an action by id, or by reference if id is nil or unknown.
func (b *ruleSet) find(id *int64, ref string) (Rule, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id != nil {
		if rule, ok := b.byID[*id]; ok {
			return rule, true
		}
	}
	found, ok := b.byRef[ref]
	return b.byID[found], ok
}

// plainScopes copies the shared limits without groups into wanted.
func (b *ruleSet) plainScopes(wanted map[admission.ScopeKey]policy.SharedLimit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.Copy(wanted, b.plain)
}

func ruleOf(row store.ReadActionRulesRow, policies []store.ReadPoliciesRow) Rule {
	rule := Rule{
		ActionID: row.ID, ActionRef: row.Ref, Workflow: row.WorkflowDef != nil, ParamSchema: row.ParamSchema,
		MaxRetries: int(row.MaxRetries), Need: NeedOf(row),
	}
	var apply []policy.Policy
	for _, p := range policies {
		switch {
		case p.Action != nil && *p.Action == row.ID:
			apply = append(apply, policyOf(p, policy.ScopeAction))
		case p.Action == nil && p.Pack != nil && *p.Pack == row.Pack:
			apply = append(apply, policyOf(p, policy.ScopePack))
		case p.Action == nil && p.Pack == nil:
			apply = append(apply, policyOf(p, policy.ScopeGlobal))
		}
	}
	rule.Limits = policy.Compose(row.Pack, apply)
	return rule
}

// NeedOf is what an action asks of its workers.
func NeedOf(row store.ReadActionRulesRow) placement.Need {
	spec := placement.ReadSpec(row.Placement)
	if row.RuntimeName != nil {
		spec.Runtimes = append([]string{*row.RuntimeName}, row.RuntimeAliases...)
	}
	return placement.NewNeed(spec)
}

func policyOf(row store.ReadPoliciesRow, scope policy.Scope) policy.Policy {
	p := policy.Policy{
		ID: row.ID, Ref: row.Ref, Scope: scope, Kind: policy.Kind(row.Kind), Threshold: int(row.Threshold),
		Method: policy.Method(row.Method), Parameters: row.Parameters, Created: row.Created,
		Window: time.Duration(row.WindowSeconds) * time.Second, Burst: int(row.Burst),
		MaxQueued: int(row.MaxQueueLength), QueueTimeout: time.Duration(row.QueueTimeoutSeconds) * time.Second,
		RetryPlace: policy.Place(row.RetryPlace),
	}
	if row.AdaptiveMin > 0 {
		p.Adaptive = &policy.Adaptive{
			Min: int(row.AdaptiveMin), Latency: time.Duration(row.AdaptiveLatencyMs) * time.Millisecond,
		}
	}
	return p
}
