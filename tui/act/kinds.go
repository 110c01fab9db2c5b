package act

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Kind names an act. The names are those of the audit.
type Kind string

// The kinds of acts.
const (
	CancelExecution   Kind = "execution.cancel"
	CancelTree        Kind = "execution.cancel-tree"
	RetryExecution    Kind = "execution.retry"
	PauseQueue        Kind = "queue.pause"
	ResumeQueue       Kind = "queue.resume"
	LimitQueue        Kind = "queue.limit"
	ResetQueue        Kind = "queue.reset"
	ClearQueue        Kind = "queue.clear"
	RepairQueue       Kind = "queue.repair"
	CordonWorker      Kind = "worker.cordon"
	UncordonWorker    Kind = "worker.uncordon"
	DrainWorker       Kind = "worker.drain"
	ForgetWorker      Kind = "worker.forget"
	PauseWorkflow     Kind = "workflow.pause"
	ResumeWorkflow    Kind = "workflow.resume"
	CancelWorkflow    Kind = "workflow.cancel"
	RetryWorkflow     Kind = "workflow.retry"
	RetryTask         Kind = "task.retry"
	AnswerInquiry     Kind = "inquiry.respond"
	RequeueLetter     Kind = "dead_letter.requeue"
	DiscardLetter     Kind = "dead_letter.discard"
	DiscardAllLetters Kind = "dead_letter.discard-all"
	SendLetters       Kind = "dead_letter.send"
	UndoLetters       Kind = "dead_letter.undo"
	ReturnLetters     Kind = "dead_letter.return"
	TakeLetters       Kind = "dead_letter.take"
	PurgeBroker       Kind = "dead_letter.purge-broker"
)

// told is what people are told of a kind of act.
type told struct {
	// key chooses it, label is the act in a word or two, help what it does to one row, and many what it does
	// to marked rows; empty where these cannot be acted upon together.
	key, label, help, many string
	// command is that of attune-executor, empty where none does it, and reason its flag for the reason.
	command, reason string
	flags           []flag
}

// flag is an argument of a command with the field of an order that has its value.
type flag struct{ name, field string }

var kinds = map[Kind]told{
	RetryExecution: {
		"r", "retry", "repeat it as a new execution", "repeat those that have ended as new executions", "execution retry", "--reason", nil,
	},
	CancelExecution: {
		"c", "cancel", "end it, or ask its worker to stop it", "end them, or ask their workers to stop them", "execution cancel", "--reason", nil,
	},
	CancelTree: {"t", "cancel tree", "and everything that it has started", "", "execution cancel", "--reason", []flag{{"--tree", ""}}},

	PauseQueue: {
		"p", "pause", "admit nothing until it is resumed", "admit nothing until they are resumed", "queue pause", "--reason", nil,
	},
	ResumeQueue: {"u", "resume", "admit again, in the same order", "admit again, in the same order", "queue resume", "", nil},
	LimitQueue:  {"l", "limit", "another limit than the policy's", "", "queue limit", "", []flag{{"", FieldLimit}}},
	ResetQueue:  {"o", "reset limit", "the policy's limit again", "", "queue limit", "", []flag{{"--reset", ""}}},
	RepairQueue: {"f", "repair", "recount slots and fix wrong counters", "", "queue repair", "", nil},
	ClearQueue:  {"c", "clear", "cancel its waiting executions", "", "queue clear", "", []flag{{"--older-than", FieldOlderThan}}},

	CordonWorker:   {"c", "cordon", "give it nothing new", "give them nothing new", "workers cordon", "--reason", nil},
	UncordonWorker: {"u", "uncordon", "give it work again", "give them work again", "workers uncordon", "--reason", nil},
	DrainWorker: {
		"d", "drain", "give it nothing new, let it end what it runs", "give them nothing new, let them end what they run",
		"workers drain", "--reason", nil,
	},
	ForgetWorker: {"f", "forget", "remove the row of a worker that is gone", "", "workers forget", "--reason", nil},

	PauseWorkflow: {
		"p", "pause", "start nothing more until it is resumed", "start nothing more in them until they are resumed",
		"workflow pause", "--reason", nil,
	},
	ResumeWorkflow: {"u", "resume", "go on", "go on", "workflow resume", "--reason", nil},
	RetryWorkflow: {
		"r", "begin anew", "all of it, as a new execution", "those that have ended, all of each, as new executions",
		"execution retry", "--reason", nil,
	},
	CancelWorkflow: {
		"c", "cancel", "start nothing more and end it", "start nothing more in them and end them", "workflow cancel", "--reason", nil,
	},
	RetryTask: {"r", "retry", "repeat it as a new execution", "", "execution retry", "--reason", nil},
	// The command asks for the answer itself, since some are secret.
	AnswerInquiry: {
		"a", "answer", "the first answer counts", "those for which it fits; the first answer counts", "inquiry respond", "",
		[]flag{{"--as", FieldAs}},
	},

	RequeueLetter: {
		"r", "requeue", "try again what it was about", "try again what they were about", "dlq requeue", "--reason", nil,
	},
	DiscardLetter: {
		"d", "discard", "nothing is done about it; the ledger keeps it", "nothing is done about them; the ledger keeps them",
		"dlq discard", "--reason", nil,
	},
	SendLetters: {"m", "send", "its message to another exchange or queue", "their messages to another exchange or queue", "", "", nil},
	UndoLetters: {"u", "reopen", "what was discarded waits again", "what was discarded waits again", "", "", nil},
	ReturnLetters: {
		"b", "put back", "its message to the queue it was taken from", "their messages to the queues they were taken from", "", "", nil,
	},
	DiscardAllLetters: {
		"p", "discard all", "all that wait and match", "", "dlq discard-all", "--note", // in which reason is why they died
		[]flag{{"--reason", FieldReason}, {"--action", FieldAction}, {"--worker", FieldWorker}, {"--older-than", FieldOlderThan}},
	},
	TakeLetters: {
		"s", "take", "messages from the broker into the ledger", "", "dlq take", "--note",
		[]flag{{"--queue", FieldQueue}, {"--first", FieldFirst}},
	},
	PurgeBroker: {"x", "purge", "the broker deletes all messages of the queue; nothing brings them back", "", "", "", nil},
}

// Of is what the kind acts upon: execution, queue, worker and so on.
func (k Kind) Of() string {
	what, _, _ := strings.Cut(string(k), ".")
	return what
}

// Verb is the act in a word or two.
func (k Kind) Verb() string { return kinds[k].label }

// Commands are the arguments with which attune-executor does what an order asks for,
// one command or one for each target, for a reason or none; empty where no command
// does.
func (o *Order) Commands(reason string) (commands [][]string) {
	of := kinds[o.Kind]
	if of.command == "" {
		return nil
	}
	var flags, why []string
	for _, f := range of.flags {
		value := strings.TrimSpace(o.Values[f.field])
		for _, text := range []string{f.name, value} {
			if text != "" && (value != "" || f.field == "") {
				flags = append(flags, text)
			}
		}
	}
	if reason != "" && of.reason != "" {
		why = []string{of.reason, reason}
	}
	add := func(subject []string, scope ...string) {
		commands = append(commands, slices.Concat(strings.Fields(of.command), subject, flags, scope, why))
	}
	var ids []string
	for _, t := range o.All() {
		ids = append(ids, strconv.FormatInt(t.ID, 10))
	}
	switch group, _, _ := strings.Cut(of.command, " "); group {
	case "queue":
		for _, t := range o.All() {
			if t.Group == "" || o.Kind == RepairQueue {
				add([]string{t.Action})
			} else {
				add([]string{t.Action}, "--group", t.Group)
			}
		}
	case "workers":
		for i, t := range o.All() {
			add([]string{cmp.Or(t.Ref, ids[i])})
		}
	case "execution", "dlq": // these take many
		if o.Kind == DiscardAllLetters || o.Kind == TakeLetters {
			ids = nil
		}
		add(ids)
	default:
		for _, id := range ids {
			add([]string{id})
		}
	}
	return commands
}
