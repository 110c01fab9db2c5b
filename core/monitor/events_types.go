package monitor

import (
	"encoding/json"
	"time"
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
