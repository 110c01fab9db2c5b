// Package outbox makes publishing part of the transaction that creates a message: the transaction
// writes the message beside the change, and the commit fixes both.
//
// The replica that committed publishes at once from memory, with confirms in flight. Once every
// message of a row is confirmed, the next transaction that appends messages deletes the row, or the
// relay does soon after. A rolled-back transaction publishes nothing, and every committed row is
// published at least once (invariant S13). A row that its replica did not publish, because it
// crashed or the broker was away, is claimed and published by the sweep of any replica, with the
// same message ids and bodies.
//
// Messages are published in the order in which the relay received them. One batch is confirmed
// before the next is sent, so messages of one routing key keep their order. A message that the
// broker returned or refused moves to a row of its own, with the broker's reason, in the
// transaction that deletes the others; a sweep tries it again. A missing confirm counts as not
// published, so duplicates are possible and losses are not.
//
// The memory of unpublished messages is bounded: rows beyond the bound are left to the sweep.
package outbox
