// Package deadletter decides about dead-lettered messages: they expired in a worker's queue, were
// rejected, or the engine gave up on them.
//
// The handler consumes the dead-letter queue. It stores each dead letter in the ledger, the table
// dead_letter, with its evidence and the decision, and only then acknowledges it (invariant S20). A
// batch of the engine decides about a dispatch that its worker never took, under the locks that
// every move of an execution takes (Step), and writes the ledger row in its own transaction. All
// other dead letters need no lock, and the handler stores them itself, so no message content
// disturbs a batch. A dead letter that the handler cannot decide waits for an operator: its row has
// no decision.
//
// A redelivered dead letter finds its row and changes nothing. Of two handlers with the same dead
// letter only one writes, because its fingerprint is unique. While the database is away nothing is
// acknowledged. If the database refuses a dead letter, the handler stores a reduced form; if it
// refuses that too, the message stays with the broker.
//
// Routes probes that dead letters arrive in the queue. Requeue, Discard and DiscardMany are the
// decisions of operators.
package deadletter
