// Package catalog applies files to the database: it compares their packs and policies with the
// tables and writes the difference.
//
// An application is one transaction, all or nothing: a single mistake in any file, found by
// package pack, prevents all writes. It takes the catalog's lock first, so that concurrent
// applications run one after the other, each against the committed result of the previous one.
// It locks the actions and packs that the policies name against deletion. Unchanged policies are
// not written.
//
// Every changed policy leaves a row in operator_audit. Batches of the engine use the new rules
// from the commit on. So that waiting executions notice at once, the same transaction requests
// the heads of the affected queues again. Beyond a few hundred queues the engine's sweeps do it.
//
// A commit whose outcome is unknown is returned as such (store.ClassUnknown). Applying the same
// files again is always safe.
package catalog
