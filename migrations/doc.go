// Package migrations contains the database schema and migrates databases to it.
//
// The files in sql are numbered, one subject each. A file *_own.sql is for schemas that Up creates: the tables of
// the Attune platform as its other services know them. A file *_adopted.sql is for the schema of another Attune
// installation, which has these tables. All others are the engine's additions to both: columns with defaults,
// tables, indexes, triggers. No file names a schema: all objects are created in Options.Schema. Each file says
// "Under load: SAFETY. WHY." in its first lines.
//
// Up, Down, Status and Check take one advisory lock per database and schema: replicas that start together
// wait for each other, and all but the first find nothing to do. Up adopts an existing Attune schema. It
// compares the schema with the engine's needs, refuses it with the full list of differences, or else only
// adds to it. It never changes or drops existing objects (indexes, triggers, hypertables), and Down never
// removes more than Up added.
//
// Every statement waits for a lock for at most Options.LockTimeout, because all later statements on the table
// wait behind it. Up retries a file without its locks, with pauses, for Options.WaitTimeout, and logs the
// transaction that holds them. Only index builds, which block no writer, wait longer.
//
// Down calls Options.HandBack before it removes the additions to an adopted schema, so that the executor of
// the installation can continue.
package migrations
