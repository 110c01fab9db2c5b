// Package redrive looks into a dead-letter queue of the broker and acts on what
// lies there: what nobody takes, and everything on an installation that has none of
// our tables. Where those are, letters are decided in the ledger, by core/triage.
//
// # Looking
//
// Snapshot reads the head of the queue and returns it in the way that harms least
// for the queue's type and the broker's version (Strategy). It is never repeated by
// itself: every look has a price, which it names.
//
// # Acting
//
// A plan freezes which letters it is about, by message id and body, and how deep
// the queue was: what dies while it runs is not chased. Judge says what a requeue
// would do with a letter; the list, the plan and the run ask the same function. A
// run holds a lock of the database on the queue, so that two operators never run
// plans on one queue.
//
// For each letter, in the order in which the executions were requested: spool it,
// reset its row if that is still what the plan saw, publish a fresh request and wait
// for the confirm, acknowledge the letter. What is not in the plan is held and
// returned. A letter that is discarded or moved is spooled before it leaves, and can
// be put back (Undo).
//
// # On failure
//
// Nothing is lost, and at worst something is there twice, which Judge then calls
// stale. A process that dies leaves:
//
//	after            row        letter   what repairs it
//	spooling         untouched  queue    nothing to do
//	the commit       requested  queue    a requeue only publishes
//	publishing       requested  queue    the same: the second request finds it claimed
//	the confirm      requested  queue    it is judged stale and discarded
//	acknowledging    requested  gone     nothing to do
package redrive
