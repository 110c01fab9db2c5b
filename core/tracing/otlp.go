package tracing

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// Path is the path of the traces of an OTLP endpoint.
const Path = "/v1/traces"

// Scope names the instrumentation in every payload.
const Scope = "github.com/attune-go/attune"

// The JSON encoding of OTLP: ids in hexadecimal, 64-bit numbers as text, enumerations as numbers.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope      `json:"scope"`
		Spans []spanJSON `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	spanJSON struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		ParentID   string     `json:"parentSpanId,omitempty"`
		Flags      uint32     `json:"flags"`
		Name       string     `json:"name"`
		Kind       Role       `json:"kind"`
		Start      string     `json:"startTimeUnixNano"`
		End        string     `json:"endTimeUnixNano"`
		Attributes []keyValue `json:"attributes,omitempty"`
		Links      []linkJSON `json:"links,omitempty"`
		Status     *status    `json:"status,omitempty"`
	}
	linkJSON struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
		Flags   uint32 `json:"flags"`
	}
	status struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string `json:"stringValue,omitempty"`
		Int    *string `json:"intValue,omitempty"`
		Bool   *bool   `json:"boolValue,omitempty"`
	}
)

// statusError is STATUS_CODE_ERROR.
const statusError = 2

// Encode writes spans as the body of an OTLP/HTTP request. attrs describe the process.
func Encode(attrs []Attr, release string, spans []Span) ([]byte, error) {
	list := make([]spanJSON, len(spans))
	for i, s := range spans {
		list[i] = spanJSON{
			TraceID: s.Context.Trace.String(), SpanID: s.Context.Span.String(), Flags: flags(s.Context), Name: s.Name,
			Kind: s.Role, Start: nanos(s.Start), End: nanos(s.End), Attributes: values(s.Attrs),
		}
		if s.Parent != (SpanID{}) {
			list[i].ParentID = hex.EncodeToString(s.Parent[:])
		}
		for _, c := range s.Links {
			list[i].Links = append(list[i].Links,
				linkJSON{TraceID: c.Trace.String(), SpanID: c.Span.String(), Flags: flags(c)})
		}
		if s.Failure != "" {
			list[i].Status = &status{Message: s.Failure, Code: statusError}
		}
	}
	return json.Marshal(request{ResourceSpans: []resourceSpans{{
		Resource:   resource{Attributes: values(attrs)},
		ScopeSpans: []scopeSpans{{Scope: scope{Name: Scope, Version: release}, Spans: list}},
	}}})
}

func flags(c Context) uint32 {
	if c.Sampled {
		return 1
	}
	return 0
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func values(attrs []Attr) []keyValue {
	list := make([]keyValue, 0, len(attrs))
	for _, a := range attrs {
		var v value
		switch held := a.Value.(type) {
		case string:
			v.String = &held
		case int64:
			v.Int = new(strconv.FormatInt(held, 10))
		case bool:
			v.Bool = &held
		default:
			continue
		}
		list = append(list, keyValue{Key: a.Key, Value: v})
	}
	return list
}
