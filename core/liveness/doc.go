// Package liveness judges whether workers can be given work, besides what their
// heartbeats say. A worker is suspected when the broker has returned a hand-over
// because its queue does not exist; it gets nothing until its queue is there again
// and has a consumer.
//
// Nothing here moves work: what a suspected worker was handed is decided by the
// rounds (package recovery).
package liveness
