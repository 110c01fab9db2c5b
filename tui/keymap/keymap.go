// Package keymap declares all keys. The help, the line of keys and the manual page are generated from it. A test
// fails if a key has two meanings in one scope.
package keymap

import "slices"

// Action is the meaning of a key.
type Action string

// The actions.
const (
	None        Action = ""
	RowUp       Action = "row-up"
	RowDown     Action = "row-down"
	Top         Action = "top"
	Bottom      Action = "bottom"
	HalfUp      Action = "half-up"
	HalfDown    Action = "half-down"
	Left        Action = "left"
	Right       Action = "right"
	Open        Action = "open"
	Back        Action = "back"
	Overview    Action = "overview"
	Queues      Action = "queues"
	Executions  Action = "executions"
	Workers     Action = "workers"
	DeadLetters Action = "dlq"
	Workflows   Action = "workflows"
	Alerts      Action = "alerts"
	Inquiries   Action = "inquiries"
	Broker      Action = "broker"
	Acknowledge Action = "acknowledge"
	Mute        Action = "mute"
	NextPane    Action = "next-pane"
	PrevPane    Action = "previous-pane"
	Filter      Action = "filter"
	Sort        Action = "sort"
	Problems    Action = "problems"
	Preview     Action = "preview"
	Hints       Action = "hints"
	Freeze      Action = "freeze"
	Refresh     Action = "refresh"
	Slower      Action = "slower"
	Faster      Action = "faster"
	Theme       Action = "theme"
	Bookmarks   Action = "bookmarks"
	Help        Action = "help"
	Quit        Action = "quit"
	Abort       Action = "abort"
	Act         Action = "act"
	Log         Action = "log"
	Why         Action = "why"
	Requeue     Action = "requeue"
	Discard     Action = "discard"
	Purge       Action = "purge"
	Mark        Action = "mark"
	MarkRange   Action = "mark-range"
	MarkAll     Action = "mark-all"
	Unmark      Action = "unmark"
	Columns     Action = "columns"
	GroupBy     Action = "group-by"
	Take        Action = "take"
	MoveTo      Action = "move"
	Undo        Action = "undo"
)

// The actions of dialogs.
const (
	Choose Action = "choose"
	Yes    Action = "yes"
	No     Action = "no"
	Stop   Action = "stop"
	Hide   Action = "hide"
)

// Scope is where a binding works.
type Scope string

// The scopes. Everywhere means outside text inputs; the others are views.
const (
	Everywhere    Scope = "everywhere"
	InOverview    Scope = "overview"
	InQueues      Scope = "queues"
	InQueue       Scope = "queue"
	InExecutions  Scope = "executions"
	InExecution   Scope = "execution"
	InWorkers     Scope = "workers"
	InWorker      Scope = "worker"
	InDeadLetters Scope = "dlq"
	InLetter      Scope = "letter"
	InWorkflows   Scope = "workflows"
	InAlerts      Scope = "alerts"
	InInquiries   Scope = "inquiries"
	InBroker      Scope = "broker"
	InLog         Scope = "log"
	InXray        Scope = "xray"
	InReplicas    Scope = "replicas"
)

// Scopes lists every view a binding may be limited to.
var Scopes = with(^Trait(0))

// The groups of the help.
const (
	GroupMove = "MOVE"
	GroupRows = "ROWS"
	GroupView = "VIEW"
	GroupActs = "ACTS"
)

// Groups lists them in the order of the help.
var Groups = []string{GroupMove, GroupRows, GroupView, GroupActs}

// Binding binds keys to an action.
type Binding struct {
	Action Action
	// Keys are spelled as Bubble Tea does. Two letters are pressed one after the other.
	Keys []string
	// Show is the spelling for people.
	Show string
	// Short is the text in the line of keys; empty leaves the key out.
	Short string
	// Help is the text in the help and in the manual.
	Help   string
	Group  string
	Scopes []Scope
	// Rank orders the line of keys, lowest first.
	Rank int
	// Acts is true if the action changes the installation. The line of keys omits it while acting is disabled.
	Acts bool
}

// Table is the whole key map.
var Table = slices.Concat(above, numbered(), below, moves)

// above and below are the keys before and after the digits in the help.
var above = []Binding{
	{RowDown, []string{"j", "down"}, "j ↓", "", "row down", GroupMove, []Scope{Everywhere}, 0, false},
	{RowUp, []string{"k", "up"}, "k ↑", "", "row up", GroupMove, []Scope{Everywhere}, 0, false},
	{Top, []string{"gg", "home"}, "gg home", "", "top", GroupMove, []Scope{Everywhere}, 0, false},
	{Bottom, []string{"G", "end"}, "G end", "", "end", GroupMove, []Scope{Everywhere}, 0, false},
	{HalfDown, []string{"ctrl+d", "pgdown"}, "^d pgdn", "", "half a page down", GroupMove, []Scope{Everywhere}, 0,
		false},
	{HalfUp, []string{"ctrl+u", "pgup"}, "^u pgup", "", "half a page up", GroupMove, []Scope{Everywhere}, 0, false},
	{NextPane, []string{"tab"}, "tab", "section", "next section", GroupMove, with(Panes), 2, false},
	{PrevPane, []string{"shift+tab"}, "⇧tab", "", "previous section", GroupMove, with(Panes), 0, false},
	{Left, []string{"h", "left"}, "h ←", "", "columns left; fold what is a tree", GroupMove, with(Sided), 0, false},
	{Right, []string{"l", "right"}, "l →", "", "columns right, that do not fit; unfold", GroupMove, with(Sided), 0,
		false},
	{FoldAll, []string{"0"}, "0", "fold", "fold all, or unfold all", GroupMove, with(Folds), 8, false},
}

var below = []Binding{
	{Open, []string{"enter"}, "enter", "open", "open the row", GroupRows, with(Opens), 1, false},
	{Mark, []string{" "}, "space", "", "mark the row, or take its mark away", GroupRows, with(Marks), 0, false},
	{MarkRange, []string{"V"}, "V", "", "mark from the last mark to here", GroupRows, with(Marks), 0, false},
	{MarkAll, []string{"*"}, "*", "", "mark all that the filter matches now", GroupRows, with(Marks), 0, false},
	{Unmark, []string{"\\"}, "\\", "", "take all marks away", GroupRows, with(Marks), 0, false},
	{Back, []string{"esc"}, "esc", "up", "go up: close, clear the filter, go back", GroupRows, []Scope{Everywhere}, 10,
		false},
	{Sort, []string{"s"}, "s", "sort", "sort; again reverses", GroupRows, with(Sorts), 4, false},
	{Problems, []string{"z"}, "z", "problems", "problems only", GroupRows, with(Troubles), 5, false},
	{GroupBy, []string{"a"}, "a", "", "group by another combination", GroupRows, with(Letters), 0, false},
	{Columns, []string{"c"}, "c", "", "choose columns", GroupRows, with(Tabled), 0, false},
	{Preview, []string{"v"}, "v", "preview", "preview on or off", GroupRows, with(Previews), 9, false},

	{Why, []string{"W"}, "W", "why", "why it waits, in full; again closes", GroupRows, with(Whys), 4, false},

	{Acknowledge, []string{"i"}, "i", "ack", "acknowledge in this session; again takes it back", GroupRows,
		with(Quiets), 2, false},
	{Mute, []string{"m"}, "m", "mute", "mute for 15 minutes in this session; again takes it back", GroupRows,
		with(Quiets), 3, false},
	{Filter, []string{"/"}, "/", "filter", "filter; in details search", GroupView, with(Filters), 3, false},
	{Bookmarks, []string{"'"}, "'", "", "open a bookmark by its letter", GroupView, []Scope{Everywhere}, 0, false},
	{Freeze, []string{"p"}, "p", "freeze",
		"freeze what is shown, and thaw it; whether the servers are up is still watched", GroupView,
		[]Scope{Everywhere}, 6, false},
	{Refresh, []string{"r"}, "r", "refresh", "refresh now", GroupView, []Scope{Everywhere}, 7, false},
	{Slower, []string{"+", "="}, "+", "", "poll less often", GroupView, []Scope{Everywhere}, 0, false},
	{Faster, []string{"-"}, "-", "", "poll more often", GroupView, []Scope{Everywhere}, 0, false},
	{Theme, []string{"t"}, "t", "", "next theme", GroupView, []Scope{Everywhere}, 0, false},
	{Hints, []string{"b"}, "b", "", "basics: hints about the open view, or none any more", GroupView,
		[]Scope{Everywhere}, 0, false},
	{Help, []string{"?"}, "?", "help", "keys that work here", GroupView, []Scope{Everywhere}, 99, false},
	{Quit, []string{"q"}, "q", "quit", "go up; quit at a numbered view", GroupView, []Scope{Everywhere}, 12, false},
	{Abort, []string{"ctrl+c"}, "^c", "", "quit at once", GroupView, []Scope{Everywhere}, 0, false},

	{Act, []string{"A"}, "A", "act", "act on the row, with plan and question", GroupActs, with(Acts), 2, true},
	{Requeue, []string{"R"}, "R", "requeue", "requeue the dead letter, with plan", GroupActs, with(Letters), 3, true},
	{Requeue, []string{"R"}, "R", "retry", "retry the execution, with plan", GroupActs, with(Retries), 3, true},
	{Discard, []string{"D"}, "D", "", "discard the dead letter, with plan and question", GroupActs, with(Letters), 0,
		true},
	{Purge, []string{"P"}, "P", "", "discard all that wait and match, with plan", GroupActs, with(Letters), 0, true},
	{MoveTo, []string{"M"}, "M", "", "send dead letters to another exchange or queue, with plan", GroupActs,
		with(Letters), 0, true},
	{Undo, []string{"u"}, "u", "", "take back what was discarded or taken last, with plan", GroupActs,
		[]Scope{Everywhere}, 0, true},
	{Take, []string{"S"}, "S", "take", "take messages from the broker into the ledger, with plan", GroupActs,
		with(Letters), 6, true},
	{Log, []string{"L"}, "L", "log", "what was done, here and by others", GroupActs, []Scope{Everywhere}, 13, false},
}

// In reports whether the binding works in the scope.
func (b Binding) In(scope Scope) bool {
	return slices.Contains(b.Scopes, Everywhere) || slices.Contains(b.Scopes, scope)
}
