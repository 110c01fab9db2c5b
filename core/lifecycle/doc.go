// Package lifecycle is the vocabulary of the platform: the names that every
// other package, every SQL statement and every check uses for the same thing.
//
// It depends on the standard library only and does no I/O. The status of an
// execution, the table of its legal transitions and what follows its end live here, so that
// code, SQL and the invariant checker cannot disagree about them.
package lifecycle
