// Package doctor checks that an installation is what it should be.
//
// Invariants runs the queries of invariants.sql. Each must return no row: a row is a fault of the
// engine (or of a manual write to the tables), never load. Some may be violated between another
// program's write and the sweep that finds it; their queries contain the grace. All queries read
// one snapshot, so traffic does not disturb them, and they change nothing.
package doctor
