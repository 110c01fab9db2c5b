// Package testkit is the basis of tests: real servers, a fresh database and virtual host per test, rows with
// sensible defaults, a worker that behaves or misbehaves on request, and the invariant queries. Only tests
// import it.
//
// All packages of one `go test` run share one PostgreSQL and one RabbitMQ: those of ATTUNE_TEST_DATABASE_URL,
// ATTUNE_TEST_AMQP_URL and ATTUNE_TEST_MANAGEMENT_URL, which `make test` sets. Otherwise the first test that
// needs a server starts a private stack below the system's temporary folder, one per user of the machine. It
// keeps running for the next package and the next run; `make test-stack-down` ends it.
//
// Each test has its own database and virtual host, so all of them may run in parallel. A test that must stop a
// server starts a stack of its own with NewStack.
package testkit
