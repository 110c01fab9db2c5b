package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/rule"
	"github.com/attune-go/attune/core/store"
)

// EventFilter says which events to list.
type EventFilter struct {
	// Trigger is the ref of a trigger; empty is any.
	Trigger string
	// Limit bounds a page; zero means DefaultPage.
	Limit int
}

// Event is one event in a list.
type Event struct {
	ID         int64     `json:"id"`
	TriggerRef string    `json:"trigger_ref"`
	RuleRef    string    `json:"rule_ref,omitempty"` // the only rule that it is for
	Source     string    `json:"source,omitempty"`
	Created    time.Time `json:"created"`
	// Matched is when it was compared with the rules; nil if it was not, or nobody
	// remembers.
	Matched *time.Time `json:"matched"`
	// Compared is with how many rules it was compared, Fired how many it fired, and
	// Disabled how many of these could not be carried out.
	Compared int `json:"compared"`
	Fired    int `json:"fired"`
	Disabled int `json:"disabled"`
	// Failures are rules whose expression could not be evaluated, with the reason.
	Failures []string `json:"failures"`
}

// EventPage is one page of events, the newest first.
type EventPage struct {
	Reading
	List []Event `json:"events"`
	// Next is the cursor of the next page, 0 at the end. Bounded says that the search
	// stopped before it had a full page.
	Next    int64 `json:"next,omitempty"`
	Bounded bool  `json:"bounded,omitempty"`
}

// What came of a rule for an event.
const (
	VerdictFired    = "fired"    // it has an enforcement, and an execution once that is made
	VerdictDisabled = "disabled" // it fired, and could not be carried out
	VerdictNoMatch  = "no match"
	VerdictFailed   = "failed" // its conditions could not be evaluated
	VerdictOff      = "off"    // the rule or its trigger is disabled
	VerdictWaiting  = "waiting"
	VerdictPassed   = "passed" // it was not asked, or did not match as it was then
)

// RuleVerdict is what came of one rule for an event, and why.
type RuleVerdict struct {
	RuleRef     string       `json:"rule_ref"`
	Verdict     string       `json:"verdict"`
	Why         string       `json:"why"`
	Enforcement *Enforcement `json:"enforcement,omitempty"`
}

// EventDetail is everything about one event: for every rule of its trigger, whether
// it fired and why not.
type EventDetail struct {
	Reading
	Event
	Payload json.RawMessage `json:"payload"`
	// Note says what holds for all rules, such as that the trigger is disabled.
	Note  string        `json:"note,omitempty"`
	Rules []RuleVerdict `json:"rules"`
	// More says that the trigger has more rules than are listed.
	More bool `json:"more,omitempty"`
}

// EnforcementFilter says which enforcements to list.
type EnforcementFilter struct {
	// Rule is the ref of a rule, Status created, processed or disabled; empty is any.
	Rule, Status string
	// Event is the event that they are of; 0 is any.
	Event int64
	// Limit bounds a page; zero means DefaultPage.
	Limit int
}

// Enforcement is a rule that an event has fired.
type Enforcement struct {
	ID         int64  `json:"id"`
	RuleRef    string `json:"rule_ref"`
	TriggerRef string `json:"trigger_ref"`
	Event      int64  `json:"event,omitempty"`
	Status     string `json:"status"`
	Error      string `json:"error,omitempty"`
	// Note is what was odd about one that could be carried out.
	Note       string     `json:"note,omitempty"`
	Created    time.Time  `json:"created"`
	ResolvedAt *time.Time `json:"resolved_at"`
	// Config is the parameters; what is secret is not in them.
	Config     json.RawMessage `json:"config,omitempty"`
	Condition  string          `json:"condition"`
	Conditions json.RawMessage `json:"conditions,omitempty"`
	// Execution is what it led to, 0 for nothing.
	Execution       int64  `json:"execution,omitempty"`
	ExecutionStatus string `json:"execution_status,omitempty"`
	ActionRef       string `json:"action_ref,omitempty"`
}

// EnforcementPage is one page of enforcements, the newest first.
type EnforcementPage struct {
	Reading
	List    []Enforcement `json:"enforcements"`
	Next    int64         `json:"next,omitempty"`
	Bounded bool          `json:"bounded,omitempty"`
}

// Rule is a rule with what its newest firings came to.
type Rule struct {
	ID         int64  `json:"id"`
	Ref        string `json:"ref"`
	Label      string `json:"label"`
	TriggerRef string `json:"trigger_ref"`
	ActionRef  string `json:"action_ref"`
	Enabled    bool   `json:"enabled"`
	// Note says why it cannot fire or not be carried out, besides being disabled.
	Note string `json:"note,omitempty"`
	// Fired counts its newest firings, Disabled those of them that could not be
	// carried out; both stop at RecentFirings.
	Fired     int        `json:"fired"`
	Disabled  int        `json:"disabled"`
	LastFired *time.Time `json:"last_fired"`
}

// RecentFirings is how many firings of a rule are counted.
const RecentFirings = 1_000

// RulePage is one page of rules by reference.
type RulePage struct {
	Reading
	List []Rule `json:"rules"`
	// Next is the cursor of the next page, empty at the end.
	Next string `json:"next,omitempty"`
}

// RuleDetail is everything about one rule.
type RuleDetail struct {
	Reading
	Rule
	PackRef     string          `json:"pack_ref"`
	Description string          `json:"description,omitempty"`
	Owner       string          `json:"owner,omitempty"` // the login in whose name it acts
	Conditions  json.RawMessage `json:"conditions"`
	Params      json.RawMessage `json:"action_params"`
	Created     time.Time       `json:"created"`
	Updated     time.Time       `json:"updated"`
}

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
		rows, err := tx.ViewEvents(ctx,
			store.ViewEventsParams{Before: before, Scan: eventScan, Trigger: filter.Trigger, Page: int32(limit)})
		if err != nil {
			return fmt.Errorf("read a page of events: %w", err)
		}
		for _, r := range rows {
			page.List = append(page.List, Event{
				ID: r.ID, TriggerRef: r.TriggerRef, RuleRef: r.RuleRef, Source: r.SourceRef, Created: r.Created,
				Matched:  r.At,
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
		ID: row.ID, TriggerRef: row.TriggerRef, RuleRef: row.RuleRef, Source: row.SourceRef, Created: row.Created,
		Matched:  row.At,
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
func (d *EventDetail) judge(row store.ViewEventRow, enforced []store.ViewEnforcementsOfEventRow,
	rules []store.ViewRulesRow) {
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
