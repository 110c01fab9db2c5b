// Package workflow reads workflow definitions and decides how a running workflow advances. It is pure: rows, results
// and the time come in, a plan of writes comes out.
//
// A workflow is a graph of tasks. A task runs its action once, or once for each item of a list. When it has ended, its
// transitions publish variables and start the next tasks. Decide takes the state of a workflow and new happenings, and
// returns the next state and the effects: children to start, retries, the end. Equal inputs give equal plans.
//
// # Promises
//
// A task starts at most once. A join fires once, when enough of its predecessors have arrived. A task over a list never
// runs more items than its concurrency; it ends when all items have ended, and at once if the list is empty (invariant
// S12). A workflow ends when nothing runs, waits for its time or can start: it never hangs (upstream 38 to 43).
//
// # Bounds
//
// A list has at most MaxItems items, a retry waits at most 30 days, and package expr bounds evaluations. The state has
// counts but no results, and only the names of plainly completed tasks. So the cost of a decision does not grow with
// the number of items.
//
// # On failure
//
// A condition, template or list with an error fails its task, with the expression and the position. The workflow goes
// on as after any failure.
package workflow
