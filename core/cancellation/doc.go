// Package cancellation stops executions in any state: it removes waiting executions from their
// queue, closes dispatched executions before their worker starts them, tells the workers of running
// executions to stop, and prevents repetitions of ended ones.
//
// # Promises
//
// The decision is a table over the row's facts (Rules). It reads rows that are locked, after the
// queues in which they wait, and every write repeats the values that were read. A row that changed
// anyway rolls back the transaction, which is then tried again. A status moves only along the
// transition table and never from a terminal one (invariants S8, S9).
//
// The cancel request is stored (execution_cancel) in the same transaction, before the status. From
// then on the execution is not repeated, however it ends (S15). The batch that would repeat it and
// the cancellation of an ended execution both hold the lock of its slot's queue.
//
// Every end decided here writes its execution.completed in the same transaction (S13, S14). The
// batch that reads the message releases the slot of a dispatched execution. The same transaction
// requests the next execution of a queue from which one was removed.
//
// # On failure
//
// The message to a worker is a hint. Poll sends it again at growing intervals while the row says
// canceling. It also ends executions that their worker never started or that have no worker, stops
// executions that another program set back to running, and stops a repetition whose batch had read
// the row before the request. The Rescuer handles executions of dead workers.
//
// A worker that does not fence attempts may start a dispatched execution at any moment. The
// execution becomes canceling, which such workers check before they start it. It is closed if it is
// not started within a grace.
package cancellation
