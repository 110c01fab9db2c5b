package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
)

// ErrNoPolicy reports that no policy has the ref.
var ErrNoPolicy = errors.New("there is no such policy")

// PolicyDeletion is the order to delete one policy.
type PolicyDeletion struct {
	Ref, Reason string
	// Actor and Source are the operator and the program, for the audit.
	Actor, Source string
}

// PolicyDeleted is the receipt of a deletion.
type PolicyDeleted struct {
	Ref   string `json:"ref"`
	Audit int64  `json:"audit"`
	// Nudged is the number of queues whose head was requested again.
	Nudged int `json:"nudged_queues"`
}

// DeletePolicy deletes a policy, ErrNoPolicy if it is missing. Executions that waited only for it
// start: the same transaction requests the heads of the first three hundred queues, and the
// engine's sweeps find the others. Running executions continue.
func (c *Catalog) DeletePolicy(ctx context.Context, order PolicyDeletion) (PolicyDeleted, error) {
	receipt := PolicyDeleted{Ref: order.Ref}
	err := c.store.Tx(ctx, "delete a policy", func(ctx context.Context, tx *store.Tx) error {
		if err := lockDoomed(ctx, tx, []string{order.Ref}); err != nil {
			return err
		}
		w := &world{rows: map[pack.Kind]map[string]row{}}
		err := w.read(ctx, tx.Queries,
			store.CatalogRowsParams{Kind: string(pack.KindPolicy), Refs: []string{order.Ref}})
		if err != nil {
			return err
		}
		was, exists := w.rows[pack.KindPolicy][order.Ref]
		if !exists {
			return ErrNoPolicy
		}
		details, err := json.Marshal(auditEntry{
			How: Deleted, Fields: documentDifference(was.doc, nil, policyColumns, nil),
		})
		if err != nil {
			return fmt.Errorf("encode the audit of the policy %s: %w", order.Ref, err)
		}
		receipt.Audit, err = tx.InsertAudit(ctx, store.InsertAuditParams{
			Actor: order.Actor, Source: order.Source, Action: "policy.delete", TargetType: string(pack.KindPolicy),
			TargetID: &was.id, Target: order.Ref, Reason: order.Reason, Request: details, Outcome: "done",
		})
		if err != nil {
			return fmt.Errorf("audit the deletion of the policy %s: %w", order.Ref, err)
		}
		if err := tx.DeletePolicies(ctx, []int64{was.id}); err != nil {
			return fmt.Errorf("delete the policy %s: %w", order.Ref, err)
		}
		about := newScopes()
		about.add(idOf(was.doc["action"]), idOf(was.doc["pack"]))
		receipt.Nudged, err = c.nudge(ctx, tx, about)
		return err
	})
	return receipt, err
}

// lockDoomed locks policies before their deletion, after their counters, as batches do.
func lockDoomed(ctx context.Context, tx *store.Tx, refs []string) error {
	pipeline := tx.Pipeline()
	pipeline.Exec(store.LockCatalog)
	pipeline.Exec(store.LockPolicyScopes, refs)
	pipeline.Exec(store.LockPolicies, refs)
	if err := pipeline.Send(ctx); err != nil {
		return fmt.Errorf("lock %d policies: %w", len(refs), err)
	}
	return nil
}

// prunePolicies deletes the policies that the folder of a pack no longer describes, and those of
// deleted actions. It returns the refs of the pack's other policies without a description, which
// stay in force.
func prunePolicies(ctx context.Context, tx *store.Tx, request Request, doomed []store.PrunableRowsRow,
	about *scopes,
) ([]Change, []string, error) {
	set := request.Set
	if !request.Prune || len(set.Whole) == 0 {
		return nil, nil, nil
	}
	rows, err := tx.UndescribedPolicies(ctx, refsOf(set.Policies), set.Whole)
	if err != nil {
		return nil, nil, fmt.Errorf("find the policies that no file describes: %w", err)
	}
	var changes []Change
	var kept, refs []string
	var ids []int64
	for _, row := range rows {
		follows := slices.ContainsFunc(doomed, func(d store.PrunableRowsRow) bool {
			return d.Kind == string(pack.KindAction) && row.Action != nil && d.ID == *row.Action
		})
		agreed := request.PruneOnly == nil || slices.Contains(request.PruneOnly, Name{pack.KindPolicy, row.Ref})
		if !follows && (!slices.Contains(set.Whole, row.Folder) || !agreed) {
			kept = append(kept, row.Ref)
			continue
		}
		change := Change{Kind: pack.KindPolicy, Ref: row.Ref, How: Deleted, Fields: []FieldChange{}}
		if err := audit(ctx, tx, request, change, row.ID); err != nil {
			return nil, nil, err
		}
		about.add(row.Action, row.Pack)
		changes, refs, ids = append(changes, change), append(refs, row.Ref), append(ids, row.ID)
	}
	if len(ids) == 0 {
		return nil, kept, nil
	}
	if err := lockDoomed(ctx, tx, refs); err != nil {
		return nil, nil, err
	}
	if err := tx.DeletePolicies(ctx, ids); err != nil {
		return nil, nil, fmt.Errorf("delete %d policies: %w", len(ids), err)
	}
	return changes, kept, nil
}
