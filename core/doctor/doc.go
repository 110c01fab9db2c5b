// Package doctor checks the invariants of an installation.
//
// Invariants runs the queries of invariants.sql. A row is a fault of the engine, or of a manual write to the
// tables, never of load. Some invariants may be broken between another program's write and the sweep that
// repairs it; their queries contain the grace. All queries read one snapshot and change nothing.
package doctor
