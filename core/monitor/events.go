package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/rule"
	"github.com/attune-go/attune/core/store"
)

// EventFilter selects events.
type EventFilter struct {
	// Trigger is the ref of a trigger; empty keeps all.
	Trigger string
	// Limit bounds a page; 0 means DefaultPage.
	Limit int
}

// Event is one event of a list.
type Event struct {
	ID         int64     `json:"id"`
	TriggerRef string    `json:"trigger_ref"`
	RuleRef    string    `json:"rule_ref,omitempty"` // the only rule that it may fire
	Source     string    `json:"source,omitempty"`
	Created    time.Time `json:"created"`
	// Matched is when it was compared with the rules; nil if it was not, or if that is no longer
	// recorded.
	Matched *time.Time `json:"matched"`
	// Compared counts rules, Fired the matching ones, Disabled fired ones without an execution.
	Compared int `json:"compared"`
	Fired    int `json:"fired"`
	Disabled int `json:"disabled"`
	// Failures are the rules whose conditions failed, with the error.
	Failures []string `json:"failures"`
}

// EventPage is one page of events, the newest first.
type EventPage struct {
	Reading
	List []Event `json:"events"`
	// Next is the cursor of the next page; 0 at the end. Bounded says that the search stopped early.
	Next    int64 `json:"next,omitempty"`
	Bounded bool  `json:"bounded,omitempty"`
}

// The results of a rule for an event.
const (
	VerdictFired    = "fired"    // with an enforcement and soon an execution
	VerdictDisabled = "disabled" // it fired but gets no execution
	VerdictNoMatch  = "no match"
	VerdictFailed   = "failed" // its conditions failed
	VerdictOff      = "off"    // the rule or its trigger is disabled
	VerdictWaiting  = "waiting"
	VerdictPassed   = "passed" // not compared, or it did not match then
)

// RuleVerdict is the result of one rule for an event.
type RuleVerdict struct {
	RuleRef     string       `json:"rule_ref"`
	Verdict     string       `json:"verdict"`
	Why         string       `json:"why"`
	Enforcement *Enforcement `json:"enforcement,omitempty"`
}

// EventDetail is everything about one event, with the result of every rule of its trigger.
type EventDetail struct {
	Reading
	Event
	Payload json.RawMessage `json:"payload"`
	// Note holds for all rules, such as a disabled trigger.
	Note  string        `json:"note,omitempty"`
	Rules []RuleVerdict `json:"rules"`
	// More says that the trigger has further rules.
	More bool `json:"more,omitempty"`
}

// EnforcementFilter selects enforcements.
type EnforcementFilter struct {
	// Rule is a ref, Status is created, processed or disabled; empty keeps all.
	Rule, Status string
	// Event is the id of an event; 0 keeps all.
	Event int64
	// Limit bounds a page; 0 means DefaultPage.
	Limit int
}

// Enforcement is a rule fired by an event.
type Enforcement struct {
	ID         int64  `json:"id"`
	Rule       int64  `json:"-"` // 0 if it was deleted
	RuleRef    string `json:"rule_ref"`
	TriggerRef string `json:"trigger_ref"`
	Event      int64  `json:"event,omitempty"`
	Status     string `json:"status"`
	Error      string `json:"error,omitempty"`
	// Note is a remark on one that got an execution.
	Note       string     `json:"note,omitempty"`
	Created    time.Time  `json:"created"`
	ResolvedAt *time.Time `json:"resolved_at"`
	// Config are the parameters without secrets.
	Config     json.RawMessage `json:"config,omitempty"`
	Condition  string          `json:"condition"`
	Conditions json.RawMessage `json:"conditions,omitempty"`
	// Execution is the requested execution; 0 for none.
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

// Rule is a rule with its newest firings.
type Rule struct {
	ID         int64  `json:"id"`
	Ref        string `json:"ref"`
	Label      string `json:"label"`
	TriggerRef string `json:"trigger_ref"`
	ActionRef  string `json:"action_ref"`
	Enabled    bool   `json:"enabled"`
	// Note says why an enabled rule cannot fire or gets no execution.
	Note string `json:"note,omitempty"`
	// Fired counts firings, Disabled those without an execution; both stop at RecentFirings.
	Fired     int        `json:"fired"`
	Disabled  int        `json:"disabled"`
	LastFired *time.Time `json:"last_fired"`
}

// RecentFirings bounds the counted firings of a rule.
const RecentFirings = 1_000

// RulePage is one page of rules by ref.
type RulePage struct {
	Reading
	List []Rule `json:"rules"`
	// Next is the cursor of the next page; empty at the end.
	Next string `json:"next,omitempty"`
}

// RuleDetail is everything about one rule.
type RuleDetail struct {
	Reading
	Rule
	PackRef     string          `json:"pack_ref"`
	Description string          `json:"description,omitempty"`
	Owner       string          `json:"owner,omitempty"` // the login that it acts as
	Conditions  json.RawMessage `json:"conditions"`
	Params      json.RawMessage `json:"action_params"`
	Created     time.Time       `json:"created"`
	Updated     time.Time       `json:"updated"`
}

// The bounds of reads about events.
const (
	eventScan     = 20_000
	rulesOfOne    = 500 // rules explained for one event
	enforcedOfOne = 500
	pageOfRules   = 200
)

// Events reads one page of events below the cursor; 0 is the newest. It reads a bounded number of
// rows and says so.
func (m *Monitor) Events(ctx context.Context, filter EventFilter, cursor int64) (*EventPage, error) {
	page := &EventPage{List: []Event{}}
	before, limit := cmp.Or(cursor, math.MaxInt64), cmp.Or(filter.Limit, DefaultPage)
	err := m.Read(ctx, "events", &page.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Ours {
			return ErrUnmigrated
		}
		rows, err := store.Rows[Event](ctx, tx, store.ViewEvents, before, eventScan, filter.Trigger, limit)
		if err != nil {
			return fmt.Errorf("read a page of events: %w", err)
		}
		page.List = rows
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

// EventDetail reads everything about one event; ErrNotFound if there is none. Rules that did not
// fire are evaluated as they are now.
func (m *Monitor) EventDetail(ctx context.Context, id int64) (*EventDetail, error) {
	d := &EventDetail{Rules: []RuleVerdict{}}
	err := m.Read(ctx, "an event", &d.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Ours {
			return ErrUnmigrated
		}
		rows, err := store.Rows[eventRow](ctx, tx, store.ViewEvent, id)
		if err != nil {
			return fmt.Errorf("read event %d: %w", id, err)
		}
		if len(rows) == 0 {
			return ErrNotFound
		}
		return d.fill(ctx, tx, &rows[0])
	})
	return d, err
}

type eventRow struct {
	Event
	Payload                                      json.RawMessage
	TriggerThere, TriggerEnabled, BeforeMatching bool
}

func (d *EventDetail) fill(ctx context.Context, tx *store.Tx, row *eventRow) error {
	d.Event, d.Payload = row.Event, row.Payload
	enforced, err := ofEvent(ctx, tx, EnforcementFilter{Event: row.ID})
	if err != nil {
		return err
	}
	rules, err := readRules(ctx, tx, 0, "", row.TriggerRef, "", rulesOfOne+1)
	if err != nil {
		return err
	}
	if d.More = len(rules) > rulesOfOne; d.More {
		rules = rules[:rulesOfOne]
	}
	d.Note = noteOf(row)
	d.assess(row, enforced, rules)
	return nil
}

// noteOf is the note for all rules.
func noteOf(row *eventRow) string {
	switch done := row.Matched != nil; {
	case !row.TriggerThere:
		return fmt.Sprintf("trigger %s does not exist any more", row.TriggerRef)
	case !done && row.BeforeMatching:
		return "it is older than this engine's matching of events"
	case !row.TriggerEnabled && row.RuleRef == "":
		return fmt.Sprintf("trigger %s is disabled and fires no rule", row.TriggerRef)
	case !done:
		return "it waits to be compared with the rules, or that is no longer recorded: a running engine compares within seconds"
	case row.RuleRef != "":
		return fmt.Sprintf("it is for rule %s only", row.RuleRef)
	}
	return ""
}

// assess lists the fired rules, deleted ones too, then the others.
func (d *EventDetail) assess(row *eventRow, enforced []Enforcement, rules []ruleRow) {
	event, err := rule.NewEvent(row.ID, row.TriggerRef, row.Payload, row.Created)
	fired := map[int64]bool{}
	for i := range enforced {
		one := &enforced[i]
		fired[one.Rule] = true
		verdict := RuleVerdict{RuleRef: one.RuleRef, Verdict: VerdictFired, Enforcement: one, Why: firedWords(*one)}
		if one.Status == "disabled" {
			verdict.Verdict = VerdictDisabled
			d.Disabled++
		}
		d.Rules = append(d.Rules, verdict)
	}
	for i := range rules {
		r := &rules[i]
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

// verdict says why a rule did not fire, by its present conditions.
func (d *EventDetail) verdict(row *eventRow, r *ruleRow, event rule.Event) (verdict, why string) {
	switch {
	case row.RuleRef != "" && row.RuleRef != r.Ref:
		return VerdictPassed, fmt.Sprintf("the event is for rule %s only", row.RuleRef)
	case !r.Enabled:
		return VerdictOff, "the rule is disabled"
	case !row.TriggerEnabled:
		return VerdictOff, fmt.Sprintf("trigger %s is disabled", row.TriggerRef)
	case row.Matched != nil && r.Created.After(*row.Matched):
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
	case row.Matched == nil:
		return VerdictWaiting, "it matches: " + match.Why
	}
	return VerdictPassed,
		"it matches now, but did not match or was disabled when the event was compared; it last changed at " +
			r.Updated.UTC().Format("2006-01-02 15:04:05") + " UTC"
}
