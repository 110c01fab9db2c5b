// Package catalog brings what people describe in files into the database: it
// compares the policies of files with the table and writes the difference.
//
// An application is one transaction, all or nothing: a single mistake in any
// file, found by package pack, and nothing is written. It takes the catalog's
// lock first, so that applications of the same policies at the same time follow
// one another, each comparing with what the one before has committed; and it
// keeps the actions and packs that the policies name from disappearing
// meanwhile. Policies that say what the table says already are not touched.
//
// Every changed policy leaves a row in operator_audit. Batches of the engine
// decide by the new rules from the commit on; so that executions which wait
// feel them without anything else happening, the same transaction appends the
// requests of the first waiters concerned to the outbox once more. Beyond a few
// hundred queues the engine's sweeps do it.
//
// A commit whose outcome is unknown is returned as such (store.ClassUnknown).
// To apply the same files again is always safe.
package catalog
