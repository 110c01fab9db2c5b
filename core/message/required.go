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
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("%w: %w", ErrNotJSON, err)
	}
	for _, name := range names {
		if value, ok := fields[name]; !ok || string(value) == "null" {
			return fmt.Errorf("%w: %s", ErrIncomplete, name)
		}
	}
	return nil
}
