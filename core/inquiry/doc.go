// Package inquiry opens questions to people, takes their answers, and ends the inquiries.
//
// A question has two sources. A completed execution asks in its result, under __inquiry at the top level or below data:
// Asked reads it, and the batch that processes the completion opens it. Or it is a task core.ask of a workflow, whose
// execution runs without a worker and without a slot while the question is open. One transaction saves the inquiry, its
// message and all else that the caller writes. An execution has at most one question, ever.
//
// # Promises
//
// An inquiry leaves pending once. Answer, expiry and cancellation repeat in their statement that it is pending; answer
// and expiry compare its time with the database's clock. So they exclude each other on all replicas (invariant S16).
//
// An ended inquiry is settled once: the execution of a core.ask ends, and execution.completed is appended, which wakes
// the workflow. This is in the transaction of the end or, if another service has ended the inquiry, in one of Responses
// or Watch. Duplicate messages find a settled inquiry.
//
// # On failure
//
// No state is in memory. Watch settles ended inquiries whose message was lost. A process that dies between two
// transactions leaves only states that Watch finds. A malformed question is recorded with the reason and never opened.
package inquiry

// Status is the status of an inquiry.
type Status string

// The published statuses.
const (
	Pending   Status = "pending"
	Responded Status = "responded"
	Expired   Status = "timeout"
	Cancelled Status = "cancelled"
)
