// Package engine assembles one replica of the executor and gives it one life:
// New wires, Start brings everything up in order or takes it all down again,
// Stop drains and ends it in the opposite order.
//
// A replica holds nothing that another could not take over. What it consumes
// it acknowledges after the commit that used it; what it publishes was
// committed before; its caches are hints. Any number of replicas run at the
// same time on one database, and any of them may be killed at any moment.
//
// steps.go lists what a message meets, in order.
package engine
