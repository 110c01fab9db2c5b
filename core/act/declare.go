package act

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/lifecycle"
)

// Kind names an act, as operator_audit does.
type Kind string

// Act declares an act to every door: its line in menus, its command and its route.
type Act struct {
	Kind Kind
	// Key is its letter in menus, Label one or two words for it.
	Key, Label string
	// Help says what it does to one row, Many what it does to marked rows. Without Many it applies to one row only.
	Help, Many string
	// Fields are its values beside the target: those of the form, the flags of the command, the members of HTTP.
	Fields []Field
	// Insists is the help of the flag --yes that includes what is of no use. HTTP then takes "anyway".
	Insists string
	Command Command
	Route   Route

	offers []offer
	plan   planner
	// whole is true if plan plans several rows at once.
	whole bool
}

// Command is the command of an act.
type Command struct {
	// Group and Use are its place, such as queue and "pause ACTION". Own commands are written by hand.
	Group, Use           string
	Short, Long, Example string
	Aliases              []string
	Own                  bool
	// Of are the acts in whose commands the flag Switch asks for this act. The number of a switch names its target.
	Of                 []Kind
	Switch, SwitchHelp string
	Number             bool
	// Takes are its arguments, Subject names one.
	Takes   Takes
	Subject string
	// Chooses are the statuses of the executions that flags choose in place of ids. Within: such flags choose among the
	// executions of the queue.
	Chooses []lifecycle.Status
	Within  bool
	// Helps of flags; without one there is no such flag. The reason is that of --reason, or of --note.
	Reason, Note, DryRun, Yes, Wait string
	// Counts is set if a dry run only counts what the flags choose.
	Counts bool
	// Asks is set for acts that are confirmed: their rows are not named one by one.
	Asks bool
	// Sends is set for acts that send messages, Connects for acts that need the broker, Ledger for acts whose plans ask
	// where a dead letter would go.
	Sends, Connects, Ledger bool
	// Noun is what the progress counts, by default the kind of row; Done and Results are the participle and the member
	// of JSON of named rows.
	Noun, Done, Results string
}

// Takes are the arguments of a command.
type Takes int

// The arguments of commands.
const (
	TakesNothing Takes = iota
	TakesIDs           // one or several
	TakesID
	TakesQueue  // the ref of an action, and --group
	TakesAction // the ref of an action, or nothing
	TakesRef    // a name or a ref
)

// Route is the route of an act.
type Route struct {
	// Path is below /api/v1, such as workers/{id}/drain; empty without a route.
	Path string
	// IDs is the member of the body with the ids of several rows, ID that with the id of one, if the path has none.
	IDs, ID string
	// Plans adds a GET that answers the plan. The fields are then parameters, and the POST confirms the plan.
	Plans bool
	// Confirms is set if a POST without Plans confirms the plan.
	Confirms bool
	// Answer is an empty receipt, from which `go test ./core/api -run RoutesOfActs -update` describes a new route.
	Answer any
}

// acts are all acts. Each file of an act declares it.
var acts = map[Kind]*Act{}

func declare(kind Kind, of Act) Kind {
	of.Kind = kind
	acts[kind] = &of
	return kind
}

// All are all acts, in the order of their names.
func All() []*Act {
	list := make([]*Act, 0, len(acts))
	for _, kind := range slices.Sorted(maps.Keys(acts)) {
		list = append(list, acts[kind])
	}
	return list
}

// Switches are the acts that a flag of the act's command asks for.
func (a *Act) Switches() (list []*Act) {
	for _, of := range All() {
		if of.Command.Switch != "" && slices.Contains(of.Command.Of, a.Kind) {
			list = append(list, of)
		}
	}
	return list
}

// Check finds the first field whose value does not fit.
func (a *Act) Check(values map[string]string) *Problem {
	for i := range a.Fields {
		if check := a.Fields[i].Check; check != nil {
			if err := check(values[a.Fields[i].Name]); err != nil {
				return refuse(Invalid, "%s", err)
			}
		}
	}
	return nil
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
func (k Kind) Verb() string {
	if of := acts[k]; of != nil {
		return of.Label
	}
	return ""
}

// Key is the letter of the act in a menu.
func (k Kind) Key() string { return acts[k].Key }

// Commands returns the arguments of attune-executor for the request: one command, or one for each target. It is empty
// if no command does the same.
func (r *Request) Commands(reason string) (commands [][]string) {
	of := acts[r.Kind]
	command, flags := of.Command, of.flags(r.Values)
	if len(command.Of) > 0 {
		command = acts[command.Of[0]].Command
	}
	if command.Group == "" {
		return nil
	}
	name, _, _ := strings.Cut(command.Use, " ")
	add := func(subject []string, scope ...string) {
		argv := slices.Concat([]string{command.Group, name}, subject, flags, scope)
		switch {
		case reason != "" && command.Reason != "":
			argv = append(argv, "--reason", reason)
		case reason != "" && command.Note != "":
			argv = append(argv, "--note", reason)
		}
		commands = append(commands, argv)
	}
	var ids []string
	for _, t := range r.All() {
		ids = append(ids, strconv.FormatInt(t.ID, 10))
	}
	switch {
	case of.Command.Number:
		add(append([]string{"--" + of.Command.Switch}, ids...))
	case command.Takes == TakesNothing:
		add(nil)
	case command.Takes == TakesIDs:
		add(ids)
	default:
		for i, t := range r.All() {
			switch {
			case command.Takes == TakesQueue && t.Group != "":
				add([]string{t.Action}, "--group", t.Group)
			case command.Takes == TakesQueue, command.Takes == TakesAction:
				add([]string{t.Action})
			default:
				add([]string{cmp.Or(t.Ref, ids[i])})
			}
		}
	}
	return commands
}

// flags are the flags of a command with these values.
func (a *Act) flags(values map[string]string) (flags []string) {
	if a.Command.Switch != "" && !a.Command.Number {
		flags = append(flags, "--"+a.Command.Switch)
	}
	for i := range a.Fields {
		f, value := &a.Fields[i], strings.TrimSpace(values[a.Fields[i].Name])
		switch {
		case value == "":
		case f.Argument:
			flags = append(flags, value)
		case f.Usage != "":
			flags = append(flags, "--"+f.Flag(), value)
		}
	}
	return flags
}
