// Package scheduler turns requested executions into work at a worker. Scheduler.Run runs a
// batch: one transaction over a set of executions, made of steps.
//
//  1. Plan. The steps name the queues and limits that they need: from what messages say of
//     their executions, verified under the locks (Hinted); or from the rows, read without
//     locks. Queues that do not exist yet are created.
//  2. Lock and read, one round trip (package admission): the queues, the rows under their
//     locks, and the load of workers without one. The heads of queues are read with them, or
//     in a second round trip if none was expected to wait. RunSparing leaves the executions
//     whose queue another batch holds. Queues without a limit and without waiting
//     executions are only read (Optimistic): step 4 checks and changes them first.
//  3. Decide, in memory. Order matters: completions release slots, then waiting executions
//     are promoted, then requests are admitted (FIFO).
//  4. Write, one round trip: Batch.write lists the statements in their order, appends the
//     messages to the outbox and commits.
//  5. Publish, from memory, by the relay.
//
// Every statement of 4 counts the rows that it changed. A row that another service changed since 2
// (a cancel, say), or room at a worker that another batch took, fails the batch as a whole, and it
// is run again on the new facts. An execution at a worker always has its slot, its worker, its
// attempt number and its dispatch message from one commit (invariants S1, S6, S13).
//
// Package engine lists the steps in their order. Packages advancement and deadletter have steps of
// their own. StatusReports reads the reports of workers about moving executions.
package scheduler
