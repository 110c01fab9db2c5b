package eventing

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/rule"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// target is the action of a rule.
type target struct {
	ref    string
	schema *schema.Schema
	err    error // why its schema is unreadable
}

func newTarget(row store.RuleActionsRow) target {
	t := target{ref: row.Ref}
	if t.schema, t.err = schema.Parse(row.ParamSchema); t.err != nil {
		t.err = fmt.Errorf("the parameters of action %s: %w", row.Ref, t.err)
	}
	return t
}

type pack struct {
	ref    string
	config any                   // with a traced marker in place of every secret
	values map[secret.Source]any // the values of the markers
	err    error
}

// references are the actions and packs of the firing rules.
type references struct {
	actions map[int64]target
	byRef   map[string]target
	packs   map[int64]*pack
}

func (s references) action(row store.FindRulesRow) (target, bool) {
	if row.Action != nil {
		found, ok := s.actions[*row.Action]
		return found, ok
	}
	found, ok := s.byRef[row.ActionRef]
	return found, ok
}

// fill renders the parameters of every firing rule. An error affects that rule alone.
func (b *batch) fill(ctx context.Context) error {
	known, err := b.references(ctx)
	if err != nil {
		return err
	}
	for _, f := range b.fires {
		if f.err == nil {
			f.err = b.render(f, known)
		}
		if f.err != nil {
			f.config, f.secrets = nil, nil
			f.rule.failedFires, f.rule.why = f.rule.failedFires+1, f.err
		}
	}
	return nil
}

func (b *batch) references(ctx context.Context) (references, error) {
	var actions, packs []int64
	var refs []string
	seen := map[*candidate]bool{}
	for _, f := range b.fires {
		if f.err != nil || seen[f.rule] {
			continue
		}
		seen[f.rule] = true
		packs = append(packs, f.rule.row.Pack)
		if f.rule.row.Action != nil {
			actions = append(actions, *f.rule.row.Action)
		} else {
			refs = append(refs, f.rule.row.ActionRef)
		}
	}
	known := references{actions: map[int64]target{}, byRef: map[string]target{}, packs: map[int64]*pack{}}
	if len(seen) == 0 {
		return known, nil
	}
	p := b.tx.Pipeline()
	foundActions := store.Many[store.RuleActionsRow](p, store.RuleActions, actions, refs)
	foundPacks := store.Many[store.RulePacksRow](p, store.RulePacks, packs)
	if err := p.Send(ctx); err != nil {
		return known, fmt.Errorf("read the actions and packs of %d rules: %w", len(seen), err)
	}
	for _, row := range foundActions.Rows() {
		found := newTarget(row)
		known.actions[row.ID], known.byRef[row.Ref] = found, found
	}
	for _, row := range foundPacks.Rows() {
		known.packs[row.ID] = newPack(row)
	}
	return known, nil
}

// newPack replaces the secrets of a configuration by traced markers. Their sources have an
// unpredictable number: an event could assemble a marker from pieces, with a template such as {{ a
// }}{{ b }}.
func newPack(row store.RulePacksRow) *pack {
	p := &pack{ref: row.Ref, values: map[secret.Source]any{}}
	config, err := expr.FromJSON(row.Config)
	if err != nil {
		p.err = fmt.Errorf("the configuration of pack %s: %w", row.Ref, err)
		return p
	}
	known, err := schema.Parse(row.ConfSchema)
	if err != nil {
		p.err = fmt.Errorf("the schema of the configuration of pack %s: %w", row.Ref, err)
		return p
	}
	public, taken := secret.Take(config, known.SecretPaths(config))
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	id := int64(binary.BigEndian.Uint64(random[:]) >> 1)
	for _, one := range taken {
		p.values[secret.Source{Entity: secret.OfEnforcement, ID: id, Path: one.Path}] = one.Value
	}
	p.config = secret.Trace(public, secret.OfEnforcement, id)
	return p
}

// render renders the parameters of one rule and removes the secrets.
func (b *batch) render(f *fire, known references) error {
	row := f.rule.row
	action, ok := known.action(row)
	if !ok {
		return f.wrong("action", fmt.Errorf("%s does not exist", row.ActionRef))
	}
	if action.err != nil {
		return f.wrong("action", action.err)
	}
	its := known.packs[row.Pack]
	if its == nil {
		return f.wrong("pack", errors.New("it does not exist"))
	}
	if its.err != nil {
		return f.wrong("pack", its.err)
	}
	subject := rule.Subject{ID: row.ID, Ref: row.Ref, PackConfig: its.config, Now: row.Now}
	values, err := f.rule.params.Render(f.event.event, subject)
	if err != nil {
		return err
	}
	f.note = noteOf(f.rule.params.Absent(f.event.event, subject))
	public, err := b.hide(f, values, its, action)
	if err != nil {
		return f.wrong("action_params", err)
	}
	if f.config, err = json.Marshal(public); err != nil {
		return f.wrong("action_params", err)
	}
	if err := jsonvalue.Check("parameters", f.config); err != nil {
		return f.wrong("action_params", err)
	}
	return nil
}

// noteOf names the paths without a value.
func noteOf(absent []string) string {
	const most = 10
	if len(absent) == 0 {
		return ""
	}
	more := ""
	if n := len(absent) - most; n > 0 {
		absent, more = absent[:most], fmt.Sprintf(", and %d more", n)
	}
	return "these have no value and are null: " + strings.Join(absent, ", ") + more
}

func (f *fire) wrong(part string, err error) error {
	return &rule.Error{Rule: f.rule.row.Ref, Part: part, Err: err}
}

// hide replaces secrets in the parameters by markers: secrets of the pack's configuration and
// parameters that the action's schema marks. A secret of the configuration may only go to a marked
// parameter.
func (b *batch) hide(f *fire, values map[string]any, its *pack, action target) (any, error) {
	public, traced, err := secret.Collect(values)
	if err != nil {
		return nil, err
	}
	hidden := action.schema.SecretPaths(public)
	if wrong := secret.Misplaced(traced, hidden); len(wrong) > 0 {
		return nil,
			fmt.Errorf("a secret of the pack's configuration would go to %s, which action %s does not mark as secret",
				wrong[0], action.ref)
	}
	if err := b.pass(f, traced, its); err != nil {
		return nil, err
	}
	public, taken := secret.Take(public, hidden)
	for _, one := range taken {
		value, err := b.cfg.Keys.Seal(one.Value)
		if err != nil {
			return nil, fmt.Errorf("encrypt the secret parameters of action %s: %w", action.ref, err)
		}
		f.secrets = append(f.secrets,
			secret.Sealed{Path: one.Path, Kind: secret.FromSchema, Ref: action.ref, Value: value})
	}
	return public, nil
}

// pass encrypts the configuration's secrets in the parameters.
func (b *batch) pass(f *fire, traced []secret.Traced, its *pack) error {
	rows := map[secret.Source]secret.Sealed{}
	for _, source := range secret.Sources(traced) {
		value, ok := its.values[source]
		if !ok {
			return secret.ErrUntraced // an event contains a marker that only this package may create
		}
		sealed, err := b.cfg.Keys.Seal(value)
		if err != nil {
			return fmt.Errorf("use a secret of the pack's configuration: %w", err)
		}
		rows[source] = secret.Sealed{Value: sealed}
	}
	for _, one := range traced {
		sealed, err := b.cfg.Keys.Assemble(one, rows)
		if err != nil {
			return err
		}
		sealed.Kind, sealed.Ref = secret.FromPackConfig, its.ref
		f.secrets = append(f.secrets, sealed)
	}
	return nil
}
