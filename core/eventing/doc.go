// Package eventing compares events with rules and makes an enforcement for every
// rule that an event fires.
//
// # Course
//
// A batch of events is one transaction: read the events, find the rules of their
// triggers by index, compare in memory, mark the events as matched, make the
// enforcements, and put their enforcement.created into the outbox. Rules are never
// kept between batches, so what is enabled, disabled or changed holds for the next
// event. A batch that would make too many enforcements at once is parted.
//
// An event that is made for one rule is compared with that rule only. Rules that
// are disabled, or whose trigger is, are not compared with at all.
//
// # Promises
//
// Every event is compared with the rules once, and every rule that it fires has one
// enforcement for it, however often and to however many replicas its message is
// delivered (invariants S10, S13). An event whose message was lost is found by the
// sweep (L1).
//
// # On failure
//
// A rule that fires and cannot be carried out, because its conditions or templates
// cannot be read, its action is gone, or a secret would go where it may be seen,
// gets an enforcement that is disabled, with the reason in enforcement.error. A rule
// whose expression cannot be evaluated for an event does not fire; the reason is in
// event_matched.failures. Neither keeps any other rule from firing. An event that
// has no row is reported to the caller, since its message may have come before its
// commit. Any other error takes the whole transaction back.
package eventing
