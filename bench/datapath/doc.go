// Package datapath measures the path of executions through the database: the
// engine's own rounds (core/scheduler with its steps) and its own outbox relay
// on a real PostgreSQL, without a message broker.
//
// Messages travel in this process: the relay of every replica publishes to
// lines in memory, from which the loops of the replicas and the simulated
// workers take whatever has arrived, as they would from their queues. Workers
// write what real workers write, with the statements of core/worker, set
// based, and do nothing in between or hold the job for a while.
//
// Every figure comes with yardsticks of the same minute: a floor (insert and
// update one row at a time) and D1, the one-at-a-time design, which is kept
// here as a reference only. Rounds are interleaved and medians are reported.
//
// A measurement that ends with anything above its limit, out of order, lost,
// done twice or left over is an error, not a figure.
package datapath
