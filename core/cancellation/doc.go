// Package cancellation stops executions, whatever they are doing: who waits is
// taken out of the line, what was handed over and not started is closed before
// its worker can start it, what runs is asked to stop, and what has ended and is
// about to be repeated is not.
//
// # Promises
//
// The decision is a table over the row's facts (Rules). It is made on rows that
// are locked, after the queues in which they wait, and every write repeats what
// was read; a row that moved all the same takes the transaction back, which is
// then decided anew. A status moves only along the transition table and never
// from a terminal one (invariants S8, S9).
//
// That a stop was asked for is stored (execution_cancel) in the transaction that
// acts on it, before the status. From there on the execution is not repeated,
// however it ends (S15): the batch that would repeat it holds the lock of its
// slot's queue, and so does the cancellation of one that has ended with it.
//
// Every end made here writes its execution.completed in the same transaction
// (S13, S14). The slot of one that was handed over is given back by the batch that
// reads the message. Whose turn it is now, because somebody before them left the
// line, is asked for with the same transaction.
//
// # On failure
//
// The message to a worker is a hint. Poll sends it again at growing distance for
// as long as the row says canceling, ends what its worker never started and what
// has no worker, stops again what somebody wrote back to running, and stops the
// repetition that a batch made because it had read the row before the note. A
// worker that is gone is the business of the search for orphans.
//
// An execution that is handed over to a worker that does not fence attempts may
// be started by it at any moment: it becomes canceling, which such workers look
// at before they start, and is closed when it was not started within a grace.
package cancellation
