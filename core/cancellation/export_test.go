package cancellation

// Withdraw bounds the pages that withdraw waiting executions.
func (w *Walk) Withdraw(most int) { w.most = most }
