// Package migrations holds the database schema and brings a database to it.
//
// The files in sql are numbered, one purpose each. Files below 20 are the
// tables of the Attune platform as every other service of it knows them; files
// from 20 on are what this engine adds: columns with defaults, tables, indexes,
// triggers. No file names a schema: everything lands in Options.Schema.
//
// Up, Down, Status and Check take one advisory lock per database and schema, so
// replicas that start together wait for each other and all but the first find
// nothing to do. A database that already holds an Attune schema is adopted:
// it is compared with what the engine needs, refused with the full list of
// differences when they do not match, and otherwise only added to. What is
// already there (indexes, triggers, hypertables) is never changed or dropped,
// and Down never removes more than was added.
//
// Every statement waits at most Options.LockTimeout for a lock, because all that
// comes after it on the table waits behind it. A file that could not get its
// locks is tried again, with pauses, for Options.WaitTimeout; the logger is told
// which transaction holds them. Only index builds, which block no writer, wait
// longer.
//
// Down calls Options.HandBack before it removes what was added to an adopted
// schema, so that the executor of the installation can go on.
package migrations
