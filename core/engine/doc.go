// Package engine assembles one replica of the executor: New wires it, Start starts its parts in
// order or stops them all again, Stop drains and stops them in the opposite order.
//
// A replica holds nothing that another could not take over. It acknowledges messages after the
// commit that processed them, and publishes messages that were committed before; its caches are
// hints. Any number of replicas run concurrently on one database, and each may crash at any time.
//
// steps.go lists the processing steps of a message, in order.
package engine
