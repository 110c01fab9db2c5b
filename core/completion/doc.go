// Package completion takes execution.completed: it gives back the slot and
// the worker's room of every execution that has ended, so that the round can
// promote who waits for them.
//
// The row decides, never the text of the message: existing workers report
// "Completed" for actions that failed. A report about an execution that has
// not ended changes nothing. Releasing is guarded by the holder stored on the
// row, so that any number of deliveries, in any order, to any number of
// replicas, releases once (invariants S7, S14). An execution that ended while
// it waited (a cancel by another service) leaves its line.
package completion
