package outbox

// Pending is the number of unconfirmed messages that this replica holds in memory.
func (r *Relay) Pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size
}
