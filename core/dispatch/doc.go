// Package dispatch takes execution.requested: it claims executions that still
// wait for their start, finds their queue, and lets them be admitted and
// handed over, or put in line, or refused.
//
// It is safe against any number of deliveries of a message to any number of
// replicas: an execution that is no longer requested, already waits, or
// already holds a slot is left alone (invariants S1, S2). Requests of one
// batch are served in the order in which they were delivered.
//
// What an execution needs to run is read from its row; the message only says
// which row to look at.
package dispatch
