// Package doctor checks that an installation is what it should be.
//
// Invariants runs the queries of invariants.sql. Each must return no row: a
// row is a fault of the engine (or of somebody who wrote to the tables by
// hand), never load. Between a foreign write and the sweep that notices it
// some of them are allowed to be false; those carry their grace in the query.
// All queries read one snapshot, so traffic does not disturb them, and they
// change nothing.
package doctor
