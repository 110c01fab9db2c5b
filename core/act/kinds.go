package act

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Kind names an act, as operator_audit does.
type Kind string

// The kinds of acts.
const (
	CancelExecution       Kind = "execution.cancel"
	CancelTree            Kind = "execution.cancel-tree"
	RetryExecution        Kind = "execution.retry"
	FrontExecution        Kind = "execution.front"
	LaneExecution         Kind = "execution.lane"
	PutBackExecutions     Kind = "execution.put-back"
	PauseQueue            Kind = "queue.pause"
	ResumeQueue           Kind = "queue.resume"
	LimitQueue            Kind = "queue.limit"
	ResetQueue            Kind = "queue.reset"
	ClearQueue            Kind = "queue.clear"
	RepairQueue           Kind = "queue.repair"
	CordonWorker          Kind = "worker.cordon"
	UncordonWorker        Kind = "worker.uncordon"
	DrainWorker           Kind = "worker.drain"
	ForgetWorker          Kind = "worker.forget"
	PauseWorkflow         Kind = "workflow.pause"
	ResumeWorkflow        Kind = "workflow.resume"
	CancelWorkflow        Kind = "workflow.cancel"
	RetryWorkflow         Kind = "workflow.retry"
	RetryTask             Kind = "task.retry"
	AnswerInquiry         Kind = "inquiry.respond"
	RequeueDeadLetter     Kind = "dead_letter.requeue"
	DiscardDeadLetter     Kind = "dead_letter.discard"
	DiscardAllDeadLetters Kind = "dead_letter.discard-all"
	SendDeadLetters       Kind = "dead_letter.send"
	UndoDeadLetters       Kind = "dead_letter.undo"
	ReturnDeadLetters     Kind = "dead_letter.return"
	TakeDeadLetters       Kind = "dead_letter.take"
	PurgeBroker           Kind = "dead_letter.purge-broker"
)

// about describes a kind of act to the operator.
type about struct {
	// help says what the act does to one row, many what it does to marked rows. many is empty if it applies to one
	// row only.
	key, label, help, many string
	// command is the command of attune-executor, if any; reason is its flag for the reason.
	command, reason string
	flags           []flag
}

// flag is an argument of a command. field names the value in the request.
type flag struct{ name, field string }

var kinds = map[Kind]about{
	RetryExecution: {
		key: "r", label: "retry", help: "repeat it as a new execution",
		many: "repeat ended ones as new executions", command: "execution retry", reason: "--reason",
	},
	CancelExecution: {
		key: "c", label: "cancel", help: "end it, or ask its worker to stop it",
		many: "end them, or ask their workers to stop them", command: "execution cancel", reason: "--reason",
	},
	CancelTree: {
		key: "t", label: "cancel tree", help: "end it and everything that it has started", command: "execution cancel",
		reason: "--reason", flags: []flag{{name: "--tree"}},
	},
	FrontExecution: {
		key: "f", label: "front", help: "before the others of its lane that wait",
		many: "before the others of their lane that wait", command: "execution front", reason: "--reason",
	},
	LaneExecution: {
		key: "l", label: "lane", help: "another lane of its queue", many: "another lane of their queues",
		command: "execution lane", reason: "--reason", flags: []flag{{name: "--to", field: FieldLane}},
	},
	PutBackExecutions: {key: "u", label: "put back", help: "moved executions to their old places"},

	PauseQueue: {
		key: "p", label: "pause", help: "admit nothing until it is resumed",
		many: "admit nothing until they are resumed", command: "queue pause", reason: "--reason",
	},
	ResumeQueue: {
		key: "u", label: "resume", help: "admit again, in the same order", many: "admit again, in the same order",
		command: "queue resume",
	},
	LimitQueue: {
		key: "l", label: "limit", help: "another limit than the policy's", command: "queue limit",
		flags: []flag{{field: FieldLimit}},
	},
	ResetQueue: {
		key: "o", label: "reset limit", help: "the policy's limit again", command: "queue limit",
		flags: []flag{{name: "--reset"}},
	},
	RepairQueue: {
		key: "f", label: "repair", help: "recount slots and fix wrong counters", command: "queue repair",
	},
	ClearQueue: {
		key: "c", label: "clear", help: "cancel its waiting executions", command: "queue clear",
		flags: []flag{{name: "--older-than", field: FieldOlderThan}},
	},

	CordonWorker: {
		key: "c", label: "cordon", help: "give it nothing new", many: "give them nothing new",
		command: "workers cordon", reason: "--reason",
	},
	UncordonWorker: {
		key: "u", label: "uncordon", help: "give it work again", many: "give them work again",
		command: "workers uncordon", reason: "--reason",
	},
	DrainWorker: {
		key: "d", label: "drain", help: "give it nothing new, let it end what it runs",
		many: "give them nothing new, let them end what they run", command: "workers drain", reason: "--reason",
	},
	ForgetWorker: {
		key: "f", label: "forget", help: "remove its row and its queues", command: "workers forget",
		reason: "--reason",
	},

	PauseWorkflow: {
		key: "p", label: "pause", help: "start nothing more until it is resumed",
		many: "start nothing more in them until they are resumed", command: "workflow pause", reason: "--reason",
	},
	ResumeWorkflow: {
		key: "u", label: "resume", help: "go on", many: "go on", command: "workflow resume", reason: "--reason",
	},
	RetryWorkflow: {
		key: "r", label: "start again", help: "all of it, as a new execution",
		many: "all tasks of ended ones, as new executions", command: "execution retry", reason: "--reason",
	},
	CancelWorkflow: {
		key: "c", label: "cancel", help: "start nothing more and end it",
		many: "start nothing more in them and end them", command: "workflow cancel", reason: "--reason",
	},
	RetryTask: {
		key: "r", label: "retry", help: "repeat it as a new execution", command: "execution retry",
		reason: "--reason",
	},
	// The command asks for the answer itself, since answers may be secret.
	AnswerInquiry: {
		key: "a", label: "answer", help: "the first answer counts",
		many: "if the answer fits; the first answer counts", command: "inquiry respond",
		flags: []flag{{name: "--as", field: FieldAs}},
	},

	RequeueDeadLetter: {
		key: "r", label: "requeue", help: "try again what it was about", many: "try again what they were about",
		command: "dlq requeue", reason: "--reason",
	},
	DiscardDeadLetter: {
		key: "d", label: "discard", help: "nothing is done about it; the ledger keeps it",
		many: "nothing is done about them; the ledger keeps them", command: "dlq discard", reason: "--reason",
	},
	SendDeadLetters: {
		key: "m", label: "send", help: "its message to another exchange or queue",
		many: "their messages to another exchange or queue",
	},
	UndoDeadLetters: {
		key: "u", label: "reopen", help: "put it back among the waiting ones",
		many: "put them back among the waiting ones",
	},
	ReturnDeadLetters: {
		key: "b", label: "put back", help: "its message to the queue it was taken from",
		many: "their messages to the queues they were taken from",
	},
	DiscardAllDeadLetters: {
		key: "p", label: "discard all", help: "all that wait and match", command: "dlq discard-all", reason: "--note",
		flags: []flag{ // here --reason is the reason of the dead letter
			{name: "--reason", field: FieldReason},
			{name: "--action", field: FieldAction},
			{name: "--worker", field: FieldWorker},
			{name: "--older-than", field: FieldOlderThan},
		},
	},
	TakeDeadLetters: {
		key: "s", label: "take", help: "messages from the broker into the ledger", command: "dlq take",
		reason: "--note", flags: []flag{{name: "--queue", field: FieldQueue}, {name: "--first", field: FieldFirst}},
	},
	PurgeBroker: {
		key: "x", label: "purge", help: "the broker deletes all messages of the queue; nothing brings them back",
	},
}

// Of is the kind of row that the act changes: execution, queue, worker and so on.
func (k Kind) Of() string {
	what, _, _ := strings.Cut(string(k), ".")
	return what
}

// Verb names the act in one or two words.
func (k Kind) Verb() string { return kinds[k].label }

// Known lists every kind of act as an item of a menu, in the order of their names.
func Known() []Item {
	var items []Item
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		items = append(items, item(kind, ""))
	}
	return items
}

// Commands returns the arguments of attune-executor for the request: one command, or one for each target. It is empty
// if no command does the same.
func (r *Request) Commands(reason string) (commands [][]string) {
	of := kinds[r.Kind]
	if of.command == "" {
		return nil
	}
	var flags, why []string
	for _, f := range of.flags {
		value := strings.TrimSpace(r.Values[f.field])
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
	for _, t := range r.All() {
		ids = append(ids, strconv.FormatInt(t.ID, 10))
	}
	switch group, _, _ := strings.Cut(of.command, " "); group {
	case "queue":
		for _, t := range r.All() {
			if t.Group == "" || r.Kind == RepairQueue {
				add([]string{t.Action})
			} else {
				add([]string{t.Action}, "--group", t.Group)
			}
		}
	case "workers":
		for i, t := range r.All() {
			add([]string{cmp.Or(t.Ref, ids[i])})
		}
	case "execution", "dlq": // one command takes many ids
		if r.Kind == DiscardAllDeadLetters || r.Kind == TakeDeadLetters {
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
