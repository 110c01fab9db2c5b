package engine

// WakeSweep makes the sweep look now, and not at the end of its interval.
func (e *Engine) WakeSweep() { e.loops["recovery"].Wake() }

// StopWorkflowSweep leaves only messages to advance workflows.
func (e *Engine) StopWorkflowSweep() { e.loops["workflows"].Stop() }
