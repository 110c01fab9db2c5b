// Package liveness decides whether workers are present and may receive work.
//
// Heartbeats marks workers of any role inactive when their heartbeats stop, even draining ones, and
// active again when they resume. Only the database's clock decides when a heartbeat arrived; the
// offset of a worker's clock is recorded and shown.
//
// Probes checks every worker for action executions: whether its queue exists and has a consumer,
// its length, the age of unstarted work in it, and its health endpoint if it has one. From that,
// and from the worker's own reports, it derives a verdict and a health, which placement uses. A
// worker whose queue is missing or has no consumer becomes suspect and receives nothing. So does a
// worker whose dispatch the broker returned.
//
// OutageDetector detects outages of the database. A missing heartbeat counts only after the
// database has answered without a gap for as long as a worker may be silent.
//
// Suspects clears a suspect worker when its queue has a consumer again.
//
// Nothing here moves work: the batches decide about executions of dead workers (package recovery).
//
// A failed tick is repeated, while the last findings grow old. A verdict older than three intervals
// does not count, so a stopped prober excludes no worker. An unreachable broker is no evidence
// against a worker.
package liveness
