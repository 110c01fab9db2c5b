package message

import (
	"encoding/json"
	"fmt"
)

// required lists the fields without which a payload means nothing. Everything
// else may be missing or null.
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

func check(raw json.RawMessage, payload any) error {
	names := required(payload)
	if len(names) == 0 {
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
