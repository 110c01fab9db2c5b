// Package monitor reads the present state of queues, executions, workers and dead letters for people,
// with one struct and one function each.
//
// It promises:
//
//   - Reading is cheap at any size. Lists are bounded and paged by key. Recent windows use the primary
//     key, unfinished rows their partial index. An expensive count stops at a bound and says "at least".
//   - Every result carries the database's time (At), against which ages are measured, and how each
//     source behaved: its latency, and its error if it failed.
//   - Unknown is never zero: an unread value is a nil pointer.
//   - Nothing writes or locks.
//   - A row is read into its structure by the names of columns and fields (store.Rows): a new field is a column and a
//     line of the structure.
//
// On failure a function returns what the other source gave. The error is set only when no source
// answered, so a dashboard may ignore it and show Sources. On a schema without the engine's own tables
// the same functions read the published ones.
package monitor
