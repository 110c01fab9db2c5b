package deadletters

import (
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/screen"
)

// Acts is what may be done with the marked letters, with the one under the cursor, or
// with the broker's queue.
func (v *DeadLetters) Acts() (act.Menu, bool) {
	if v.Table().Marks() > 0 && v.recent() != nil {
		return act.ForMarkedLetters(v.markedLetters()), true
	}
	depth := v.env.Data.Depth()
	if r := v.Current(); r != nil {
		return act.ForLetter(r.LedgerEntry, depth), true
	}
	return act.ForNoLetter(depth), true
}

// markedLetters are the letters of the ledger that are marked, also those that no page
// has brought.
func (v *DeadLetters) markedLetters() []act.Target {
	targets := screen.Targets(v.Table().Marked())
	for i := range targets {
		targets[i].Ref, targets[i].Name = targets[i].Name, "dead letter "+targets[i].Name
	}
	return targets
}

// DiscardsFiltered reports whether a discard of all is about what the filter matches: nothing is
// marked, and there is a filter.
func (v *DeadLetters) DiscardsFiltered() bool {
	_, ledger := v.All()
	return ledger && v.Table().Marks() == 0 && (v.Filter() != "" || v.Problems())
}

// chosen are the marked rows that are known still, or else the one under the cursor.
func (v *DeadLetters) chosen() []*row {
	if v.Table().Marks() == 0 {
		if r := v.Current(); r != nil {
			return []*row{r}
		}
		return nil
	}
	var chosen []*row
	for i := range v.all {
		if v.isMarked(v.all[i].key()) {
			chosen = append(chosen, &v.all[i])
		}
	}
	return chosen
}
