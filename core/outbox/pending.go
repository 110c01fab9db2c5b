package outbox

// Pending is how many messages this replica holds in memory because they are
// not confirmed yet.
func (r *Relay) Pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size
}
