package act

import (
	"cmp"
	"strconv"
	"strings"
)

// words are the commands of attune-executor that do what a kind of act does, before
// what they act upon.
var words = map[Kind][]string{
	CancelExecution: {"execution", "cancel"}, CancelTree: {"execution", "cancel"}, RetryExecution: {"execution", "retry"},
	RetryTask: {"execution", "retry"}, RetryWorkflow: {"execution", "retry"},
	PauseQueue: {"queue", "pause"}, ResumeQueue: {"queue", "resume"}, LimitQueue: {"queue", "limit"}, ResetQueue: {"queue", "limit"},
	ClearQueue: {"queue", "clear"}, RepairQueue: {"queue", "repair"},
	CordonWorker: {"workers", "cordon"}, UncordonWorker: {"workers", "uncordon"}, DrainWorker: {"workers", "drain"}, ForgetWorker: {"workers", "forget"},
	RequeueLetter: {"dlq", "requeue"}, DiscardLetter: {"dlq", "discard"}, DiscardAllLetters: {"dlq", "discard-all"}, TakeLetters: {"dlq", "take"},
	PauseWorkflow: {"workflow", "pause"}, ResumeWorkflow: {"workflow", "resume"}, CancelWorkflow: {"workflow", "cancel"},
	AnswerInquiry: {"inquiry", "respond"},
}

// unreasoned are the commands that take no reason.
var unreasoned = map[Kind]bool{ResumeQueue: true, LimitQueue: true, ResetQueue: true, ClearQueue: true, RepairQueue: true, AnswerInquiry: true}

// Commands are the arguments with which attune-executor does what an order asks for,
// one command or one for each target, for a reason or none; empty where no command
// does. Answers to questions are left out, since some are secret: the command asks
// for them.
func (o *Order) Commands(reason string) [][]string {
	begin, ok := words[o.Kind]
	if !ok {
		return nil
	}
	var commands [][]string
	for _, of := range o.subjects() {
		command := append(append([]string{}, begin...), of...)
		command = append(command, o.flags()...)
		switch {
		case reason == "" || unreasoned[o.Kind]:
		case o.Kind == DiscardAllLetters, o.Kind == TakeLetters: // in which reason is why they died
			command = append(command, "--note", reason)
		default:
			command = append(command, "--reason", reason)
		}
		commands = append(commands, command)
	}
	return commands
}

// subjects are what the commands act upon, a list of arguments for each command.
func (o *Order) subjects() [][]string {
	targets := o.Targets
	if len(targets) == 0 {
		targets = []Target{o.Target}
	}
	switch words[o.Kind][0] {
	case "queue", "workers":
		var each [][]string
		for i := range targets {
			each = append(each, o.subject(&targets[i]))
		}
		return each
	}
	if o.Kind == DiscardAllLetters || o.Kind == TakeLetters {
		return [][]string{nil}
	}
	var ids []string
	for i := range targets {
		ids = append(ids, strconv.FormatInt(targets[i].ID, 10))
	}
	if words[o.Kind][0] != "execution" && words[o.Kind][0] != "dlq" { // these take many
		var each [][]string
		for _, id := range ids {
			each = append(each, []string{id})
		}
		return each
	}
	return [][]string{ids}
}

// subject is a queue or a worker.
func (o *Order) subject(t *Target) []string {
	if words[o.Kind][0] == "workers" {
		return []string{cmp.Or(t.Ref, strconv.FormatInt(t.ID, 10))}
	}
	of := []string{t.Action}
	switch o.Kind {
	case LimitQueue:
		of = append(of, strings.TrimSpace(o.Values[FieldLimit]))
	case ResetQueue:
		of = append(of, "--reset")
	}
	if t.Group != "" && o.Kind != RepairQueue {
		of = append(of, "--group", t.Group)
	}
	return of
}

// flags are those that the values of the order make.
func (o *Order) flags() []string {
	var flags []string
	add := func(flag, field string) {
		if value := strings.TrimSpace(o.Values[field]); value != "" {
			flags = append(flags, flag, value)
		}
	}
	switch o.Kind {
	case CancelTree:
		return []string{"--tree"}
	case ClearQueue:
		add("--older-than", FieldOlderThan)
	case TakeLetters:
		add("--queue", FieldQueue)
		add("--first", FieldFirst)
	case DiscardAllLetters:
		add("--reason", FieldReason)
		add("--action", FieldAction)
		add("--worker", FieldWorker)
		add("--older-than", FieldOlderThan)
	case AnswerInquiry:
		add("--as", FieldAs)
	}
	return flags
}
