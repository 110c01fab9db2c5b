package message

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// encode writes retry_count always, the optional two when set, and the extra
// keys beside them.
func (h Headers) encode() (json.RawMessage, error) {
	fields := make(map[string]any, len(h.Extra)+3)
	for key, value := range h.Extra {
		fields[key] = value
	}
	fields["retry_count"] = h.RetryCount
	if h.SourceService != "" {
		fields["source_service"] = h.SourceService
	}
	if h.TraceID != "" {
		fields["trace_id"] = h.TraceID
	}
	return marshal(fields)
}

func decodeHeaders(raw json.RawMessage) (Headers, error) {
	var h Headers
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null")) {
		return h, nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return h, fmt.Errorf("%w: headers", ErrNotJSON)
	}
	// A header of the wrong type is kept as it is instead of failing the
	// message: nothing is decided by it.
	for key, value := range fields {
		var err error
		switch key {
		case "retry_count":
			err = json.Unmarshal(value, &h.RetryCount)
		case "source_service":
			err = json.Unmarshal(value, &h.SourceService)
		case "trace_id":
			err = json.Unmarshal(value, &h.TraceID)
		default:
			h.Extra = keep(h.Extra, key, value)
		}
		if err != nil {
			h.Extra = keep(h.Extra, key, value)
		}
	}
	return h, nil
}

func keep(extra map[string]json.RawMessage, key string, value json.RawMessage) map[string]json.RawMessage {
	if extra == nil {
		extra = make(map[string]json.RawMessage)
	}
	extra[key] = value
	return extra
}
