// Package monitor is the read side for people: what the queues, executions,
// workers and dead letters look like right now, as one struct and one function
// each.
//
// Promises:
//
//   - Reading is cheap at any size. Lists are bounded and paged by key, recent
//     windows are found through the primary key, live rows through the partial
//     index on unfinished rows. A count that would be expensive stops at a bound
//     and says "at least".
//   - Every result carries the time of the database (At), which is the clock
//     that ages are measured against, and the state of each source it was read
//     from: how long it took and, if it failed, why.
//   - Unknown is never zero. What could not be read is a nil pointer.
//   - Nothing here writes, locks or waits for anybody.
//
// On failure a function returns what the other source still gave. The error is
// set only when no source answered, so a caller that draws may ignore it and
// look at Sources alone. On an installation that lacks the engine's own columns
// and tables the same functions read what the published schema has.
package monitor
