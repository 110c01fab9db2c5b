// Package dashboard measures what the dashboard asks of the database: it makes an
// installation of any size, reads everything that the views read, and says what
// each reading cost there.
//
// The server itself counts. Its statement statistics give the time spent, without
// the network and without this program; its table statistics give the rows that
// were looked at, which depend on no machine: a reading that looks at every
// execution is found out at any size.
package dashboard
