// Package recovery finds work that no message will bring back: requested
// executions whose message was lost, ended executions that still hold a slot
// because nobody reported them, waiters that somebody else ended, and queues
// with a free slot and a waiter.
//
// The sweep only finds. What it finds goes through the same batches, under the same
// locks and guards, as what messages bring; finding a thing twice, or on two
// replicas, is harmless. Each sweep runs on one replica at a time, pages by
// key, and has a deadline.
//
// Rescuer ends the work of workers that are gone, or were deleted, and
// what living ones have forgotten or do not end.
package recovery
