// Package workflow reads the definitions of workflows and decides what follows
// from what happens in one. It is pure: rows, results and time come in, a plan of
// what is to be written comes out.
//
// A workflow is a graph of tasks. Each task is an action that is run once, or once
// for every item of a list; when it has ended, its transitions say what is
// published and which tasks come next. Decide takes the state that a workflow is
// in and what has happened since, and returns the state that follows and the
// effects: children to be made, repetitions, an end. The same input gives the same
// plan, whoever asks and however often.
//
// # Promises
//
// A task is started at most once. A join fires once, when as many of its
// predecessors have arrived as it asks for. A task over a list has never more
// items running than its concurrency, ends when all items have, and at once when
// the list is empty (invariant S12). A workflow in which nothing runs, waits for
// its time or can be started has ended: it never hangs (upstream 38 to 43).
//
// # Bounds
//
// A list has at most MaxItems items, a repetition waits for 30 days at the longest,
// and evaluations have the bounds of the package expr. The state holds counts and no
// results, and of tasks that have simply completed the names: what a decision costs
// does not depend on how many items there are or have ended.
//
// # On failure
//
// A condition, template or list that cannot be evaluated fails its task, with the
// expression and the position, and the workflow goes on as after any failure.
package workflow
