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
	Redraw      Action = "redraw"
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
	InDeadLetter  Scope = "letter"
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
	{
		Action: RowDown, Keys: []string{"j", "down"}, Show: "j ↓", Help: "row down", Group: GroupMove,
		Scopes: []Scope{Everywhere},
	},
	{
		Action: RowUp, Keys: []string{"k", "up"}, Show: "k ↑", Help: "row up", Group: GroupMove,
		Scopes: []Scope{Everywhere},
	},
	{
		Action: Top, Keys: []string{"gg", "home"}, Show: "gg home", Help: "top", Group: GroupMove,
		Scopes: []Scope{Everywhere},
	},
	{
		Action: Bottom, Keys: []string{"G", "end"}, Show: "G end", Help: "end", Group: GroupMove,
		Scopes: []Scope{Everywhere},
	},
	{
		Action: HalfDown, Keys: []string{"ctrl+d", "pgdown"}, Show: "^d pgdn", Help: "half a page down",
		Group: GroupMove, Scopes: []Scope{Everywhere},
	},
	{
		Action: HalfUp, Keys: []string{"ctrl+u", "pgup"}, Show: "^u pgup", Help: "half a page up", Group: GroupMove,
		Scopes: []Scope{Everywhere},
	},
	{
		Action: NextPane, Keys: []string{"tab"}, Show: "tab", Short: "section", Help: "next section", Group: GroupMove,
		Scopes: with(Panes), Rank: 2,
	},
	{
		Action: PrevPane, Keys: []string{"shift+tab"}, Show: "⇧tab", Help: "previous section", Group: GroupMove,
		Scopes: with(Panes),
	},
	{
		Action: Left, Keys: []string{"h", "left"}, Show: "h ←", Help: "columns left; fold what is a tree",
		Group: GroupMove, Scopes: with(Sided),
	},
	{
		Action: Right, Keys: []string{"l", "right"}, Show: "l →", Help: "columns right, that do not fit; unfold",
		Group: GroupMove, Scopes: with(Sided),
	},
	{
		Action: FoldAll, Keys: []string{"0"}, Show: "0", Short: "fold", Help: "fold all, or unfold all",
		Group: GroupMove, Scopes: with(Folds), Rank: 8,
	},
}

var below = []Binding{
	{
		Action: Open, Keys: []string{"enter"}, Show: "enter", Short: "open", Help: "open the row", Group: GroupRows,
		Scopes: with(Opens), Rank: 1,
	},
	{
		Action: Mark, Keys: []string{" "}, Show: "space", Help: "mark the row, or take its mark away",
		Group: GroupRows, Scopes: with(Marks),
	},
	{
		Action: MarkRange, Keys: []string{"V"}, Show: "V", Help: "mark from the last mark to here", Group: GroupRows,
		Scopes: with(Marks),
	},
	{
		Action: MarkAll, Keys: []string{"*"}, Show: "*", Help: "mark all that the filter matches now",
		Group: GroupRows, Scopes: with(Marks),
	},
	{
		Action: Unmark, Keys: []string{"\\"}, Show: "\\", Help: "take all marks away", Group: GroupRows,
		Scopes: with(Marks),
	},
	{
		Action: Back, Keys: []string{"esc"}, Show: "esc", Short: "up", Help: "go up: close, clear the filter, go back",
		Group: GroupRows, Scopes: []Scope{Everywhere}, Rank: 10,
	},
	{
		Action: Sort, Keys: []string{"s"}, Show: "s", Short: "sort", Help: "sort; again reverses", Group: GroupRows,
		Scopes: with(Sorts), Rank: 4,
	},
	{
		Action: Problems, Keys: []string{"z"}, Show: "z", Short: "problems", Help: "problems only", Group: GroupRows,
		Scopes: with(Troubles), Rank: 5,
	},
	{
		Action: GroupBy, Keys: []string{"a"}, Show: "a", Help: "group by another combination", Group: GroupRows,
		Scopes: with(HasDeadLetters),
	},
	{Action: Columns, Keys: []string{"c"}, Show: "c", Help: "choose columns", Group: GroupRows, Scopes: with(Tabled)},
	{
		Action: Preview, Keys: []string{"v"}, Show: "v", Short: "preview", Help: "preview on or off", Group: GroupRows,
		Scopes: with(Previews), Rank: 9,
	},

	{
		Action: Why, Keys: []string{"W"}, Show: "W", Short: "why", Help: "why it waits, in full; again closes",
		Group: GroupRows, Scopes: with(Whys), Rank: 4,
	},

	{
		Action: Acknowledge, Keys: []string{"i"}, Show: "i", Short: "ack",
		Help: "acknowledge in this session; again takes it back", Group: GroupRows, Scopes: with(Quiets), Rank: 2,
	},
	{
		Action: Mute, Keys: []string{"m"}, Show: "m", Short: "mute",
		Help: "mute for 15 minutes in this session; again takes it back", Group: GroupRows, Scopes: with(Quiets),
		Rank: 3,
	},
	{
		Action: Filter, Keys: []string{"/"}, Show: "/", Short: "filter", Help: "filter; in details search",
		Group: GroupView, Scopes: with(Filters), Rank: 3,
	},
	{
		Action: Bookmarks, Keys: []string{"'"}, Show: "'", Help: "open a bookmark by its letter", Group: GroupView,
		Scopes: []Scope{Everywhere},
	},
	{
		Action: Freeze, Keys: []string{"p"}, Show: "p", Short: "freeze",
		Help: "freeze what is shown, and thaw it; whether the servers are up is still watched", Group: GroupView,
		Scopes: []Scope{Everywhere}, Rank: 6,
	},
	{
		Action: Refresh, Keys: []string{"r"}, Show: "r", Short: "refresh", Help: "refresh now", Group: GroupView,
		Scopes: []Scope{Everywhere}, Rank: 7,
	},
	{
		Action: Slower, Keys: []string{"+", "="}, Show: "+", Help: "poll less often", Group: GroupView,
		Scopes: []Scope{Everywhere},
	},
	{
		Action: Faster, Keys: []string{"-"}, Show: "-", Help: "poll more often", Group: GroupView,
		Scopes: []Scope{Everywhere},
	},
	{Action: Theme, Keys: []string{"t"}, Show: "t", Help: "next theme", Group: GroupView, Scopes: []Scope{Everywhere}},
	{
		Action: Hints, Keys: []string{"b"}, Show: "b", Help: "basics: hints about the open view, or none any more",
		Group: GroupView, Scopes: []Scope{Everywhere},
	},
	{
		Action: Help, Keys: []string{"?"}, Show: "?", Short: "help", Help: "keys that work here", Group: GroupView,
		Scopes: []Scope{Everywhere}, Rank: 99,
	},
	{
		Action: Quit, Keys: []string{"q"}, Show: "q", Short: "quit", Help: "go up; quit at a numbered view",
		Group: GroupView, Scopes: []Scope{Everywhere}, Rank: 12,
	},
	{
		Action: Redraw, Keys: []string{"ctrl+l"}, Show: "^l", Group: GroupView, Scopes: []Scope{Everywhere},
		Help: "draw the screen again",
	},
	{
		Action: Abort, Keys: []string{"ctrl+c"}, Show: "^c", Help: "quit at once", Group: GroupView,
		Scopes: []Scope{Everywhere},
	},

	{
		Action: Act, Keys: []string{"A"}, Show: "A", Short: "act", Help: "act on the row, with plan and question",
		Group: GroupActs, Scopes: with(Acts), Rank: 2, Acts: true,
	},
	{
		Action: Requeue, Keys: []string{"R"}, Show: "R", Short: "requeue", Help: "requeue the dead letter, with plan",
		Group: GroupActs, Scopes: with(HasDeadLetters), Rank: 3, Acts: true,
	},
	{
		Action: Requeue, Keys: []string{"R"}, Show: "R", Short: "retry", Help: "retry the execution, with plan",
		Group: GroupActs, Scopes: with(Retries), Rank: 3, Acts: true,
	},
	{
		Action: Discard, Keys: []string{"D"}, Show: "D", Help: "discard the dead letter, with plan and question",
		Group: GroupActs, Scopes: with(HasDeadLetters), Acts: true,
	},
	{
		Action: Purge, Keys: []string{"P"}, Show: "P", Help: "discard all that wait and match, with plan",
		Group: GroupActs, Scopes: with(HasDeadLetters), Acts: true,
	},
	{
		Action: MoveTo, Keys: []string{"M"}, Show: "M",
		Help: "send dead letters to another exchange or queue, with plan", Group: GroupActs,
		Scopes: with(HasDeadLetters), Acts: true,
	},
	{
		Action: Undo, Keys: []string{"u"}, Show: "u", Help: "take back what was discarded, taken or moved last, with plan",
		Group: GroupActs, Scopes: []Scope{Everywhere}, Acts: true,
	},
	{
		Action: Take, Keys: []string{"S"}, Show: "S", Short: "take",
		Help: "take messages from the broker into the ledger, with plan", Group: GroupActs,
		Scopes: with(HasDeadLetters), Rank: 6, Acts: true,
	},
	{
		Action: Log, Keys: []string{"L"}, Show: "L", Short: "log", Help: "what was done, here and by others",
		Group: GroupActs, Scopes: []Scope{Everywhere}, Rank: 13,
	},
}

// In reports whether the binding works in the scope.
func (b Binding) In(scope Scope) bool {
	return slices.Contains(b.Scopes, Everywhere) || slices.Contains(b.Scopes, scope)
}
