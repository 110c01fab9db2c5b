package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
)

// source is the source_service of repeated requests.
const source = "attune-executor"

// Relay publishes committed messages; *outbox.Relay is one.
type Relay = outbox.Publishing

// Catalog applies files to the database. It is safe for concurrent use.
type Catalog struct {
	store *store.Store
	relay Relay
}

// New makes a Catalog. Without a relay the sweep of a running engine publishes the messages within
// seconds.
func New(st *store.Store, relay Relay) *Catalog {
	return &Catalog{store: st, relay: relay}
}

// Name identifies one item.
type Name struct {
	Kind pack.Kind
	Ref  string
}

// Request is an application of files.
type Request struct {
	// Set is the content of the files.
	Set *pack.Set
	// Mistakes are the mistakes in the files. With any, nothing is applied; the rest is still
	// checked.
	Mistakes []pack.Mistake
	// Strict turns warnings into mistakes: the warnings of Apply, and those about policies without
	// effect. The caller adds the warnings of the files to Mistakes.
	Strict bool
	// Actor and Source are the operator and the program, for the audit.
	Actor, Source string
	// DryRun compares and writes nothing.
	DryRun bool
	// Prune deletes the rules, triggers, actions and workflows (unless created by hand) and the
	// policies that a completely read pack folder no longer describes. PruneOnly limits it to the
	// confirmed items; nil means all.
	Prune     bool
	PruneOnly []Name
}

// Result is what an application changed, or would change.
type Result struct {
	// Changes are the items in the order of their kinds, then deleted items, then the policies in
	// the order of the files, then deleted policies.
	Changes []Change
	// Kept are policies of pruned packs without a description that stay in force, because they do
	// not come from the pack's folder.
	Kept []string
	// Nudged is the number of queues whose head was requested again.
	Nudged int
	// Warnings are the findings that are not mistakes.
	Warnings []pack.Mistake
}

// Count is the number of items with this change.
func (r Result) Count(how How) int {
	n := 0
	for _, change := range r.Changes {
		if change.How == how {
			n++
		}
	}
	return n
}

// errDryRun rolls back a dry run.
var errDryRun = errors.New("nothing is written in a dry run")

// Apply applies the files, all or none. Mistakes, given ones and those found by comparing with the
// database, are a *pack.MistakesError. A dry run does everything and rolls it back, so that its
// result is exact.
func (c *Catalog) Apply(ctx context.Context, request Request) (Result, error) {
	var result Result
	err := c.store.Tx(ctx, "apply files", func(ctx context.Context, tx *store.Tx) (err error) {
		if err := lock(ctx, tx, request); err != nil {
			return err
		}
		result, err = c.apply(ctx, tx, request)
		if err == nil && request.DryRun {
			err = errDryRun
		}
		return err
	})
	if errors.Is(err, errDryRun) {
		return result, nil
	}
	if err != nil {
		return Result{}, err
	}
	return result, nil
}

func (c *Catalog) apply(ctx context.Context, tx *store.Tx, request Request) (Result, error) {
	w, err := worldOf(ctx, tx.Queries, request.Set)
	if err != nil {
		return Result{}, err
	}
	if err := w.readDoomed(ctx, tx.Queries, request); err != nil {
		return Result{}, err
	}
	request.Set = request.Set.Supply(w.known())
	warnings, err := check(request, w)
	if err != nil {
		return Result{}, err
	}
	items := newWriter(tx, request, w)
	for _, item := range request.Set.Items {
		if err := items.item(ctx, item); err != nil {
			return Result{}, err
		}
	}
	if err := items.relink(ctx); err != nil {
		return Result{}, err
	}
	about := newScopes()
	pruned, kept, err := prunePolicies(ctx, tx, request, w.doomed, &about)
	if err != nil {
		return Result{}, err
	}
	if err := items.prune(ctx); err != nil {
		return Result{}, err
	}
	if err := items.policies(ctx, &about); err != nil {
		return Result{}, err
	}
	result := Result{Changes: slices.Concat(items.changes, pruned), Kept: kept, Warnings: warnings}
	if request.DryRun {
		return result, nil
	}
	if err := c.announce(ctx, tx, items.written, w.doomed); err != nil {
		return Result{}, err
	}
	result.Nudged, err = c.nudge(ctx, tx, about)
	return result, err
}

// check compares everything with the database before anything is written.
func check(request Request, w *world) ([]pack.Mistake, error) {
	found, warnings := request.Set.Check(w.known())
	warnings = pack.Sort(append(warnings, notPruned(request)...))
	mistakes := slices.Concat(request.Mistakes, found)
	if request.Strict {
		mistakes = append(mistakes, warnings...)
	}
	if len(mistakes) > 0 {
		return nil, &pack.MistakesError{Mistakes: pack.Sort(mistakes)}
	}
	return warnings, nil
}

// lock serialises applications, and locks the rows that the files name.
func lock(ctx context.Context, tx *store.Tx, request Request) error {
	refs := request.Set.Refs()
	packs, actions := refs[pack.KindPack], refs[pack.KindAction]
	pipeline := tx.Pipeline()
	pipeline.Exec(store.LockCatalog)
	pipeline.Exec(store.LockPolicyPacks, packs, actions)
	pipeline.Exec(store.LockPolicyActions, actions)
	pipeline.Exec(store.LockPolicies, refsOf(request.Set.Policies))
	if err := pipeline.Send(ctx); err != nil {
		return fmt.Errorf("lock the packs, actions and policies of the files: %w", err)
	}
	return nil
}

type auditEntry struct {
	How    How           `json:"change"`
	File   string        `json:"file,omitempty"`
	Pack   string        `json:"pack,omitempty"` // the pack in whose folder a policy is described
	Fields []FieldChange `json:"fields"`
}

func refsOf(policies []pack.Policy) []string {
	refs := make([]string, len(policies))
	for i := range policies {
		refs[i] = policies[i].Ref
	}
	return refs
}
