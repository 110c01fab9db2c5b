// Package admission decides which executions may run, in strict order, under shared limits. It is
// the only writer of slots and queues.
//
// # What is authoritative
//
// One row of execution_admission_state per queue (an action, or an action and a group of parameter
// values) holds the counters: executions with a slot, waiting executions in each lane, the heads,
// and the next order number. One row of admission_scope per shared limit (of a pack, of everything,
// a rate, a quota) holds the same for it. A slot is a row of execution_holder, and of
// execution_slot for shared limits. A waiting execution has a row in execution_admission_entry, and
// only while it waits. worker_load counts, per worker, the executions that are dispatched and not
// yet released. At every commit
//
//	state.active_count = rows of execution_holder that name the queue
//	state.queued_count = entries of the queue
//	scope.active_count = execution_slot rows of the limit
//	assigned           = rows of execution_holder that name the worker
//
// # How a decision is made
//
// Lock takes the rows of shared limits, then those of queues, each in order of id. Only then it
// reads entries and executions, in later statements, so that it sees every earlier decision. It
// reads the load of workers without a lock. The result is a Ledger: a working copy on which
// Release, Promote and Admit are plain arithmetic. Write turns the difference into one set-based
// statement a table. Every statement that changes executions or entries counts its changes and
// fails the whole batch if the count differs from the plan. Worker capacity is taken last but for
// statistics, and only if it is still free and the worker may still receive work. So batches that
// share workers but no queue wait for each other only during one statement and the commit.
//
// Open queues (no limit, no pause, no waiting execution) are read without their locks if the batch
// requests it. WriteOpen then adds to their counters in the first statement, which fails the batch
// if one of them is no longer open.
//
// # Order
//
// A queue has three lanes. The order of a lane is the order in which enqueuing transactions held
// the queue's lock: the next number comes from the locked row. A new request is admitted directly
// only while no execution waits (invariant S5). The highest lane with waiting executions is served
// first, but one of eight admissions goes to a lower lane that waits (S23).
//
// A slot of the queue is not enough: an execution needs one of every limit that applies, and
// capacity at a worker, all or none. Across queues, heads that compete for these are served by
// ticket, the order in which they began to wait. No head takes capacity that an earlier one could
// use. For workers this holds among the queues that a batch has locked; a batch skips queues that
// another one holds. No optimisation dispatches work that a Ledger has not granted.
//
// # On failure
//
// Nothing is written unless the whole batch commits; the caller repeats it. A replica that crashes
// inside a transaction loses its locks with its connection. A deleted execution leaves a note from
// which GiveBack releases what it held.
package admission
