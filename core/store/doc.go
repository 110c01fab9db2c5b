// Package store is the engine's access to PostgreSQL: connection pools, transactions with bounded
// retry, error classes, statements in one network round trip, and the generated code for every
// query. It decides nothing about executions.
//
// Open does not need the server to be up; the first use connects. A server that is away makes calls
// fail with class Unreachable, and calls work again when it is back.
//
// Tx repeats a transaction that lost to another one (deadlock, serialization) or lost its
// connection before COMMIT was sent; Once leaves that to its caller. So the function must do nothing
// but SQL, and leave effects to AfterCommit. When the connection is lost after COMMIT was sent, the
// outcome is unknown: the error is an OutcomeUnknownError of class Unknown, and the caller must read
// the rows again.
//
// A transaction costs no round trip of its own: BEGIN travels with the first
// statement, and Pipeline.Commit sends COMMIT with the last ones.
//
// Queries live in queries, one file per table or step. After a change to them or to a migration run
//
//	go generate ./core/store
//
// which needs sqlc on the path; a test fails when it was forgotten, and "cd core/store && sqlc
// diff" shows what would change. On an adopted schema e.finished_status is a function of the row
// instead of a column, so queries always write it with the table's alias.
package store

//go:generate ./generate.sh
