// Package telemetry makes the loggers and the metric registry of a process.
//
// Log lines are structured: a constant message and attributes. Attributes that
// belong to the work in hand travel in the context (With) and appear on every
// line logged with it. Nothing here fails at run time; a wrong level or format
// is refused when the logger is made.
package telemetry
