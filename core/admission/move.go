package admission

// Move moves a holder to another worker, which may have most executions; it keeps its slots. It
// reports whether it could: the holder's queue must be locked.
func (l *Ledger) Move(id, to int64, most int) bool {
	fact, ok := l.facts[id]
	if !ok || fact.Worker == nil || fact.Holds == nil {
		return false
	}
	known := l.queues[*fact.Holds] != nil || l.gone[*fact.Holds] // a deleted queue has no counters
	if !known {
		l.unplanned = true
		return false
	}
	if fact.HeldAt != nil {
		l.leave(*fact.HeldAt)
	}
	l.occupy(to, most)
	l.note(id, func(fact *Fact) { fact.Worker, fact.HeldAt = &to, &to; fact.Attempt++ })
	return true
}
