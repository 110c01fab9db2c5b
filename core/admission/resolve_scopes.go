package admission

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// ResolveScopes returns the row of every shared limit and creates missing ones. Like Resolve it
// runs outside the batch's transaction.
func (a *Admission) ResolveScopes(ctx context.Context,
	wanted map[ScopeKey]policy.SharedLimit,
) (map[ScopeKey]int64, error) {
	found, unknown := a.scopes.find(maps.Keys(wanted))
	if len(unknown) == 0 {
		return found, nil
	}
	missing, err := a.findScopes(ctx, unknown, wanted, found)
	if err != nil {
		return nil, err
	}
	if err := a.createScopes(ctx, missing, wanted, found); err != nil {
		return nil, err
	}
	a.scopes.add(unknown, found)
	return found, nil
}

// ForgetScopes empties the cache of shared limits. Callers use it when the policies have changed.
func (a *Admission) ForgetScopes() { a.scopes.forget() }

// findScopes adds the existing rows to found. It returns the keys whose row is missing, belongs to
// another policy, or has not counted running executions since policies changed: such a limit may
// have been out of force meanwhile.
func (a *Admission) findScopes(
	ctx context.Context, keys []ScopeKey, wanted map[ScopeKey]policy.SharedLimit, found map[ScopeKey]int64,
) ([]ScopeKey, error) {
	kinds, names := make([]string, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		kinds[i], names[i] = string(key.Kind), key.Key
	}
	rows, err := a.store.FindAdmissionScopes(ctx, kinds, names)
	if err != nil {
		return nil, fmt.Errorf("find %d shared limits: %w", len(keys), err)
	}
	current := make(map[ScopeKey]bool, len(rows))
	for _, row := range rows {
		key := ScopeKey{Kind: policy.SharedKind(row.Kind), Key: row.ScopeKey}
		found[key] = row.ID
		current[key] = row.Policy == wanted[key].PolicyID && (row.Counted || !counts(wanted[key]))
	}
	var missing []ScopeKey
	for _, key := range keys {
		if !current[key] {
			missing = append(missing, key)
		}
	}
	return missing, nil
}

// createScopes creates the missing rows. A limit over all executions, or over those of a pack,
// starts with the running executions; a limit with groups counts from its first execution.
func (a *Admission) createScopes(
	ctx context.Context, keys []ScopeKey, wanted map[ScopeKey]policy.SharedLimit, found map[ScopeKey]int64,
) error {
	var plain []ScopeKey
	for _, key := range keys {
		if !counts(wanted[key]) {
			plain = append(plain, key)
		} else if err := a.adopt(ctx, key, wanted[key], found); err != nil {
			return err
		}
	}
	if len(plain) == 0 {
		return nil
	}
	if err := a.store.EnsureAdmissionScopes(ctx, scopeParams(plain, wanted)); err != nil {
		return fmt.Errorf("create %d shared limits: %w", len(plain), err)
	}
	_, err := a.findScopes(ctx, plain, wanted, found)
	return err
}

// counts reports whether a limit that comes into force counts the running executions.
func counts(limit policy.SharedLimit) bool { return limit.Kind.Slots() && len(limit.Parameters) == 0 }

func scopeParams(keys []ScopeKey, wanted map[ScopeKey]policy.SharedLimit) store.EnsureAdmissionScopesParams {
	var arg store.EnsureAdmissionScopesParams
	for _, key := range keys {
		arg.Kinds, arg.Keys = append(arg.Kinds, string(key.Kind)), append(arg.Keys, key.Key)
		arg.MaxConcurrent = append(arg.MaxConcurrent, int32(wanted[key].Max))
		arg.Policies = append(arg.Policies, wanted[key].PolicyID)
		arg.PolicyRefs = append(arg.PolicyRefs, wanted[key].PolicyRef)
	}
	return arg
}

// adopt creates the row of a limit and counts the running executions. Meanwhile it holds the locks
// of all queues under the limit, for as long as reading the executions takes, once for each change
// of policies.
func (a *Admission) adopt(ctx context.Context, key ScopeKey, wide policy.SharedLimit, found map[ScopeKey]int64) error {
	var pack *int64
	if key.Kind == policy.SharedPack {
		id, err := strconv.ParseInt(key.Key, 10, 64)
		if err != nil {
			return fmt.Errorf("shared limit of pack %q: %w", key.Key, err)
		}
		pack = &id
	}
	one := []ScopeKey{key}
	err := a.store.Tx(ctx, "adopt", func(ctx context.Context, tx *store.Tx) error {
		if err := tx.EnsureAdmissionScopes(ctx,
			scopeParams(one, map[ScopeKey]policy.SharedLimit{key: wide})); err != nil {
			return err
		}
		states, err := tx.LockScopeQueues(ctx, pack)
		if err != nil {
			return err
		}
		rows, err := tx.FindAdmissionScopes(ctx, []string{string(key.Kind)}, []string{key.Key})
		if err != nil || len(rows) == 0 {
			return err
		}
		found[key] = rows[0].ID
		_, err = tx.AdoptScopeHolders(ctx, rows[0].ID, states)
		return err
	})
	if err != nil {
		return fmt.Errorf("put the shared limit of policy %s in force: %w", wide.PolicyRef, err)
	}
	return nil
}
