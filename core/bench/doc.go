// Package bench measures the whole platform on real servers: executions a
// second under flood, and how long one waits at a steady pace.
//
// Engines and workers run in this process, on the broker and the database they
// are given; the actions do nothing, so that what is measured is the engine,
// the wire and the rows. Latencies are read from the rows, by the database's
// clock. Every report carries the settings it was measured with; figures of
// different machines or runs are not comparable.
//
// It is what an operator runs (attune-executor bench). What compares the engine with
// yardsticks is in the module github.com/attune-go/attune/bench.
package bench
