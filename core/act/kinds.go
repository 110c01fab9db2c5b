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

// about declares a kind of act.
type about struct {
	// help says what the act does to one row, many what it does to marked rows. many is empty if it applies to one
	// row only.
	key, label, help, many string
	// command is the command of attune-executor, if any; reason is its flag for the reason.
	command, reason string
	flags           []flag
	plan            planner
	// whole is true if plan plans several rows at once.
	whole bool
}

// flag is an argument of a command. field names the value in the request.
type flag struct{ name, field string }

// acts are all acts. Each file of an act declares it.
var acts = map[Kind]about{}

func declare(kind Kind, of about) Kind {
	acts[kind] = of
	return kind
}

// Of is the kind of row that the act changes: execution, queue, dead letter and so on.
func (k Kind) Of() string {
	what, _, _ := strings.Cut(string(k), ".")
	if what == "task" {
		return "execution"
	}
	return strings.ReplaceAll(what, "_", " ")
}

// Verb names the act in one or two words.
func (k Kind) Verb() string { return acts[k].label }

// Key is the letter of the act in a menu.
func (k Kind) Key() string { return acts[k].key }

// Known lists every kind of act as an item of a menu, in the order of their names.
func Known() []Item {
	var items []Item
	for _, kind := range slices.Sorted(maps.Keys(acts)) {
		items = append(items, item(kind, ""))
	}
	return items
}

// Commands returns the arguments of attune-executor for the request: one command, or one for each target. It is empty
// if no command does the same.
func (r *Request) Commands(reason string) (commands [][]string) {
	of := acts[r.Kind]
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
