// Package advancement starts workflows and leads them on: it draws the
// consequences of ended tasks, as workflow.Decide says, in batches of the
// hand-over.
//
// # Course
//
// Whoever ends a child of a workflow, or finds that a workflow asks to run, gives
// the Runner an order; that is one call, and nothing is lost if it is never made.
// The Runner takes all orders that have come, each workflow once, and runs them as
// one batch:
//
//  1. read where the workflows are and which of their children have ended and are
//     not settled
//  2. Decide, for each; what it wants to know besides is read and it is asked again
//  3. in one transaction: lock the workflows, make the children, admit them and hand
//     them over, mark what is settled, write the state, end the parents
//
// Decide runs before any lock is taken. The row of the workflow is locked first in
// the transaction, before all queues and executions; if its version is not the one
// that was read, all is decided anew. So versions have no gap and no update is lost
// (invariant S11), and however many replicas are told the same however often, each
// task is started once (S10).
//
// # On failure
//
// A batch that fails is tried again, halved if its content may be to blame. A
// workflow that fails alone, again and again, is ended as failed, with the error. An
// error that concerns the installation never ends one (package installation).
// What a killed replica has left is found by the Sweep: children that have ended
// and were not reported, workflows that were paused, resumed or ended by others,
// whose time is over, or of which nothing is left to wait for.
package advancement
