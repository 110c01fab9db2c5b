// Package recovery finds work that no message brings back: requested executions whose message was
// lost, ended executions that still hold a slot because their report was lost, waiting executions
// that another program ended, and queues with a free slot and waiting executions.
//
// The sweep only finds. Its findings go through the same batches, under the same locks and guards,
// as messages; finding a row twice, or on two replicas, is harmless. Each sweep runs on one replica
// at a time, pages by key, and has a timeout.
//
// Rescuer ends or reassigns executions of dead or deleted workers, and executions that live workers
// lost or do not end.
package recovery
