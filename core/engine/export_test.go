package engine

// WakeSweep makes the sweep look now, and not at the end of its interval.
func (e *Engine) WakeSweep() { e.loops["recovery"].Wake() }
