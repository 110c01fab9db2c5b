// Package advancement starts and advances workflows: it processes ended tasks as workflow.Decide
// says, in batches of the scheduler.
//
// # Batches
//
// Any code that ends a child of a workflow, or finds a workflow to start, gives the Runner a
// request. It is one call, and a lost call loses nothing. The Runner takes all waiting requests, each
// workflow once, and runs them as one batch:
//
//  1. read the states of the workflows and their ended, unsettled children
//  2. call Decide for each; fetch the facts that it requests and call it again
//  3. in one transaction: lock the workflows, create the children, admit and dispatch them,
//     mark ended children as settled, write the states, end the parents
//
// Decide runs before any lock is taken. The transaction locks the row of the workflow first, before
// all queues and executions. If its version has changed, the batch decides again. So versions have
// no gap and no update is lost (invariant S11), and each task starts once, however many replicas
// process the same end (S10).
//
// # On failure
//
// A failed batch is tried again; it is bisected if its content may be the cause. A workflow that
// repeatedly fails alone is ended as failed, with the error. A fault of the installation never ends
// a workflow (package installation). The Sweep finds the work of a crashed replica: ended children
// without a report, workflows that another program paused, resumed or ended, workflows past their
// timeout, and workflows without open children.
package advancement
