package triage

// Reached has a recreation tell its steps, and stop after the one whose call
// returns an error, as if the process had been killed there.
func (q *QueueTTLs) Reached(f func(step string) error) { q.reached = f }
