package tracing

import "time"

// Role is the kind of a span in OpenTelemetry's sense.
type Role int

// The roles, with the numbers of the protocol.
const (
	Internal Role = 1 + iota
	Server
	Client
	Producer
	Consumer
)

// Attr is an attribute. Its value is a string, an int64 or a bool.
type Attr struct {
	Key   string
	Value any
}

// Span is a finished span.
type Span struct {
	Context    Context
	Parent     SpanID // zero for the first span of a trace
	Name       string
	Role       Role
	Start, End time.Time
	Attrs      []Attr
	Links      []Context
	// Failure is why the work failed, empty if it did not.
	Failure string
}

// Sink takes finished spans of this process. It never blocks, and drops what exceeds its bound. A nil
// Sink means that tracing is off.
type Sink interface{ Offer(span Span) }
