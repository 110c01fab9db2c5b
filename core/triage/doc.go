// Package triage is what an operator may do. An act on admission queues is
// planned, confirmed, run and answered with a receipt: plans only read; every
// act that was run has one row in operator_audit, written in the transaction
// that did it, and the receipt names that row.
//
// # Acts
//
// Say puts an operator's word on queues: pause, resume, another limit, the
// policy's limit again. It takes effect with its commit: a batch that holds a
// queue's lock ends first, afterwards a paused queue admits nothing, and its
// order is the same when it is resumed (invariant S21). Lowering a limit evicts
// nobody. Saying what is so already changes nothing.
//
// Clear cancels those who wait, a page a transaction, through the locks of
// admission: whoever was promoted before a page had its lock keeps its slot,
// and who comes after the plan is not touched. Every cancelled execution has
// its execution.completed message from the same commit.
//
// Repair counts what the counters claim, puts right what differs under the same
// locks, and releases what ended executions still hold.
//
// RetryExecution repeats what has ended as a new execution, once, whoever else
// tries: the record of the repetition, its row, its request and its audit are of
// one commit.
//
// Run carries out an act on many rows, one after the other: the dashboard's acts on marked
// executions, queues, workers, workflows and inquiries, and RequeueMany, SendLetters,
// ReturnLetters and Reopen.
//
// Requeue and Discard decide about one dead letter, DiscardMany about all that wait and
// match, a page a transaction, of those that waited when it was planned. A letter
// is decided once: who comes second is told who did. A hand-over is never sent
// again, its execution is repeated; no decision removes anything from the ledger.
//
// ActOnWorker takes workers out of service and back, and removes those that are
// gone. A cordon and a drain hold for every hand-over that commits after the
// receipt: it waits for the batches that had looked at the workers before.
//
// # On failure
//
// What was committed is done, nothing is half done, and the same again goes on
// where it stopped. Messages are in the outbox with the act; without a relay,
// or without a broker, the sweep of a running engine publishes them, and the
// receipt says how many that are.
package triage
