// Package dashboard measures the database queries of the dashboard: it fills a database of any size,
// reads everything that the views read, and reports the cost of each reading.
//
// The server itself counts. Its statement statistics give the time without the network and this program.
// Its table statistics give the rows that it read, which are the same on every machine: they reveal a
// reading of all executions at any size.
package dashboard
