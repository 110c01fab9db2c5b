package monitor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/attune-go/attune/core/rule"
	"github.com/attune-go/attune/core/store"
)

// EnforcementStatuses lists the statuses of enforcements.
var EnforcementStatuses = []string{"created", "processed", "disabled"}

// Check refuses an unknown status, so that a mistyped one is never applied.
func (f EnforcementFilter) Check() error {
	if f.Status == "" {
		return nil
	}
	return checkWords("status", []string{f.Status}, EnforcementStatuses)
}

func enforcementOf(r store.ViewEnforcementsRow) Enforcement {
	return Enforcement{
		ID: r.ID, RuleRef: r.RuleRef, TriggerRef: r.TriggerRef, Event: r.Event, Status: r.Status, Error: r.Error,
		Note: r.Note, Created: r.Created, ResolvedAt: r.ResolvedAt, Config: r.Config, Condition: r.Condition,
		Conditions: r.Conditions, Execution: r.Execution, ExecutionStatus: r.ExecutionStatus, ActionRef: r.ActionRef,
	}
}

// Enforcements reads one page of enforcements below the cursor; 0 is the newest. It reads a bounded
// number of rows and says so.
func (m *Monitor) Enforcements(ctx context.Context, filter EnforcementFilter, cursor int64) (*EnforcementPage, error) {
	page := &EnforcementPage{List: []Enforcement{}}
	if err := filter.Check(); err != nil {
		return page, err
	}
	err := m.Read(ctx, "enforcements", &page.Reading, func(ctx context.Context, tx *store.Tx, _ Shape) error {
		if err := eventsThere(ctx, tx); err != nil {
			return err
		}
		if filter.Event != 0 {
			return page.ofEvent(ctx, tx, filter)
		}
		return page.fill(ctx, tx, filter, cmp.Or(cursor, math.MaxInt64), cmp.Or(filter.Limit, DefaultPage))
	})
	return page, err
}

func (p *EnforcementPage) ofEvent(ctx context.Context, tx *store.Tx, f EnforcementFilter) error {
	rows, err := tx.ViewEnforcementsOfEvent(ctx, f.Event, enforcedOfOne)
	if err != nil {
		return fmt.Errorf("read the enforcements of event %d: %w", f.Event, err)
	}
	for _, r := range rows {
		if (f.Rule == "" || r.RuleRef == f.Rule) && (f.Status == "" || r.Status == f.Status) {
			p.List = append(p.List, enforcementOf(store.ViewEnforcementsRow(r)))
		}
	}
	return nil
}

func (p *EnforcementPage) fill(ctx context.Context, tx *store.Tx, f EnforcementFilter, before int64, limit int) error {
	rows, err := tx.ViewEnforcements(ctx, store.ViewEnforcementsParams{
		Before: before, Scan: eventScan, Rule: f.Rule, Status: f.Status, Page: int32(limit),
	})
	if err != nil {
		return fmt.Errorf("read a page of enforcements: %w", err)
	}
	p.List = each(rows, enforcementOf)
	if len(rows) == limit {
		p.Next = rows[len(rows)-1].ID
		return nil
	}
	seen, err := tx.CountEnforcementsBelow(ctx, before, eventScan)
	if err != nil {
		return fmt.Errorf("count the enforcements that were looked at: %w", err)
	}
	if seen.N == eventScan {
		p.Next, p.Bounded = seen.Last, true
	}
	return nil
}

// EnforcementDetail is one enforcement with its evaluation.
type EnforcementDetail struct {
	Reading
	Enforcement
	// Matched says how the event met the conditions, Now why it does not meet the present ones;
	// empty if unknown, or if it does.
	Matched string `json:"matched,omitempty"`
	Now     string `json:"now,omitempty"`
}

// Enforcement reads one enforcement; ErrNotFound if there is none.
func (m *Monitor) Enforcement(ctx context.Context, id int64) (*EnforcementDetail, error) {
	d := &EnforcementDetail{}
	err := m.Read(ctx, "an enforcement", &d.Reading, func(ctx context.Context, tx *store.Tx, _ Shape) error {
		if err := eventsThere(ctx, tx); err != nil {
			return err
		}
		one, err := readEnforcement(ctx, tx, id)
		if err != nil {
			return err
		}
		if one == nil {
			return ErrNotFound
		}
		d.Enforcement = *one
		row, err := tx.ViewEnforcementPayload(ctx, id)
		if err != nil {
			return fmt.Errorf("read the payload of enforcement %d: %w", id, err)
		}
		d.Matched, d.Now = d.verdicts(row)
		return nil
	})
	return d, err
}

// readEnforcement reads an enforcement; nil if there is none.
func readEnforcement(ctx context.Context, tx *store.Tx, id int64) (*Enforcement, error) {
	rows, err := tx.ViewEnforcements(ctx, store.ViewEnforcementsParams{Before: id + 1, Scan: 1, Page: 1})
	if err != nil {
		return nil, fmt.Errorf("read enforcement %d: %w", id, err)
	}
	if len(rows) == 0 || rows[0].ID != id {
		return nil, nil //nolint:nilnil // there is none, which is no fault
	}
	return new(enforcementOf(rows[0])), nil
}

// verdicts evaluates the event by the stored and the present conditions.
func (d *EnforcementDetail) verdicts(row store.ViewEnforcementPayloadRow) (matched, now string) {
	event, err := rule.NewEvent(d.Event, d.TriggerRef, row.Payload, d.Created)
	if err != nil {
		return err.Error(), ""
	}
	match := func(raw []byte) (rule.Verdict, bool) {
		conditions, err := rule.ParseConditions(d.RuleRef, raw)
		if err != nil || conditions.None() {
			return rule.Verdict{}, false
		}
		return conditions.Explain(event), true
	}
	if verdict, ok := match(d.Conditions); ok {
		matched = verdict.Why
	}
	if verdict, ok := match(row.Now); ok && !verdict.Matched && !bytes.Equal(row.Now, d.Conditions) {
		now = "the rule has changed since, and the event would not fire it: " + verdict.Why
	}
	return matched, now
}

// Rules reads one page of rules by ref behind the cursor, of one trigger if named.
func (m *Monitor) Rules(ctx context.Context, trigger, cursor string) (*RulePage, error) {
	page := &RulePage{List: []Rule{}}
	err := m.Read(ctx, "rules", &page.Reading, func(ctx context.Context, tx *store.Tx, _ Shape) error {
		rows, err := tx.ViewRules(ctx,
			store.ViewRulesParams{Recent: RecentFirings, After: cursor, Trigger: trigger, Page: pageOfRules})
		if err != nil {
			return fmt.Errorf("read a page of rules: %w", err)
		}
		page.List = each(rows, ruleOf)
		if len(rows) == pageOfRules {
			page.Next = rows[len(rows)-1].Ref
		}
		return nil
	})
	return page, err
}

// Rule reads everything about one rule; ErrNotFound if there is none.
func (m *Monitor) Rule(ctx context.Context, ref string) (*RuleDetail, error) {
	d := &RuleDetail{}
	if ref == "" {
		return d, errors.New("a rule has a ref")
	}
	err := m.Read(ctx, "a rule", &d.Reading, func(ctx context.Context, tx *store.Tx, _ Shape) error {
		rows, err := tx.ViewRules(ctx, store.ViewRulesParams{Recent: RecentFirings, Ref: ref, Page: 1})
		if err != nil {
			return fmt.Errorf("read rule %s: %w", ref, err)
		}
		if len(rows) == 0 {
			return ErrNotFound
		}
		r := rows[0]
		d.Rule, d.PackRef, d.Description, d.Owner = ruleOf(r), r.PackRef, r.Description, text(r.Owner)
		d.Conditions, d.Params, d.Created, d.Updated = r.Conditions, r.ActionParams, r.Created, r.Updated
		return nil
	})
	return d, err
}

func ruleOf(r store.ViewRulesRow) Rule {
	one := Rule{
		ID: r.ID, Ref: r.Ref, Label: r.Label, TriggerRef: r.TriggerRef, ActionRef: r.ActionRef, Enabled: r.Enabled,
		Fired: int(r.Fired), Disabled: int(r.Disabled), LastFired: moment(r.Last),
	}
	switch {
	case !r.HasTrigger:
		one.Note = fmt.Sprintf("trigger %s does not exist", r.TriggerRef)
	case !r.TriggerEnabled:
		one.Note = fmt.Sprintf("trigger %s is disabled", r.TriggerRef)
	case !r.HasAction:
		one.Note = fmt.Sprintf("action %s does not exist", r.ActionRef)
	}
	return one
}
