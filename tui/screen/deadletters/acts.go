package deadletters

import (
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/screen"
)

// Acts is what may be done with the marked letters, or with the one under the cursor.
func (v *DeadLetters) Acts() (act.Menu, bool) {
	if v.source == sourceLedger && v.table.Marks() > 0 && v.recent() != nil {
		return act.ForMarkedLetters(v.markedLetters()), true
	}
	chosen := v.chosen()
	if len(chosen) == 0 {
		return act.Menu{}, false
	}
	first := chosen[0]
	switch {
	case v.source == sourceSpool:
		return act.ForSpooled(first.letter.Op, first.undoable), true
	case first.letter != nil, first.handled != nil:
		depth := 0
		if s := v.env.Data.Snapshot; s != nil {
			depth = s.Queue.Ready
		}
		return onBroker(chosen, depth), true
	default:
		return act.ForLetter(first.ledger), true
	}
}

// markedLetters are the letters of the ledger that are marked, also those that no page
// has brought.
func (v *DeadLetters) markedLetters() []act.Target {
	targets := screen.Targets(v.table.Marked())
	for i := range targets {
		targets[i].Ref, targets[i].Name = targets[i].Name, "dead letter "+targets[i].Name
	}
	return targets
}

// PurgesFiltered reports whether a purge is about what the filter matches: nothing is
// marked, and there is a filter.
func (v *DeadLetters) PurgesFiltered() bool {
	_, ledger := v.All()
	return ledger && v.table.Marks() == 0 && (v.Filter() != "" || v.problems)
}

// KeysOf are the keys by which letters of the broker and rows without letters are
// marked.
func (v *DeadLetters) KeysOf(letters []redrive.Letter, rows []int64) []string {
	of := make(map[string]bool, len(letters))
	for i := range letters {
		of[letters[i].Key()] = true
	}
	var keys []string
	for _, id := range rows {
		keys = append(keys, handledKey(id))
	}
	for _, key := range v.table.Marked() {
		if at := strings.LastIndexByte(key, '#'); at >= 0 && of[key[:at]] {
			keys = append(keys, key)
		}
	}
	return keys
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

func onBroker(chosen []*row, depth int) act.Menu {
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
	return act.ForBrokerLetters(name, letters, rows, depth)
}
