// Package trace has the ids, the spans and the wire format of traces (OpenTelemetry, W3C Trace Context).
//
// Ids are derived, never drawn: a trace id from the installation's seed and the origin of the trace,
// a span id from its trace, its row and its phase. So every process names the same span alike, without
// a message that carries the name, and a span that is sent twice is one span.
//
// The package only encodes. Package tracing reads the spans from rows and sends them.
package trace
