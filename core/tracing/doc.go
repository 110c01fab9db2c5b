// Package tracing sends the traces of an installation to an OpenTelemetry collector, by OTLP/HTTP.
//
// # Spans that are read from rows
//
// The life of an event, an enforcement or an execution is in its row. The transaction that ends it
// writes its id to trace_pending; a Reporter of any replica claims these ids, reads the rows, and sends
// their spans. It deletes the ids when the collector has the spans. So a killed replica loses no span,
// and executions of any worker have theirs. The ids of the spans derive from the rows (Seed):
// a span that is sent twice is the same span.
//
// # Spans of a process
//
// A batch, an HTTP request and the publication of a message have no row. Their spans go through the
// bounded queue of a Sender, and are lost with the process. No other span is below one of them.
//
// Neither waits for the collector in the path of an execution. What does not fit, or finds no collector
// in time, is dropped and counted.
package tracing
