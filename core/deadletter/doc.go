// Package deadletter decides what becomes of messages that died: that expired in
// a worker's queue, were rejected, or that the engine itself gave up on.
//
// The handler takes them from the dead-letter queue. Each is stored in the ledger,
// the table dead_letter, with all that is known about it, together with what was
// decided; only then is it acknowledged (invariant S20). A hand-over that its
// worker never took is decided in a batch of the engine, under the same locks as
// everything else that moves an execution (Step), and its row is written by that
// batch's own transaction. Everything else needs no lock, and the handler stores
// it by itself, so that whatever a message contains never troubles a batch. What
// the handler cannot decide waits for a person: its row has no decision.
//
// A letter that is delivered again finds its row and changes nothing; of two
// handlers with the same letter one writes (its fingerprint is unique). While the
// database is away nothing is acknowledged. A letter that the database does not
// take as it is goes in reduced; one that it takes in no form stays with the
// broker.
//
// Routes proves all the while that what dies arrives here at all. Requeue,
// Discard and DiscardMany are what people decide.
package deadletter
