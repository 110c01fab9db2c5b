// Package datapath measures the path of executions through the database: the engine's own batches
// (core/scheduler with its steps) and its own outbox relay on a real PostgreSQL, without a message broker.
//
// Messages stay in this process: the relay of every replica publishes to queues in memory. The loops of
// the replicas and the simulated workers consume them, as from the broker. Workers write with the
// statements of core/worker, set based, and do nothing in between or hold the job for a while.
//
// Every figure has yardsticks of the same minute: a floor (insert and update one row at a time) and D1, the
// one-at-a-time design, which exists only for this comparison. Rounds are interleaved, and the report has
// medians.
//
// A measurement that ends with anything above its limit, out of order, lost, done twice or left over is an
// error, not a figure.
package datapath
