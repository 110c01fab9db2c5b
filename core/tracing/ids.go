package tracing

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
)

// ID is a trace id.
type ID [16]byte

// SpanID is a span id.
type SpanID [8]byte

// String returns the id in hexadecimal, as W3C Trace Context writes it.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// String returns the id in hexadecimal.
func (id SpanID) String() string { return hex.EncodeToString(id[:]) }

// Kind is the kind of a row that has a span.
type Kind string

// The kinds, as the tables trace_origin and trace_pending write them.
const (
	Event       Kind = "event"
	Enforcement Kind = "enforcement"
	Execution   Kind = "execution"
)

// Phase is a part of a row's life with a span of its own.
type Phase string

// The phases of an execution. Whole is the row's own span, the parent of the others.
const (
	Whole    Phase = ""
	Delay    Phase = "delay"
	Queue    Phase = "queue"
	Dispatch Phase = "dispatch"
	Run      Phase = "run"
	Complete Phase = "complete"
)

// Seed makes the trace ids of one installation its own.
type Seed [16]byte

// Trace derives the id of the trace that begins with a row.
func (s Seed) Trace(kind Kind, row int64) (id ID) {
	sum := derive(s[:], kind, row, Whole)
	copy(id[:], sum[:])
	return id
}

// Span derives the id of the span of a row's phase.
func (id ID) Span(kind Kind, row int64, phase Phase) (span SpanID) {
	sum := derive(id[:], kind, row, phase)
	copy(span[:], sum[:])
	return span
}

func derive(base []byte, kind Kind, row int64, phase Phase) [sha256.Size]byte {
	text := make([]byte, 0, 64)
	text = append(text, base...)
	text = append(append(text, kind...), 0)
	text = binary.BigEndian.AppendUint64(text, uint64(row))
	return sha256.Sum256(append(text, phase...))
}

// RandomID returns an id for the trace of something without a row.
func RandomID() (id ID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// RandomSpan returns an id for the span of something without a row.
func RandomSpan() (id SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// Sampled decides by the trace id, so every process decides alike. It is the TraceIdRatioBased sampler
// of OpenTelemetry.
func Sampled(id ID, ratio float64) bool {
	return ratio >= 1 || binary.BigEndian.Uint64(id[8:])>>1 < uint64(max(ratio, 0)*math.MaxInt64)
}

// Context is a position in a trace. The zero Context is none.
type Context struct {
	Trace   ID
	Span    SpanID
	Sampled bool
}

// Valid reports whether the context is one.
func (c Context) Valid() bool { return c.Trace != ID{} && c.Span != SpanID{} }

// Header is the name of the header and of the message header.
const Header = "traceparent"

// Variable is the environment variable with the context of a process.
const Variable = "TRACEPARENT"

const version = "00"

// String is the traceparent of the context, empty for none.
func (c Context) String() string {
	if !c.Valid() {
		return ""
	}
	flags := "00"
	if c.Sampled {
		flags = "01"
	}
	return version + "-" + c.Trace.String() + "-" + c.Span.String() + "-" + flags
}

// length is that of a traceparent of version 00. Later versions may append fields.
const length = 55

// Parse reads a traceparent. As the specification wants, an invalid one counts as none.
func Parse(text string) Context {
	var c Context
	parts := strings.Split(text, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || (parts[0] == version && len(text) != length) ||
		text != strings.ToLower(text) {
		return Context{}
	}
	var ahead, flags [1]byte
	if !decode(ahead[:], parts[0]) || !decode(c.Trace[:], parts[1]) || !decode(c.Span[:], parts[2]) ||
		!decode(flags[:], parts[3]) || !c.Valid() {
		return Context{}
	}
	c.Sampled = flags[0]&1 == 1
	return c
}

func decode(into []byte, text string) bool {
	if len(text) != 2*len(into) {
		return false
	}
	_, err := hex.Decode(into, []byte(text))
	return err == nil
}

// Origin is the row or the client with which a trace begins.
type Origin struct {
	Kind Kind
	Row  int64
	// Client is the traceparent that a client sent with the request for the row, empty for none.
	Client string
}

// Root returns the trace of an origin, and the parent of its first span: the client's, zero without one.
// A client decides whether its trace is sampled; otherwise the ratio does.
func (s Seed) Root(o Origin, ratio float64) Context {
	if client := Parse(o.Client); client.Valid() {
		return client
	}
	id := s.Trace(o.Kind, o.Row)
	return Context{Trace: id, Sampled: Sampled(id, ratio)}
}

// At returns the position of a row's phase in the trace.
func (c Context) At(kind Kind, row int64, phase Phase) Context {
	c.Span = c.Trace.Span(kind, row, phase)
	return c
}
