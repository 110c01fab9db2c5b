package act

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// ForLetter is what may be done with a dead letter. Whether it can be requeued is known
// when it is planned. depth is how many messages lie in the broker's queue.
func ForLetter(l *monitor.LedgerEntry, depth int64) Menu {
	var decided, open, taken string
	if !l.Open() {
		decided = "it is decided: " + l.Decision
	}
	if l.Decision != "discarded" && l.Decision != "purged" {
		open = "it was not discarded"
	}
	if l.TakenFrom == "" {
		taken = "no operator took it from a queue"
	}
	if decided != "" {
		taken = decided
	}
	menu := ForNoLetter(depth)
	menu.Target = Target{Name: "dead letter " + strconv.FormatInt(l.ID, 10), ID: l.ID}
	menu.Items = append([]Item{
		{Kind: RequeueLetter, Key: "r", Label: "requeue", Help: "try again what it was about"},
		{Kind: DiscardLetter, Key: "d", Label: "discard", Help: "nothing is done about it; the ledger keeps it", Not: decided},
		{Kind: SendLetters, Key: "m", Label: "send", Help: "its message to another exchange or queue", Not: decided, Fields: sendFields()},
		{Kind: UndoLetters, Key: "u", Label: "reopen", Help: "what was discarded waits again", Not: open},
		{Kind: ReturnLetters, Key: "b", Label: "put back", Help: "its message to the queue it was taken from", Not: taken},
		{Kind: DiscardAllLetters, Key: "p", Label: "discard all", Help: "all that wait and match", Touches: "waiting dead letters that match", Fields: []Field{
			{Name: FieldReason, Label: "died because", Value: l.Reason, Hint: "expired, rejected …; empty: any"},
			{Name: FieldAction, Label: "action", Hint: "a star stands for anything; empty: any"},
			{Name: FieldWorker, Label: "worker", Hint: "its id or name; empty: any"},
			{Name: FieldOlderThan, Label: "older than", Hint: "such as 10m or 2h; empty: any", Check: checkOlderThan},
		}},
	}, menu.Items...)
	return menu
}

// ForMarkedLetters is what may be done with dead letters that are marked.
func ForMarkedLetters(targets []Target) Menu {
	return Menu{
		Target: Target{Name: fmt.Sprintf("%d marked dead letters", len(targets))}, Targets: targets,
		Items: []Item{
			{Kind: RequeueLetter, Key: "r", Label: "requeue", Help: "try again what they were about"},
			{Kind: DiscardLetter, Key: "d", Label: "discard", Help: "nothing is done about them; the ledger keeps them"},
			{Kind: SendLetters, Key: "m", Label: "send", Help: "their messages to another exchange or queue", Fields: sendFields()},
			{Kind: UndoLetters, Key: "u", Label: "reopen", Help: "what was discarded waits again"},
			{Kind: ReturnLetters, Key: "b", Label: "put back", Help: "their messages to the queues they were taken from"},
		},
	}
}

// ForNoLetter is what may be done with the broker's queue of dead letters, in which so
// many messages lie.
func ForNoLetter(depth int64) Menu {
	few, queue := "", Target{Name: monitor.DeadLetterQueue}
	if depth <= triage.PurgeOffered {
		few = fmt.Sprintf("only above %d messages; S takes them", triage.PurgeOffered)
	}
	return Menu{
		Target: queue,
		Items: []Item{
			{Kind: TakeLetters, Key: "s", Label: "take", Help: "messages from the broker into the ledger", Target: queue, Fields: []Field{
				{Name: FieldQueue, Label: "from the queue", Value: monitor.DeadLetterQueue, Hint: "or another, such as worker.7.executions", Check: checkGiven},
				{Name: FieldFirst, Label: "the first", Hint: "how many; empty: all that lie there now", Check: checkFirst},
			}},
			{
				Kind: PurgeBroker, Key: "x", Label: "purge", Help: "the broker deletes all messages of the queue; nothing brings them back",
				Touches: "all messages of " + queue.Name, Target: queue, Not: few,
			},
		},
	}
}

func sendFields() []Field {
	return []Field{
		{Name: FieldExchange, Label: "exchange", Hint: "empty: straight to a queue"},
		{Name: FieldKey, Label: "key or queue", Hint: "the routing key, or the queue's name", Check: checkGiven},
	}
}

func checkGiven(value string) error {
	if strings.TrimSpace(value) == "" {
		return errors.New("it is missing")
	}
	return nil
}

func checkFirst(value string) error {
	if strings.TrimSpace(value) == "" {
		return nil
	}
	return checkLimit(value)
}
