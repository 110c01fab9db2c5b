// Package liveness judges whether workers are there and can be given work.
//
// Heartbeats marks workers of any role inactive whose heartbeats have ended, those
// that drain among them, and active again when they resume. When a heartbeat came is judged by the clock of
// the database alone; how far a worker's own clock is off is kept and shown.
//
// Probes looks at every worker for action executions itself: whether its queue is
// there and consumed, how deep it is, how long work lies in it unstarted, and
// whether its health endpoint answers, if it offers one. From that, and from what
// the worker reports, follow a verdict and a health, which placement honours. A
// worker whose queue is missing or that nobody consumes is suspected, and given
// nothing; so is one to which the broker returned a hand-over.
//
// Sight says when silence counts: not before the database has been seen without a
// gap for as long as a worker may be silent.
//
// Suspects acquits a suspected worker when its queue has a consumer again.
//
// Nothing here moves work: what a worker was handed that is gone is decided by the
// batches (package recovery).
//
// On failure a tick is repeated, and what was seen last grows old; a verdict older
// than three intervals counts for nothing, so that workers are not shut out by a
// prober that has stopped. A broker that is away is no evidence against anybody.
package liveness
