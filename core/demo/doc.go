// Package demo shows the whole platform at work on one machine: a private
// PostgreSQL and RabbitMQ, two engine replicas, four workers, live traffic,
// and faults in the middle of it.
//
// Replicas and workers are real processes, started from the same executable,
// so that what is shown is what runs in production. The faults are real too:
// an engine replica is killed with SIGKILL and comes back, every broker
// connection is closed by the operator's hand, messages are delivered twice,
// a worker is restarted under load and another killed, executions are cancelled
// while they wait and run, workflows are paused, resumed and cancelled, and some
// executions fail and are repeated.
//
// Beside that traffic a shop is open, whose pack is in the folder packs: orders are events, and
// rules start workflows for them. Their tasks run in parallel, over lists, repeated and in
// workflows of their own. Large orders open an inquiry, which the demo answers if no user does.
//
// Where the last hour is not recorded, the demo makes it up first, so that the charts of
// the dashboard are not empty: past.sql. Each of its rows says so, and none counts.
//
// Ten seconds after the start, or a few in a demo of a given length, an incident begins:
// a worker sends heartbeats and consumes nothing, a script copies its messages to another
// worker, a publisher sends broken messages, a consumer of events is away, a release fails
// most runs of one action, and an action is deleted. Sixty dead letters in four groups then
// wait for a person. In a demo of a given length the commands of docs/tutorial-triage.md
// triage them, and the demo looks up what came of each execution. Where people watch, it
// waits for them, and a minute after their last decision another incident begins.
//
// At the end traffic stops, everything that was requested is awaited, each requested id
// is looked up, and the invariant queries are run. The demo succeeds only if every
// execution and workflow has reached a terminal state, each end other than completed is
// of a kind that the demo brought about, every fault happened, enough executions
// completed, every order has had its consequence, every question is answered, and no
// query returned a row. Everything it started
// it stops, also when it fails or is interrupted.
package demo
