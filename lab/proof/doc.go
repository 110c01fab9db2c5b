// Package proof holds only tests. They state the engine's promises about shared admission a second time, from
// the rules alone, and compare them with the engine at work on real servers.
//
// There are five kinds of proof:
//
//   - A model of the rules follows random requests, ends, cancels, deletions and changes of limits, and must
//     agree with the database about every status, holder and queue.
//   - A checker of histories observes replicas that are killed and restarted under load, and searches for an
//     order of the operations that explains the observations.
//   - Replicas and workers die or freeze at each point between two effects, alone and in pairs. Every request
//     must still run once.
//   - Workers die, freeze, leave or forget their executions before three replicas that all search for such
//     executions. One replica must decide each loss, once.
//   - Every incident of another system that taught a rule has a test with its name.
//
// Each run tries a random choice of the points and pairs. `make chaos` tries all of them.
package proof
