package message

import (
	"encoding/json"
	"fmt"
)

// required lists the mandatory fields of a payload. All others may be missing or null.
func required(payload any) []string {
	switch payload.(type) {
	case *EventCreated:
		return []string{"event_id"}
	case *EnforcementCreated:
		return []string{"enforcement_id"}
	case *ExecutionRequested, *ExecutionCompleted, *ExecutionStatusChanged:
		return []string{"execution_id"}
	case *Dispatch, *ExecutionCancelRequested:
		return []string{"execution_id", "worker_id"}
	case *InquiryCreated, *InquiryResponded:
		return []string{"inquiry_id", "execution_id"}
	default:
		return nil
	}
}

// complete reports whether every required field of a payload has a non-zero value, and so is
// present. Most messages need no further check.
func complete(payload any) bool {
	switch p := payload.(type) {
	case *ExecutionRequested:
		return p.ExecutionID != 0
	case *ExecutionCompleted:
		return p.ExecutionID != 0
	case *ExecutionStatusChanged:
		return p.ExecutionID != 0
	case *Dispatch:
		return p.ExecutionID != 0 && p.WorkerID != 0
	default:
		return false
	}
}

func check(raw json.RawMessage, payload any) error {
	names := required(payload)
	if len(names) == 0 || complete(payload) {
		return nil
	}
	// A map of all fields would take many times the memory of the payload.
	var fields struct {
		Event       json.RawMessage `json:"event_id"`
		Enforcement json.RawMessage `json:"enforcement_id"`
		Execution   json.RawMessage `json:"execution_id"`
		Worker      json.RawMessage `json:"worker_id"`
		Inquiry     json.RawMessage `json:"inquiry_id"`
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("%w: %w", ErrNotJSON, brief(err))
	}
	present := map[string]json.RawMessage{
		"event_id": fields.Event, "enforcement_id": fields.Enforcement, "execution_id": fields.Execution,
		"worker_id": fields.Worker, "inquiry_id": fields.Inquiry,
	}
	for _, name := range names {
		if value := present[name]; value == nil || string(value) == "null" {
			return fmt.Errorf("%w: %s", ErrIncomplete, name)
		}
	}
	return nil
}
