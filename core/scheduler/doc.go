// Package scheduler turns admitted executions into work at a worker: it runs
// the batches in which the engine claims, admits, places and releases, and
// writes the dispatch messages.
//
// A batch is one transaction over a set of executions, made of steps. Its
// course is always the same:
//
//  1. learn which queues the steps need: from what messages say of their executions,
//     verified under the locks (Hinted); or from the rows, read without locks. Make
//     queues that do not exist yet
//  2. one round trip: lock the queues, read the rows under the locks, and the load of
//     workers without one (package admission). The heads of queues are read with them,
//     or in a second round trip if none was expected to wait. A sparing batch leaves the
//     executions whose queue another batch holds
//  3. the steps decide in memory, in the order they were given; between them
//     free slots go to waiting heads
//  4. one round trip: write what was decided, append the messages to the
//     outbox, commit
//  5. the relay publishes from memory
//
// Every statement of step 4 counts the rows it changed, so a row that somebody
// else changed since step 2 (a cancel by another service, say), or room at a worker
// that another batch took, fails the batch as a whole and it is run again on the new
// facts. An execution handed to a
// worker always has its slot, its worker, its attempt number and its dispatch
// message from one and the same commit (invariants S1, S6, S13).
package scheduler
