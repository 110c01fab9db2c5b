// Package retention deletes expired data, and creates the partitions of the next days. It deletes
// nothing that a later use cannot recreate. It never deletes running or queued executions, or anything
// that waits for an operator.
//
// Every loop runs on each replica; one replica at a time works, in pages. Each page is a transaction with a
// deadline and a short lock timeout, and blocks no other transaction for longer than about a second. After a
// lock timeout or an error the next tick continues; committed pages stay done.
package retention
