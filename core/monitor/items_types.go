package monitor

import (
	"encoding/json"
	"time"
)

// Item is what policies, actions, triggers and packs have in common.
type Item struct {
	ID          int64  `json:"id"`
	Ref         string `json:"ref"`
	PackRef     string `json:"pack_ref,omitempty"` // empty for a policy about everything
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	// File is where `apply` last read it from, as FILE:LINE:COLUMN, for as long as
	// operator_audit is kept; empty if another program wrote it.
	File    string    `json:"file,omitempty"`
	Adhoc   bool      `json:"is_adhoc,omitempty"` // made by hand, in no file
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// ItemPage is one page of items by reference.
type ItemPage[T any] struct {
	Reading
	List []T `json:"list"`
	// Next is the cursor of the next page, empty at the end.
	Next string `json:"next,omitempty"`
}

// PolicyItem is a policy as it is stored.
type PolicyItem struct {
	Item
	// Scope is action, pack or global.
	Scope     string `json:"scope"`
	ActionRef string `json:"action_ref,omitempty"`
	Kind      string `json:"kind"`
	Threshold int64  `json:"threshold"`
	Method    string `json:"method"`
	// Limit is the limit in words.
	Limit string `json:"limit"`
	// NewerRef is the newer concurrency policy of the same scope that counts in place of this
	// one; empty if this one counts.
	NewerRef            string   `json:"superseded_by,omitempty"`
	WindowSeconds       int64    `json:"window_seconds,omitempty"`
	Burst               int64    `json:"burst,omitempty"`
	Parameters          []string `json:"parameters,omitempty"`
	MaxQueueLength      int64    `json:"max_queue_length,omitempty"`
	QueueTimeoutSeconds int64    `json:"queue_timeout_seconds,omitempty"`
	RetryPlace          string   `json:"retry_place,omitempty"`
	AdaptiveMin         int64    `json:"adaptive_min,omitempty"`
	AdaptiveLatencyMS   int64    `json:"adaptive_latency_ms,omitempty"`
	Tags                []string `json:"tags,omitempty"`
}

// PolicyDetail is a policy with the queues of its scope.
type PolicyDetail struct {
	Reading
	PolicyItem
	// Queues are those of its scope in which executions wait or hold slots, the busiest
	// first; Scopes are the counters of a shared limit, one for each group.
	Queues     []Queue `json:"queues"`
	MoreQueues bool    `json:"more_queues,omitempty"`
	Scopes     []Scope `json:"scopes,omitempty"`
	MoreScopes bool    `json:"more_scopes,omitempty"`
}

// ActionItem is an action.
type ActionItem struct {
	Item
	Runtime     string `json:"runtime,omitempty"`
	WorkflowRef string `json:"workflow_ref,omitempty"` // if the action runs a workflow
	// Threshold is the limit of the action's own concurrency policy, 0 if it has none.
	Threshold int64 `json:"threshold,omitempty"`
}

// RuleLink is a rule with what it links.
type RuleLink struct {
	Ref        string `json:"ref"`
	TriggerRef string `json:"trigger_ref"`
	ActionRef  string `json:"action_ref"`
	Enabled    bool   `json:"enabled"`
}

// ActionDetail is everything about one action.
type ActionDetail struct {
	Reading
	ActionItem
	EntryPoint              string          `json:"entry_point,omitempty"`
	ParamSchema             json.RawMessage `json:"param_schema"`
	OutSchema               json.RawMessage `json:"out_schema"`
	ParameterDelivery       string          `json:"parameter_delivery"`
	ParameterFormat         string          `json:"parameter_format"`
	OutputFormat            string          `json:"output_format"`
	TimeoutSeconds          int64           `json:"timeout_seconds,omitempty"`
	ScheduledTimeoutSeconds int64           `json:"scheduled_timeout_seconds,omitempty"`
	MaxRetries              int64           `json:"max_retries"`
	RuntimeVersion          string          `json:"runtime_version,omitempty"`
	RequiredRuntimes        json.RawMessage `json:"required_worker_runtimes"`
	Selector                json.RawMessage `json:"worker_selector"`
	Tolerations             json.RawMessage `json:"worker_tolerations"`
	Affinity                json.RawMessage `json:"worker_affinity"`
	// Rules and Workflows run the action.
	Rules     []RuleLink `json:"rules"`
	Workflows []string   `json:"workflows"`
	// Policies are in force for its executions.
	Policies []PolicyLine `json:"policies"`
	// Holds is what its queues hold together; nil on a schema without records of queues.
	Holds *ActionTotals `json:"queues"`
}

// TriggerItem is a trigger.
type TriggerItem struct {
	Item
	Enabled bool `json:"enabled"`
	Rules   int  `json:"rule_count"`
}

// TriggerDetail is everything about one trigger.
type TriggerDetail struct {
	Reading
	TriggerItem
	SensorRef   string          `json:"sensor_ref,omitempty"`
	Webhook     bool            `json:"webhook_enabled"`
	ParamSchema json.RawMessage `json:"param_schema"`
	OutSchema   json.RawMessage `json:"out_schema"`
	Rules       []RuleLink      `json:"rules"`
}

// PackItem is a pack with how much it holds.
type PackItem struct {
	Item
	Version  string `json:"version"`
	Actions  int    `json:"action_count"`
	Triggers int    `json:"trigger_count"`
	Rules    int    `json:"rule_count"`
	Policies int    `json:"policy_count"`
}

// PackDetail is everything about one pack but the values of its configuration, which may
// be secret.
type PackDetail struct {
	Reading
	PackItem
	Tags         []string        `json:"tags"`
	Standard     bool            `json:"is_standard"`
	Dependencies []string        `json:"dependencies"`
	ConfSchema   json.RawMessage `json:"conf_schema"`
	Actions      []ActionItem    `json:"actions"`
	Triggers     []TriggerItem   `json:"triggers"`
	Rules        []RuleLink      `json:"rules"`
	Policies     []PolicyItem    `json:"policies"`
}
