// Package triage has the actions of operators. An action is planned, confirmed, run, and answered
// with a receipt. A plan only reads. Every action has one row in operator_audit, written in the
// transaction of the action, and the receipt names that row.
//
// # Actions
//
// Override pauses queues, resumes them, sets their limits, or returns to the policy's limit. It
// takes effect with its commit: a batch that holds a queue's lock ends first. Afterwards a paused
// queue admits nothing, and keeps its order until it is resumed (invariant S21). A lower limit
// evicts no running execution. An override that changes nothing is harmless.
//
// Clear cancels queued executions, a page in each transaction, under the locks of admission. An
// execution that was promoted before its page was locked keeps its slot, and executions that
// arrive after the plan are not touched. The commit of a cancellation includes its
// execution.completed message.
//
// Repair counts the counters again, corrects them under the same locks, and releases the slots of
// ended executions.
//
// RetryExecution repeats an ended execution as a new one, at most once. One commit writes the
// record of the retry, its row, its request and its audit.
//
// Requeue and Discard decide about one dead letter, DiscardMany about all waiting ones that match,
// a page in each transaction. A dead letter is decided once; a second decision fails with the
// author of the first. A dispatch is never sent again, its execution is repeated. No decision
// removes a row of the ledger.
//
// ActOnWorker takes workers out of service and back, and removes lost workers. A cordon and a
// drain hold for every dispatch that commits after the receipt: the action waits for the batches
// that had read the workers before.
//
// Run runs an action on many rows, one after the other.
//
// # On failure
//
// Committed steps stay done, no step is half done, and the same action again continues with the
// rest. Messages are in the outbox in the same commit. Without a relay or a broker, the sweep of a
// running engine publishes them, and the receipt has their number.
package triage
