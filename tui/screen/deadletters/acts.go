package deadletters

import (
	"fmt"
	"strconv"

	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/tui/act"
)

// Acts is what may be done with the marked letters, or with the one under the cursor.
func (v *DeadLetters) Acts() (act.Menu, bool) {
	chosen := v.chosen()
	if len(chosen) == 0 {
		return act.Menu{}, false
	}
	first := chosen[0]
	switch {
	case v.source == sourceSpool:
		return act.ForSpooled(first.letter.Op, first.undoable), true
	case first.letter != nil, first.handled != nil:
		return onBroker(chosen), true
	case v.table.Marks() == 0:
		return act.ForLetter(first.ledger), true
	}
	targets := make([]act.Target, len(chosen))
	for i, r := range chosen {
		targets[i] = act.Target{Name: r.name, Ref: strconv.FormatInt(r.ledger.ID, 10), ID: r.ledger.ID}
	}
	return act.ForMarkedLetters(targets), true
}

// chosen are the marked rows that are known still, or else the one under the cursor.
func (v *DeadLetters) chosen() []*row {
	if v.table.Marks() == 0 {
		if at := v.table.Cursor(); at >= 0 && at < len(v.rows) {
			return []*row{&v.rows[at]}
		}
		return nil
	}
	var chosen []*row
	for i := range v.all {
		if v.isMarked(v.all[i].key) {
			chosen = append(chosen, &v.all[i])
		}
	}
	return chosen
}

func onBroker(chosen []*row) act.Menu {
	name := chosen[0].name
	if len(chosen) > 1 {
		name = fmt.Sprintf("%d marked letters", len(chosen))
	}
	var letters []redrive.Letter
	var rows []int64
	for _, r := range chosen {
		if r.letter != nil {
			letters = append(letters, *r.letter)
		} else {
			rows = append(rows, r.handled.ID)
		}
	}
	return act.ForBrokerLetters(name, letters, rows)
}
