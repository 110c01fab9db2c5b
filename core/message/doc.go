// Package message is the message format: the envelope, every payload, and the names of exchanges,
// queues and routing keys, exactly as existing Attune services use them.
//
// Reading is tolerant: missing identifiers are made up, unknown keys are ignored, null and missing
// mean the same, extra headers are kept. Writing is exact: every field is present, optional ones as
// null, times in UTC. An unreadable message is an error with the reason; reading never panics and
// never allocates more than a small multiple of the input.
package message
