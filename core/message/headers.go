package message

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/attune-go/attune/core/jsonvalue"
)

// known are the headers with a meaning, in alphabetical order, in which a map with all headers is
// written too.
type known struct {
	RetryCount    uint64 `json:"retry_count"`
	SourceService string `json:"source_service,omitempty"`
	TraceID       string `json:"trace_id,omitempty"`
}

// encodable is the written form of the headers: retry_count always, the optional two when set, and
// the extra keys.
func (h Headers) encodable() any {
	if len(h.Extra) == 0 {
		return known{RetryCount: h.RetryCount, SourceService: h.SourceService, TraceID: h.TraceID}
	}
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
	return fields
}

func decodeHeaders(raw json.RawMessage) (Headers, error) {
	var h Headers
	if jsonvalue.None(raw) {
		return h, nil
	}
	var usual known
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&usual) == nil {
		h.RetryCount, h.SourceService, h.TraceID = usual.RetryCount, usual.SourceService, usual.TraceID
		return h, nil
	}
	return decodeUnusual(raw)
}

// decodeUnusual reads headers with further keys, or with values of other types.
func decodeUnusual(raw json.RawMessage) (Headers, error) {
	var h Headers
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return h, fmt.Errorf("%w: headers", ErrNotJSON)
	}
	// A header of the wrong type is kept unchanged and does not fail the message: no decision
	// depends on it.
	for key, value := range fields {
		recognized := true
		var err error
		switch key {
		case "retry_count":
			err = json.Unmarshal(value, &h.RetryCount)
		case "source_service":
			err = json.Unmarshal(value, &h.SourceService)
		case "trace_id":
			err = json.Unmarshal(value, &h.TraceID)
		default:
			recognized = false
		}
		if recognized && err == nil {
			continue
		}
		if h.Extra == nil {
			h.Extra = make(map[string]json.RawMessage)
		}
		h.Extra[key] = value
	}
	return h, nil
}
