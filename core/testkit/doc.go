// Package testkit is what tests stand on: real servers, a fresh database and a
// fresh virtual host per test, rows with sensible defaults, a worker that
// behaves or misbehaves on request, and the invariant queries. Nothing but
// tests imports it.
//
// All packages of one `go test` run share one PostgreSQL and one RabbitMQ. When
// ATTUNE_TEST_DATABASE_URL, ATTUNE_TEST_AMQP_URL and
// ATTUNE_TEST_MANAGEMENT_URL are set, as `make test` does, those are used.
// Otherwise the first test that needs a server starts a private stack below
// the system's temporary folder, one per user of the machine, and leaves it
// running for the next package and the next run; `make test-stack-down` ends
// it.
//
// Tests stay apart by database and virtual host, so all of them may run in
// parallel. A test that must stop a server asks for a stack of its own with
// NewStack.
package testkit
