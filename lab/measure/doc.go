// Package measure measures the whole platform on real servers: executions a second under flood, and
// latencies at a steady pace.
//
// Engines and workers run in this process with the given broker and database. The actions do nothing, so
// that the measurement covers the engine, the messages and the rows. Latencies come from the rows, by the
// database's clock. Every report has the settings of its measurement; figures of different machines or
// runs are not comparable.
//
// It is the implementation of attune-lab bench. The module github.com/attune-go/attune/lab/bench compares
// the engine with other systems.
package measure
