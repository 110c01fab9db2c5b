package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/attune-go/attune/core/rule"
	"github.com/attune-go/attune/core/store"
)

// The bounds of what is read about events.
const (
	eventScan     = 20_000
	rulesOfOne    = 500 // rules that one event is explained with
	enforcedOfOne = 500
	pageOfRules   = 200
)

func eventsThere(ctx context.Context, tx *store.Tx) error {
	there, err := tx.EventSchema(ctx)
	if err != nil {
		return fmt.Errorf("look for what is kept of events: %w", err)
	}
	if !there {
		return ErrUnmigrated
	}
	return nil
}

// Events reads one page of events below a cursor that a page before gave; 0 begins.
// It looks at a bounded number of rows and says when it stopped there.
func (m *Monitor) Events(ctx context.Context, filter EventFilter, cursor int64) (*EventPage, error) {
	page := &EventPage{List: []Event{}}
	before, limit := cmp.Or(cursor, math.MaxInt64), cmp.Or(filter.Limit, DefaultPage)
	err := m.Read(ctx, "events", &page.Reading, func(ctx context.Context, tx *store.Tx, _ Shape) error {
		if err := eventsThere(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.ViewEvents(ctx, store.ViewEventsParams{Before: before, Scan: eventScan, Trigger: filter.Trigger, Page: int32(limit)})
		if err != nil {
			return fmt.Errorf("read a page of events: %w", err)
		}
		for _, r := range rows {
			page.List = append(page.List, Event{
				ID: r.ID, TriggerRef: r.TriggerRef, RuleRef: r.RuleRef, Source: r.SourceRef, Created: r.Created, Matched: r.At,
				Compared: int(r.Rules), Fired: int(r.Matched), Disabled: int(r.Disabled), Failures: r.Failures,
			})
		}
		if len(rows) == limit {
			page.Next = rows[len(rows)-1].ID
			return nil
		}
		seen, err := tx.CountEventsBelow(ctx, before, eventScan)
		if err != nil {
			return fmt.Errorf("count the events that were looked at: %w", err)
		}
		if seen.N == eventScan {
			page.Next, page.Bounded = seen.Last, true
		}
		return nil
	})
	return page, err
}

// EventDetail reads everything about one event, ErrNotFound if there is none. Rules
// that have not fired are judged as they are now.
func (m *Monitor) EventDetail(ctx context.Context, id int64) (*EventDetail, error) {
	d := &EventDetail{Rules: []RuleVerdict{}}
	err := m.Read(ctx, "an event", &d.Reading, func(ctx context.Context, tx *store.Tx, _ Shape) error {
		if err := eventsThere(ctx, tx); err != nil {
			return err
		}
		row, err := tx.ViewEvent(ctx, id)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNotFound
		}
		if err != nil {
			return fmt.Errorf("read event %d: %w", id, err)
		}
		return d.fill(ctx, tx, row)
	})
	return d, err
}

func (d *EventDetail) fill(ctx context.Context, tx *store.Tx, row store.ViewEventRow) error {
	d.Event = Event{
		ID: row.ID, TriggerRef: row.TriggerRef, RuleRef: row.RuleRef, Source: row.SourceRef, Created: row.Created, Matched: row.At,
		Compared: int(row.Rules), Fired: int(row.Matched), Failures: row.Failures,
	}
	d.Payload = row.Payload
	enforced, err := tx.ViewEnforcementsOfEvent(ctx, row.ID, enforcedOfOne)
	if err != nil {
		return fmt.Errorf("read the enforcements of event %d: %w", row.ID, err)
	}
	rules, err := tx.ViewRules(ctx, store.ViewRulesParams{Trigger: row.TriggerRef, Page: rulesOfOne + 1})
	if err != nil {
		return fmt.Errorf("read the rules of trigger %s: %w", row.TriggerRef, err)
	}
	if d.More = len(rules) > rulesOfOne; d.More {
		rules = rules[:rulesOfOne]
	}
	d.Note = noteOf(row)
	d.judge(row, enforced, rules)
	return nil
}

// noteOf is what holds for all rules of an event.
func noteOf(row store.ViewEventRow) string {
	switch {
	case !row.TriggerThere:
		return fmt.Sprintf("trigger %s does not exist any more", row.TriggerRef)
	case !row.Done && row.BeforeMatching:
		return "it is older than this engine's matching of events"
	case !row.TriggerEnabled && row.RuleRef == "":
		return fmt.Sprintf("trigger %s is disabled and fires no rule", row.TriggerRef)
	case !row.Done:
		return "it waits to be compared with the rules, or it is not known any more that it was: a running engine does so within seconds"
	case row.RuleRef != "":
		return fmt.Sprintf("it is for rule %s only", row.RuleRef)
	}
	return ""
}

// judge lists the rules that fired, also those that are gone, and then the others.
func (d *EventDetail) judge(row store.ViewEventRow, enforced []store.ViewEnforcementsOfEventRow, rules []store.ViewRulesRow) {
	event, err := rule.NewEvent(row.ID, row.TriggerRef, row.Payload, row.Created)
	fired := map[int64]bool{}
	for i := range enforced {
		one := enforcementOf(store.ViewEnforcementsRow(enforced[i]))
		fired[enforced[i].Rule] = true
		verdict := RuleVerdict{RuleRef: one.RuleRef, Verdict: VerdictFired, Enforcement: &one, Why: firedWords(one)}
		if one.Status == "disabled" {
			verdict.Verdict = VerdictDisabled
			d.Disabled++
		}
		d.Rules = append(d.Rules, verdict)
	}
	for _, r := range rules {
		if fired[r.ID] {
			continue
		}
		verdict := RuleVerdict{RuleRef: r.Ref, Verdict: VerdictFailed}
		if err != nil {
			verdict.Why = err.Error()
		} else {
			verdict.Verdict, verdict.Why = d.verdict(row, r, event)
		}
		d.Rules = append(d.Rules, verdict)
	}
}

func firedWords(one Enforcement) string {
	switch {
	case one.Status == "disabled":
		return cmp.Or(one.Error, "it gets no execution")
	case one.Execution != 0:
		return fmt.Sprintf("execution %d is %s", one.Execution, one.ExecutionStatus)
	case one.Status == "created":
		return "its execution is about to be made"
	}
	return "its execution is gone"
}

// verdict says why a rule has not fired, judged by what it is now.
func (d *EventDetail) verdict(row store.ViewEventRow, r store.ViewRulesRow, event rule.Event) (verdict, why string) {
	switch {
	case row.RuleRef != "" && row.RuleRef != r.Ref:
		return VerdictPassed, fmt.Sprintf("the event is for rule %s only", row.RuleRef)
	case !r.Enabled:
		return VerdictOff, "the rule is disabled"
	case !row.TriggerEnabled:
		return VerdictOff, fmt.Sprintf("trigger %s is disabled", row.TriggerRef)
	case row.At != nil && r.Created.After(*row.At):
		return VerdictPassed, "the rule was made after the event was compared with the rules"
	}
	conditions, err := rule.ParseConditions(r.Ref, r.Conditions)
	if err != nil {
		return VerdictFailed, err.Error()
	}
	match := conditions.Match(event)
	switch {
	case match.Err != nil:
		return VerdictFailed, match.Why
	case !match.Matched:
		return VerdictNoMatch, match.Why
	case row.At == nil:
		return VerdictWaiting, "it matches: " + match.Why
	}
	return VerdictPassed, "it matches now and did not when the event was compared with the rules, or it was disabled then; it was changed last at " +
		r.Updated.UTC().Format("2006-01-02 15:04:05") + " UTC"
}
