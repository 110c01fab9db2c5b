// Package inquiry asks people and goes on from what they answer.
//
// A question comes about in two ways. An execution that completed asks it in its
// result, under __inquiry at the top level or below data: Asked reads it and the
// batch that takes the completion opens it. Or it is a task of a workflow, core.ask:
// its execution runs without a worker and without a slot for as long as the question
// is open. Either way the inquiry, its message and whatever else the transaction
// does are committed together, and an execution is asked about once, ever.
//
// # Promises
//
// An inquiry leaves pending once: an answer, an expiry and a cancellation repeat in
// their statement that it is pending, and answer and expiry compare its time with
// the database's clock, so that they exclude each other whatever replica they run
// on (invariant S16). What follows is written in the same transaction or, if another
// service has ended the inquiry, by Settle: the execution that only asked ends, and
// execution.completed is appended, which wakes the workflow. It is drawn once from
// each inquiry; duplicates of messages find nothing left to do.
//
// While a question is open no slot is held.
//
// # On failure
//
// Nothing here waits in memory. A message of another service that was lost is made up
// for by Watch, which finds ended inquiries that nothing was drawn from; whoever dies
// between two transactions leaves one of the states that Watch looks for. A question
// that cannot be asked, because it is malformed, is recorded with the reason and never
// waited for.
package inquiry
