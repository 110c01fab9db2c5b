// Package outbox makes publishing part of the transaction that made a message
// true: the message is written beside the change and frozen with the commit.
//
// The replica that committed publishes at once from memory, with confirms in
// flight. Once every message of a row is confirmed, the next transaction that
// appends messages deletes it, or the relay soon after. Nothing is published for a
// transaction that rolled back, and every committed row is published at least
// once (invariant S13): a row that its replica did not publish, because it died or
// the broker was away, is claimed and published by the sweep of any replica, with
// the same message ids and the same bodies.
//
// Messages are published in the order in which they were handed over, and one
// batch is confirmed before the next is sent, so that messages of one routing
// key keep their order. A message that the broker returned or refused is split
// into a row of its own in the transaction that deletes the others, with what
// the broker said, and tried again by a sweep; a confirm that did not come
// counts as not published, so that a duplicate is possible and a loss is not.
//
// The memory of unpublished messages is bounded: beyond the bound rows are
// left to the sweep.
package outbox
