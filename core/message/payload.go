package message

import (
	"encoding/json"
	"time"
)

// Every payload has a name that decoding can check and fields in the order in which existing
// services write them. Pointers and raw JSON are nullable and written as null when absent.

// EventCreated says that an event was recorded.
type EventCreated struct {
	EventID    int64           `json:"event_id"`
	TriggerID  *int64          `json:"trigger_id"`
	TriggerRef string          `json:"trigger_ref"`
	SensorID   *int64          `json:"sensor_id"`
	SensorRef  *string         `json:"sensor_ref"`
	Payload    json.RawMessage `json:"payload"`
	Config     json.RawMessage `json:"config"`
}

// EnforcementCreated says that an event matched a rule.
type EnforcementCreated struct {
	EnforcementID int64           `json:"enforcement_id"`
	RuleID        *int64          `json:"rule_id"`
	RuleRef       string          `json:"rule_ref"`
	EventID       *int64          `json:"event_id"`
	TriggerRef    string          `json:"trigger_ref"`
	Payload       json.RawMessage `json:"payload"`
}

// ExecutionRequested asks the engine to start an execution.
type ExecutionRequested struct {
	ExecutionID   int64           `json:"execution_id"`
	ActionID      *int64          `json:"action_id"`
	ActionRef     string          `json:"action_ref"`
	ParentID      *int64          `json:"parent_id"`
	EnforcementID *int64          `json:"enforcement_id"`
	Config        json.RawMessage `json:"config"`
}

// Dispatch hands an execution to a worker. Its message type is
// ExecutionRequested; the routing key tells it apart.
type Dispatch struct {
	ExecutionID int64           `json:"execution_id"`
	WorkerID    int64           `json:"worker_id"`
	ActionRef   string          `json:"action_ref"`
	Config      json.RawMessage `json:"config"`
	// ScheduledAttemptUpdatedAt is execution.updated after the dispatch.
	ScheduledAttemptUpdatedAt time.Time `json:"scheduled_attempt_updated_at"`
	// Attempt is execution.attempt after the dispatch: the fence. It is zero from an engine without
	// fencing.
	Attempt int32 `json:"attempt"`
	// TraceParent is the position of the dispatch in its trace, empty while tracing is off.
	TraceParent string `json:"traceparent,omitempty"`
}

// ExecutionStatusChanged reports a status that a worker wrote.
type ExecutionStatusChanged struct {
	ExecutionID    int64     `json:"execution_id"`
	ActionRef      string    `json:"action_ref"`
	PreviousStatus string    `json:"previous_status"`
	NewStatus      string    `json:"new_status"`
	ChangedAt      time.Time `json:"changed_at"`
}

// ExecutionCompleted says that an execution has ended. Its status is the sender's view; the row
// decides.
type ExecutionCompleted struct {
	ExecutionID int64           `json:"execution_id"`
	ActionID    int64           `json:"action_id"` // 0 when unknown
	ActionRef   string          `json:"action_ref"`
	Status      string          `json:"status"`
	Result      json.RawMessage `json:"result"`
	CompletedAt time.Time       `json:"completed_at"`
}

// ExecutionCancelRequested tells a worker to stop an execution.
type ExecutionCancelRequested struct {
	ExecutionID int64 `json:"execution_id"`
	WorkerID    int64 `json:"worker_id"`
}

// InquiryCreated says that an inquiry is open.
type InquiryCreated struct {
	InquiryID      int64           `json:"inquiry_id"`
	ExecutionID    int64           `json:"execution_id"`
	Prompt         string          `json:"prompt"`
	ResponseSchema json.RawMessage `json:"response_schema"`
	AssignedTo     *int64          `json:"assigned_to"`
	TimeoutAt      *time.Time      `json:"timeout_at"`
}

// InquiryResponded says that an inquiry was answered.
type InquiryResponded struct {
	InquiryID   int64           `json:"inquiry_id"`
	ExecutionID int64           `json:"execution_id"`
	Response    json.RawMessage `json:"response"`
	RespondedBy *int64          `json:"responded_by"`
	RespondedAt time.Time       `json:"responded_at"`
}

// NotificationCreated carries one notification.
type NotificationCreated struct {
	NotificationID int64           `json:"notification_id"`
	Channel        string          `json:"channel"`
	EntityType     string          `json:"entity_type"`
	Entity         string          `json:"entity"`
	Activity       string          `json:"activity"`
	Content        json.RawMessage `json:"content"`
}

// RuleCreated says that a rule exists.
type RuleCreated struct {
	RuleID        int64           `json:"rule_id"`
	RuleRef       string          `json:"rule_ref"`
	TriggerID     *int64          `json:"trigger_id"`
	TriggerRef    string          `json:"trigger_ref"`
	ActionID      *int64          `json:"action_id"`
	ActionRef     string          `json:"action_ref"`
	TriggerParams json.RawMessage `json:"trigger_params"`
	Enabled       bool            `json:"enabled"`
}

// RuleEnabled says that a rule was switched on.
type RuleEnabled struct {
	RuleID        int64           `json:"rule_id"`
	RuleRef       string          `json:"rule_ref"`
	TriggerRef    string          `json:"trigger_ref"`
	TriggerParams json.RawMessage `json:"trigger_params"`
}

// RuleDisabled says that a rule was switched off.
type RuleDisabled struct {
	RuleID     int64  `json:"rule_id"`
	RuleRef    string `json:"rule_ref"`
	TriggerRef string `json:"trigger_ref"`
}

// PackRegistered says that a pack was installed or changed.
type PackRegistered struct {
	PackID       int64    `json:"pack_id"`
	PackRef      string   `json:"pack_ref"`
	Version      string   `json:"version"`
	RuntimeNames []string `json:"runtime_names"`
}

// PackDeleted says that a pack was deleted.
type PackDeleted struct {
	PackID  int64  `json:"pack_id"`
	PackRef string `json:"pack_ref"`
}
