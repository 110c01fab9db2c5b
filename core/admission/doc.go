// Package admission decides who may run, in strict order, under shared limits.
// It is the only writer of slots and queues.
//
// # What is authoritative
//
// One row of execution_admission_state per queue (an action, or an action and
// a group of parameter values) holds the counters: how many executions hold a
// slot, how many wait in each lane, where the heads are, which order number
// comes next. One row of admission_scope per limit that queues share (of a pack,
// of everything, a rate, a quota) holds the same for it. A slot is a row of
// execution_holder, and of execution_slot for shared limits; a waiting execution has a row in
// execution_admission_entry, and only while it waits. worker_load counts, per
// worker, the executions handed to it and not yet released. At every commit
//
//	state.active_count = rows of execution_holder that name the queue
//	state.queued_count = entries of the queue
//	scope.active_count = execution_slot rows of the limit
//	assigned           = rows of execution_holder that name the worker
//
// # How a decision is made
//
// Lock takes the rows of shared limits, then those of queues, each in order of
// id, and only then reads entries and executions in later statements, so that
// everything it reads is newer than every decision made before. The load of
// workers is read without a lock. The result is a Ledger: a working copy on which
// Release, Promote and Admit are plain arithmetic. Write turns the difference
// into one set-based statement a table; every statement that changes executions
// or entries counts what it changed and fails the whole batch when the count is
// not the planned one. Room at workers is taken last but for statistics, and only if
// it is still there and the worker may still be given work: so batches that share
// workers and no queue wait for each other during one statement and the commit.
//
// Open queues (no limit, no pause, no waiting execution) are read without their locks
// if the batch asks for it. WriteOpen then adds to their counters in the first
// statement, which fails the batch if one of them is not open any more.
//
// # Order
//
// A queue has three lanes. The order of a lane is the order in which enqueuing
// transactions held the queue's lock: the next number is taken from the locked
// row. A newcomer is admitted directly only while nobody waits (invariant S5).
// The highest lane in which somebody waits is served first, but of eight
// admissions one goes to a lower lane that waits (S23).
//
// A slot of the queue is not enough: an execution needs one of every limit that
// applies, and room at a worker, all or none. Across queues, heads that compete
// for these are served by ticket, the order in which they began to wait, and no
// head takes room that an earlier one could use. For the room at workers this is so
// among the queues that a batch has locked; a batch passes over queues that another
// one holds. No optimisation anywhere hands out work that a Ledger has not granted.
//
// # On failure
//
// Nothing is written unless the whole batch commits; the caller repeats it. A
// replica that dies inside a transaction loses its locks with its connection.
// An execution that somebody deletes leaves a note from which GiveBack returns
// what it held.
package admission
