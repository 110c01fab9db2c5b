// Package cancellation stops executions in any state: it removes queued executions from their queue, ends
// dispatched executions before their worker starts them, sends cancel requests to the workers of running
// executions, and prevents retries of ended ones.
//
// # Promises
//
// The decision is a table over the row's facts (Rules). It reads locked rows, after the locks of their
// queues, and every write repeats the values that were read. A changed row rolls back the transaction, which
// is then retried. A status moves only along the transition table and never from a terminal one (invariants
// S8, S9).
//
// The same transaction stores the cancel request (execution_cancel) before the status. From then on the
// execution is never retried, however it ends (S15): the batch that would retry it and the cancellation of
// an ended execution both hold the lock of its slot's queue.
//
// Every end decided here writes its execution.completed in the same transaction (S13, S14). The batch that
// reads the message releases the slot of a dispatched execution. The same transaction requests the next
// execution of each changed queue.
//
// # On failure
//
// The message to a worker is a hint. Poll sends it again at growing intervals while the row is canceling. It
// also ends executions that their worker never started or that have no worker, stops executions that another
// program set back to running, and stops a retry whose batch had read the row before the request. The
// Rescuer handles executions of dead workers.
//
// A worker that does not fence attempts may start a dispatched execution at any moment. The execution becomes
// canceling, which such workers check before the start. It ends if it is not started within a grace.
package cancellation
