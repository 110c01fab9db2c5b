// Package eventing matches events with rules and creates an enforcement for every rule that an
// event fires.
//
// # Batches
//
// A batch of events is one transaction: read the events, find the rules of their triggers by index,
// match in memory, mark the events as matched, create the enforcements, and put their
// enforcement.created into the outbox. Rules are never cached between batches, so every change
// holds for the next event. A batch with too many enforcements is split.
//
// An event for one rule is matched with that rule only. Disabled rules, and rules of disabled
// triggers, are not matched.
//
// # Promises
//
// Every event is matched once, and every rule that it fires has one enforcement for it, however
// often and to however many replicas its message is delivered (invariants S10, S13). The sweep
// finds an event whose message was lost (L1).
//
// # On failure
//
// A rule that fires but fails gets a disabled enforcement, with the reason in enforcement.error.
// Causes are invalid conditions or templates, a deleted action, or a secret that would become
// readable. A rule whose expression fails for an event does not fire; the reason is in
// event_matched.failures. Neither stops any other rule from firing. An event without a row is
// reported to the caller, because its message may precede its commit. Any other error rolls back
// the whole transaction.
package eventing
