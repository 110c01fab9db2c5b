package act

import (
	"errors"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/redrive"
)

// ForMarkedLetters is what may be done with letters of the ledger that are marked.
func ForMarkedLetters(targets []Target) Menu {
	return Menu{
		Target: Target{Name: fmt.Sprintf("%d marked dead letters", len(targets))}, Targets: targets,
		Items: []Item{
			{Kind: RequeueLetter, Key: "r", Label: "requeue", Help: "try again what they were about"},
			{Kind: DiscardLetter, Key: "d", Label: "discard", Help: "nothing is done about them; the ledger keeps them"},
			{Kind: PurgeLetters, Key: "p", Label: "purge", Help: "the same as discard"},
			{Kind: UndoLetters, Key: "u", Label: "reopen", Help: "what was discarded waits again"},
		},
	}
}

// ForBrokerLetters is what may be done with letters that lie on the broker, or with
// rows whose letters a handler took. depth is how many lie there.
func ForBrokerLetters(name string, letters []redrive.Letter, rows []int64, depth int) Menu {
	onBroker := ""
	if len(letters) == 0 {
		onBroker = "no message is left of it"
	}
	return Menu{
		Target: Target{Name: name}, Letters: letters, Rows: rows,
		Items: []Item{
			{Kind: RequeueLetter, Key: "r", Label: "requeue", Help: "request the executions again, send the rest again", Fields: []Field{
				{Name: FieldOverride, Label: "of the blocked", Hint: "why they are requeued too; empty: leave them"},
			}},
			{Kind: DiscardLetter, Key: "d", Label: "discard", Help: "remove them; a copy is kept, u puts them back", Not: onBroker},
			{Kind: PurgeLetters, Key: "p", Label: "purge", Help: "remove all that lies there now", Not: onBroker, About: purgeOffer(depth), Fields: []Field{
				{Name: FieldReal, Label: "by the broker", Hint: "yes: at once, also what comes meanwhile, no undo", Check: checkYes},
			}},
			{Kind: MoveLetters, Key: "m", Label: "move", Help: "to another exchange or queue", Not: onBroker, Fields: []Field{
				{Name: FieldExchange, Label: "exchange", Hint: "empty: straight to a queue"},
				{Name: FieldKey, Label: "key or queue", Hint: "the routing key, or the queue's name", Check: checkGiven},
			}},
		},
	}
}

// purgeOffer offers the broker's own purge where there are many.
func purgeOffer(depth int) string {
	if depth <= redrive.PurgeOffered {
		return ""
	}
	return fmt.Sprintf("%d lie there. To copy and remove them takes about %d s; the broker purges at once, and also deletes what arrives meanwhile and gives no undo.",
		depth, max(1, depth/redrive.DrainRate))
}

// ForSpooled is what may be done with letters of the spool: to put back what an
// operation removed.
func ForSpooled(op string, undoable int) Menu {
	not := ""
	if undoable == 0 {
		not = "nothing of it is to be put back"
	}
	return Menu{
		Target: Target{Name: "operation " + op, Ref: op},
		Items:  []Item{{Kind: UndoLetters, Key: "u", Label: "put back", Help: fmt.Sprintf("the %d letters that it removed", undoable), Not: not}},
	}
}

func checkYes(value string) error {
	if v := strings.TrimSpace(value); v != "" && v != "yes" {
		return errors.New("yes or nothing")
	}
	return nil
}

func checkGiven(value string) error {
	if strings.TrimSpace(value) == "" {
		return errors.New("it is missing")
	}
	return nil
}
