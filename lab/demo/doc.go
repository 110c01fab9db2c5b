// Package demo shows the whole platform at work on one machine: a private PostgreSQL and RabbitMQ, two
// engine replicas, four workers, live traffic, and faults.
//
// Replicas and workers are real processes of the same executable as in production. The faults are real
// too: the demo kills a replica with SIGKILL and restarts it, closes every broker connection, delivers
// messages twice, restarts a worker under load, kills another, cancels queued and running executions,
// and pauses, resumes and cancels workflows. Some executions fail, and some of these are retried.
//
// A shop runs beside that traffic; its pack is in the folder packs. Orders are events, and rules start
// workflows for them, with parallel tasks, lists, retries and nested workflows. Large orders open an
// inquiry, which the demo answers if the user does not.
//
// If the last hour is not recorded, past.sql fills it with made-up history, so that the charts of the
// dashboard are not empty. Each made-up row is marked, and none counts.
//
// Ten seconds after the start, or a few in a demo of a given length, an incident begins: a worker sends
// heartbeats and consumes nothing, a script copies its messages to another worker, a publisher sends
// broken messages, a consumer of events is away, a release fails most runs of one action, and an action
// is deleted. Sixty dead letters in four groups then wait for the user. In a demo of a given length the
// commands of docs/tutorial-triage.md triage them, and the demo checks the outcome of each execution. A
// demo with a dashboard waits for the user, and starts the next incident a minute after the last decision.
//
// At the end traffic stops, and the demo waits for all executions, looks up each requested id, and runs
// the invariant queries. It succeeds only if every execution and workflow has ended, each end other
// than completed is an expected one, every fault happened, enough executions completed, every order was
// processed, every question is answered, and no query returned a row. It always stops its processes,
// also after a failure or an interrupt.
package demo
