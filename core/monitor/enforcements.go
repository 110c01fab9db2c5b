package monitor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

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

// readEnforcements reads a page of a bounded number of enforcements, of an event or below an id.
func readEnforcements(
	ctx context.Context, tx *store.Tx, f EnforcementFilter, before, scan int64,
) ([]Enforcement, error) {
	rows, err := store.Rows[Enforcement](ctx, tx, store.ViewEnforcements,
		f.Event, before, scan, f.Rule, f.Status, f.Limit)
	if err != nil {
		return nil, fmt.Errorf("read a page of enforcements: %w", err)
	}
	return rows, nil
}

// ofEvent reads the enforcements of an event by rule.
func ofEvent(ctx context.Context, tx *store.Tx, f EnforcementFilter) ([]Enforcement, error) {
	f.Limit = enforcedOfOne
	rows, err := readEnforcements(ctx, tx, f, 0, enforcedOfOne)
	slices.SortFunc(rows, func(a, b Enforcement) int {
		return cmp.Or(cmp.Compare(a.RuleRef, b.RuleRef), cmp.Compare(a.ID, b.ID))
	})
	return rows, err
}

// Enforcements reads one page of enforcements below the cursor; 0 is the newest. It reads a bounded
// number of rows and says so.
func (m *Monitor) Enforcements(ctx context.Context, filter EnforcementFilter, cursor int64) (*EnforcementPage, error) {
	page := &EnforcementPage{List: []Enforcement{}}
	if err := filter.Check(); err != nil {
		return page, err
	}
	before := cmp.Or(cursor, math.MaxInt64)
	filter.Limit = cmp.Or(filter.Limit, DefaultPage)
	err := m.Read(ctx, "enforcements", &page.Reading, func(ctx context.Context, tx *store.Tx, s Shape) (err error) {
		if !s.Ours {
			return ErrUnmigrated
		}
		if filter.Event != 0 {
			page.List, err = ofEvent(ctx, tx, filter)
			return err
		}
		if page.List, err = readEnforcements(ctx, tx, filter, before, eventScan); err != nil {
			return err
		}
		if n := len(page.List); n == filter.Limit {
			page.Next = page.List[n-1].ID
			return nil
		}
		seen, err := tx.CountEnforcementsBelow(ctx, before, eventScan)
		if err != nil {
			return fmt.Errorf("count the enforcements that were looked at: %w", err)
		}
		if seen.N == eventScan {
			page.Next, page.Bounded = seen.Last, true
		}
		return nil
	})
	return page, err
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
	err := m.Read(ctx, "an enforcement", &d.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Ours {
			return ErrUnmigrated
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
	rows, err := readEnforcements(ctx, tx, EnforcementFilter{Limit: 1}, id+1, 1)
	if err != nil || len(rows) == 0 || rows[0].ID != id {
		return nil, err
	}
	return &rows[0], nil
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
		rows, err := readRules(ctx, tx, RecentFirings, cursor, trigger, "", pageOfRules)
		if err != nil {
			return err
		}
		page.List = each(rows, func(r ruleRow) Rule { return r.Rule })
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
		rows, err := readRules(ctx, tx, RecentFirings, "", "", ref, 1)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return ErrNotFound
		}
		rows[0].Reading = d.Reading
		*d = rows[0].RuleDetail
		return nil
	})
	return d, err
}

type ruleRow struct {
	RuleDetail
	HasAction, HasTrigger, TriggerEnabled bool
}

// ReadRule reads one rule without its firings; ErrNotFound if there is none.
func ReadRule(ctx context.Context, tx *store.Tx, ref string) (*Rule, error) {
	rows, err := readRules(ctx, tx, 0, "", "", ref, 1)
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &rows[0].Rule, nil
}

// readRules reads a page of rules behind a ref, of one trigger or one rule if named, with their newest firings.
func readRules(
	ctx context.Context, tx *store.Tx, recent int, after, trigger, ref string, page int,
) ([]ruleRow, error) {
	rows, err := store.Rows[ruleRow](ctx, tx, store.ViewRules, recent, after, trigger, ref, page)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	for i := range rows {
		switch r := &rows[i]; {
		case !r.HasTrigger:
			r.Note = fmt.Sprintf("trigger %s does not exist", r.TriggerRef)
		case !r.TriggerEnabled:
			r.Note = fmt.Sprintf("trigger %s is disabled", r.TriggerRef)
		case !r.HasAction:
			r.Note = fmt.Sprintf("action %s does not exist", r.ActionRef)
		}
	}
	return rows, nil
}
