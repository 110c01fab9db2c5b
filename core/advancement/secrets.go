package advancement

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// conceal replaces secrets in the parameters of children by markers, and stores their values.
// Secrets come from templates and from the schemas of the actions. A child whose secrets cannot be
// stored is refused, with a reason that contains none.
func (s *Step) conceal(ctx context.Context, plan *scheduler.Plan, c *advance) error {
	schemas := map[string]*schema.Schema{}
	for i, b := range c.newExecutions {
		marked, known := schemas[b.ActionRef]
		if !known {
			rule, _ := plan.Rule(nil, b.ActionRef)
			marked, _ = schema.Parse(rule.ParamSchema) // an unreadable schema marks nothing
			schemas[b.ActionRef] = marked
		}
		if !secret.Has(b.Config) && (marked == nil || !marked.HasSecrets()) {
			continue
		}
		public, err := s.hide(ctx, plan.Queries(), c, c.plan.Start[i].Config, marked, secret.OfConfig, b.ID)
		if broken(err) {
			return fmt.Errorf("task %s: %w", c.plan.Start[i].Task, err)
		}
		if b.Config = nil; err != nil {
			b.Status, b.Refuse = "", err.Error()
			continue
		}
		b.Config = text(public)
	}
	return nil
}

// hide returns a value with plain markers, and stores their secrets for the entity. Values that the
// schema marks become secrets; nil marks nothing.
func (s *Step) hide(
	ctx context.Context, q *store.Queries, c *advance, value any, marked *schema.Schema, entity string, id int64,
) (any, error) {
	public, found, err := secret.Collect(value)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		if err := s.pass(ctx, q, c, found, entity, id); err != nil {
			return nil, err
		}
	}
	if marked == nil {
		return public, nil
	}
	public, sealed, err := s.cfg.Keys.Hide(public, marked.SecretPaths(public))
	if err != nil {
		return nil, err
	}
	for _, one := range sealed {
		store.AddSecret(&c.secrets, entity, id, one)
	}
	return public, nil
}

// pass copies the secrets that a value has from elsewhere in the workflow to the entity.
func (s *Step) pass(ctx context.Context, q *store.Queries, c *advance, found []secret.Traced, entity string,
	id int64,
) error {
	sources := secret.Sources(found)
	own, err := c.own(ctx, q, sources)
	if err != nil {
		return err
	}
	if err := secret.Check(found,
		func(source secret.Source) bool { return slices.Contains(own, source.ID) }); err != nil {
		return err
	}
	rows, err := store.ReadSecrets(ctx, q, sources)
	if err != nil {
		return &readError{err}
	}
	for _, one := range found {
		sealed, err := s.cfg.Keys.Assemble(one, rows)
		if err != nil {
			return err
		}
		store.AddSecret(&c.secrets, entity, id, sealed)
	}
	return nil
}

// own are the sources that belong to the workflow: its own execution and its children. Users write
// definitions, and could write a marker that names any execution.
func (c *advance) own(ctx context.Context, q *store.Queries, sources []secret.Source) ([]int64, error) {
	var others []int64
	for _, source := range sources {
		if source.ID != c.row.Execution && !slices.Contains(others, source.ID) {
			others = append(others, source.ID)
		}
	}
	if len(others) == 0 {
		return []int64{c.row.Execution}, nil
	}
	children, err := q.ReadOwnChildren(ctx, others, c.row.ID)
	if err != nil {
		return nil, &readError{fmt.Errorf("find %d children: %w", len(others), err)}
	}
	return append(children, c.row.Execution), nil
}

// broken reports whether an error comes from the database.
func broken(err error) bool {
	var failed *readError
	return errors.As(err, &failed) || store.ClassOf(err) == store.ClassInstallation
}
