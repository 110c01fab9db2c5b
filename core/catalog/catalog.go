package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
)

// source is the name under which requests are published again.
const source = "attune-executor"

// auditAction is what operator_audit calls an application.
const auditAction = "policy.apply"

// Relay publishes what was committed; *outbox.Relay is one.
type Relay interface {
	Published(id int64, messages []outbox.Message)
}

// Catalog applies what files describe. Its methods may be used by many
// goroutines.
type Catalog struct {
	store *store.Store
	relay Relay
}

// New makes a Catalog. Without a relay the messages are left to the sweep of a
// running engine, which takes them within seconds.
func New(st *store.Store, relay Relay) *Catalog {
	return &Catalog{store: st, relay: relay}
}

// Request is an application of policies.
type Request struct {
	Policies []pack.Policy
	// Mistakes are those that were found in the files. With any, nothing is
	// applied and the policies are only checked further.
	Mistakes []pack.Mistake
	// Actor and Source are who applies, by what, for the audit.
	Actor, Source string
	// DryRun compares and writes nothing.
	DryRun bool
}

// Result is what an application changed, or would change.
type Result struct {
	Changes []Change // in the order of the policies
	// Nudged are the queues whose first waiter was told to look again.
	Nudged int
}

// Count is how many policies were changed in this way.
func (r Result) Count(how How) int {
	n := 0
	for _, change := range r.Changes {
		if change.How == how {
			n++
		}
	}
	return n
}

// Apply applies the policies, all or none. Mistakes, those given and those
// found by comparing with the database, are a *pack.MistakesError.
func (c *Catalog) Apply(ctx context.Context, request Request) (Result, error) {
	if request.DryRun || len(request.Mistakes) > 0 {
		return c.compare(ctx, request)
	}
	var result Result
	err := c.store.Tx(ctx, "apply policies", func(ctx context.Context, tx *store.Tx) error {
		if err := lock(ctx, tx, request.Policies); err != nil {
			return err
		}
		p, err := planOf(ctx, tx.Queries, request.Policies)
		if err != nil {
			return err
		}
		result = Result{Changes: p.changes}
		if err := p.write(ctx, tx, request); err != nil {
			return err
		}
		result.Nudged, err = c.nudge(ctx, tx, p.scopes)
		return err
	})
	if err != nil {
		return Result{}, err
	}
	return result, nil
}

// compare says what Apply would do, from one snapshot.
func (c *Catalog) compare(ctx context.Context, request Request) (Result, error) {
	var p *plan
	err := c.store.ReadTx(ctx, "compare policies", func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = planOf(ctx, tx.Queries, request.Policies)
		return err
	})
	mistakes := request.Mistakes
	if found, ok := errors.AsType[*pack.MistakesError](err); ok {
		mistakes = slices.Concat(mistakes, found.Mistakes)
	} else if err != nil {
		return Result{}, err
	}
	if len(mistakes) > 0 {
		return Result{}, &pack.MistakesError{Mistakes: pack.Sort(mistakes)}
	}
	return Result{Changes: p.changes}, nil
}

// lock makes applications follow one another and keeps what the policies name.
func lock(ctx context.Context, tx *store.Tx, policies []pack.Policy) error {
	needs := pack.NeedsOf(policies)
	pipeline := tx.Pipeline()
	pipeline.Exec(store.LockCatalog)
	pipeline.Exec(store.LockPolicyPacks, needs.Packs, needs.Actions)
	pipeline.Exec(store.LockPolicyActions, needs.Actions)
	pipeline.Exec(store.LockPolicies, refsOf(policies))
	if err := pipeline.Send(ctx); err != nil {
		return fmt.Errorf("lock %d policies: %w", len(policies), err)
	}
	return nil
}

// write stores the policies that differ, and who changed them.
func (p *plan) write(ctx context.Context, tx *store.Tx, request Request) error {
	for i, change := range p.changes {
		if change.How == Unchanged {
			continue
		}
		id, err := tx.ApplyPolicy(ctx, p.wanted[i].row())
		if err != nil {
			return fmt.Errorf("write the policy %s: %w", change.Ref, err)
		}
		details, err := json.Marshal(auditOf(change))
		if err != nil {
			return fmt.Errorf("encode the audit of the policy %s: %w", change.Ref, err)
		}
		_, err = tx.InsertAudit(ctx, store.InsertAuditParams{
			Actor: request.Actor, Source: request.Source, Action: auditAction, TargetType: "policy", TargetID: &id,
			Target: change.Ref, Request: details, Outcome: "done",
		})
		if err != nil {
			return fmt.Errorf("audit the policy %s: %w", change.Ref, err)
		}
	}
	return nil
}

// auditEntry is what the audit keeps of a change.
type auditEntry struct {
	How    How           `json:"change"`
	File   string        `json:"file"`
	Fields []FieldChange `json:"fields"`
}

func auditOf(change Change) auditEntry {
	return auditEntry{How: change.How, File: change.Place.String(), Fields: change.Fields}
}

func refsOf(policies []pack.Policy) []string {
	refs := make([]string, len(policies))
	for i := range policies {
		refs[i] = policies[i].Ref
	}
	return refs
}
