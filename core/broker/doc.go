// Package broker is the engine's client of RabbitMQ: connections that reconnect, a publisher that
// reports the outcome of every message, consumers with natural batches, the topology that all
// participants share, and the management API.
//
// # Connections
//
// A Broker keeps two connections: one publishes, the other consumes and declares, because a broker
// in alarm stops reading from publishing connections. Each is dialled with a deadline, watched, and
// dialled again with growing, jittered pauses while the Broker runs. State and Watch report it.
//
// # What is promised
//
//   - Publish tells the outcome of each message: confirmed, returned as
//     unroutable, refused, unknown, or never sent. Nothing unroutable counts as
//     published. Unknown means that the message may or may not have
//     arrived; the caller repeats it with the same message id.
//   - A Consumer delivers at least once. It survives the loss of its channel,
//     its connection and its queue. Deliveries of a lost channel come again;
//     what is done to their old batches has no effect (ErrStale).
//   - Every call has a deadline of its own besides the caller's context. A call
//     that the broker does not answer severs the connection, which is then
//     dialled anew.
//
// # Dead letters
//
// The dead-letter exchange is direct, so a binding with "#" matches only the key "#". The queue is
// therefore bound with each routing key in use, and, where the management API allows, a policy
// gives the exchange an alternate exchange that catches the rest. Both together deliver once,
// because the alternate exchange only receives unmatched messages. No other program's declaration
// changes.
package broker
