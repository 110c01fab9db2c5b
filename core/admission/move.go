package admission

// Move lets a holder keep its slots at another worker. It reports whether it
// could: the holder's queue and both workers' loads must be locked.
func (l *Ledger) Move(id, to int64) bool {
	fact, ok := l.facts[id]
	if !ok || fact.Worker == nil || fact.Holds == nil {
		return false
	}
	known := l.queues[*fact.Holds] != nil || l.gone[*fact.Holds] // a queue that was deleted has no counters to keep
	if !known || l.loads[to] == nil || !l.knowsLoad(fact.Worker) {
		l.unplanned = true
		return false
	}
	if from := l.loads[*fact.Worker]; from != nil && from.assigned > 0 {
		from.assigned--
	}
	l.loads[to].assigned++
	l.note(id, func(fact *Fact) { fact.Worker = &to; fact.Attempt++ })
	return true
}
