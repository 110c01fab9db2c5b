package keymap

// The scopes of dialogs, in their order.
const (
	InMenu     Scope = "menu"
	InForm     Scope = "form"
	InPlanning Scope = "planning"
	InConfirm  Scope = "confirm"
	InTyping   Scope = "typing" // a text field of the question has the focus
	InRunning  Scope = "running"
	InFailed   Scope = "failed"
	InColumns  Scope = "columns"
	InHelp     Scope = "help"
	InRelated  Scope = "related"
	InExport   Scope = "carry"
)

// DialogScopes lists the scopes of dialogs.
var DialogScopes = []Scope{
	InMenu, InForm, InPlanning, InConfirm, InTyping, InRunning, InFailed, InColumns, InHelp,
	InRelated, InExport,
}

// GroupDialog is the group of the keys of dialogs.
const GroupDialog = "DIALOG"

// Dialogs are the keys of dialogs. Enter alone never confirms: it presses the button in focus, at first the cancel
// button.
var Dialogs = []Binding{
	{
		Action: RowDown, Keys: []string{"j", "down"}, Show: "j ↓", Help: "next line", Group: GroupDialog,
		Scopes: []Scope{InMenu, InColumns, InRelated},
	},
	{
		Action: RowUp, Keys: []string{"k", "up"}, Show: "k ↑", Help: "line before", Group: GroupDialog,
		Scopes: []Scope{InMenu, InColumns, InRelated},
	},
	{
		Action: RowDown, Keys: []string{"down", "tab"}, Show: "↓", Help: "next line", Group: GroupDialog,
		Scopes: []Scope{InExport},
	},
	{
		Action: RowUp, Keys: []string{"up", "shift+tab"}, Show: "↑", Help: "line before", Group: GroupDialog,
		Scopes: []Scope{InExport},
	},
	{
		Action: Choose, Keys: []string{" "}, Show: "space", Short: "on or off", Help: "turn the column on or off",
		Group: GroupDialog, Scopes: []Scope{InColumns}, Rank: 1,
	},
	{
		Action: Yes, Keys: []string{"a"}, Show: "a", Short: "all", Help: "turn all columns on", Group: GroupDialog,
		Scopes: []Scope{InColumns}, Rank: 2,
	},
	{
		Action: Back, Keys: []string{"esc"}, Show: "esc", Short: "close", Help: "turn to nothing", Group: GroupDialog,
		Scopes: []Scope{InRelated}, Rank: 10,
	},
	{
		Action: Back, Keys: []string{"esc", "q", "enter", "c"}, Show: "esc enter", Short: "close",
		Help: "close the columns", Group: GroupDialog, Scopes: []Scope{InColumns}, Rank: 10,
	},
	{
		Action: Back, Keys: []string{"esc", "q"}, Show: "esc", Short: "close", Help: "copy or write nothing",
		Group: GroupDialog, Scopes: []Scope{InExport}, Rank: 10,
	},
	{
		Action: Choose, Keys: []string{"enter"}, Show: "enter", Short: "choose",
		Help: "choose; its letter does the same", Group: GroupDialog, Scopes: []Scope{InMenu, InRelated, InExport},
		Rank: 1,
	},
	{
		Action: Choose, Keys: []string{"enter"}, Show: "enter", Short: "go on", Help: "go on with what is written",
		Group: GroupDialog, Scopes: []Scope{InForm, InTyping}, Rank: 1,
	},
	{
		Action: Choose, Keys: []string{"enter"}, Show: "enter", Short: "press the button",
		Help: "press the button in focus", Group: GroupDialog, Scopes: []Scope{InConfirm}, Rank: 2,
	},
	{
		Action: Yes, Keys: []string{"y"}, Show: "y", Short: "run it", Help: "run the plan, where no word is asked for",
		Group: GroupDialog, Scopes: []Scope{InConfirm}, Rank: 1,
	},
	{
		Action: NextPane, Keys: []string{"tab", "down"}, Show: "tab", Short: "next field", Help: "next field",
		Group: GroupDialog, Scopes: []Scope{InForm}, Rank: 3,
	},
	{
		Action: NextPane, Keys: []string{"tab", "down"}, Show: "tab", Short: "reason, buttons",
		Help: "next field or button", Group: GroupDialog, Scopes: []Scope{InConfirm, InTyping}, Rank: 3,
	},
	{
		Action: PrevPane, Keys: []string{"shift+tab", "up"}, Show: "⇧tab", Help: "field or button before",
		Group: GroupDialog, Scopes: []Scope{InForm, InConfirm, InTyping},
	},
	{
		Action: Left, Keys: []string{"left"}, Show: "←", Help: "button before", Group: GroupDialog,
		Scopes: []Scope{InConfirm},
	},
	{
		Action: Right, Keys: []string{"right"}, Show: "→", Help: "next button", Group: GroupDialog,
		Scopes: []Scope{InConfirm},
	},
	{
		Action: HalfDown, Keys: []string{"pgdown", "ctrl+d"}, Show: "^d pgdn", Help: "plan: further down",
		Group: GroupDialog, Scopes: []Scope{InConfirm, InTyping},
	},
	{
		Action: HalfUp, Keys: []string{"pgup", "ctrl+u"}, Show: "^u pgup", Help: "plan: further up",
		Group: GroupDialog, Scopes: []Scope{InConfirm, InTyping},
	},
	{
		Action: Refresh, Keys: []string{"r"}, Show: "r", Short: "plan again", Help: "plan again on newer facts",
		Group: GroupDialog, Scopes: []Scope{InConfirm, InFailed}, Rank: 4,
	},
	{
		Action: Stop, Keys: []string{"x"}, Show: "x", Short: "stop after this step",
		Help: "stop after the step under way; what is done stays", Group: GroupDialog, Scopes: []Scope{InRunning},
		Rank: 2,
	},
	{
		Action: Hide, Keys: []string{"esc", "q", "enter"}, Show: "esc", Short: "go on in the background",
		Help: "leave it running; it reports when it ends", Group: GroupDialog, Scopes: []Scope{InRunning}, Rank: 1,
	},
	{
		Action: Export, Keys: []string{"e"}, Show: "e", Short: "export first", Help: "write the plan to a file",
		Group: GroupDialog, Scopes: []Scope{InConfirm}, Rank: 5,
	},
	{
		Action: Yank, Keys: []string{"c"}, Show: "c", Short: "copy command",
		Help: "copy the command that does the same", Group: GroupDialog, Scopes: []Scope{InConfirm}, Rank: 6,
	},
	{
		Action: No, Keys: []string{"n"}, Show: "n", Help: "leave it; nothing is done", Group: GroupDialog,
		Scopes: []Scope{InConfirm},
	},
	{
		Action: Back, Keys: []string{"esc", "q"}, Show: "esc", Short: "close", Help: "leave it; nothing is done",
		Group: GroupDialog, Scopes: []Scope{InMenu}, Rank: 10,
	},
	{
		Action: Back, Keys: []string{"esc", "q"}, Show: "esc", Short: "back",
		Help: "back to the form, or leave it; nothing is done", Group: GroupDialog,
		Scopes: []Scope{InPlanning, InConfirm, InFailed}, Rank: 10,
	},
	{
		Action: Back, Keys: []string{"esc"}, Show: "esc", Short: "back",
		Help: "back to the form, or leave it; nothing is done", Group: GroupDialog, Scopes: []Scope{InTyping},
		Rank: 10,
	},
	{
		Action: Back, Keys: []string{"esc"}, Show: "esc", Short: "back", Help: "back to the menu", Group: GroupDialog,
		Scopes: []Scope{InForm}, Rank: 10,
	},
	{
		Action: Filter, Keys: []string{"/"}, Show: "/", Short: "search keys",
		Help: "search the keys of all views; every letter narrows", Group: GroupDialog, Scopes: []Scope{InHelp},
		Rank: 1,
	},
	{
		Action: RowDown, Keys: []string{"j", "down"}, Show: "j/k", Short: "scroll", Help: "scroll down",
		Group: GroupDialog, Scopes: []Scope{InHelp}, Rank: 2,
	},
	{
		Action: RowUp, Keys: []string{"k", "up"}, Show: "k ↑", Help: "scroll up", Group: GroupDialog,
		Scopes: []Scope{InHelp},
	},
	{
		Action: HalfDown, Keys: []string{"pgdown", "ctrl+d"}, Show: "^d pgdn", Help: "scroll down by ten",
		Group: GroupDialog, Scopes: []Scope{InHelp},
	},
	{
		Action: HalfUp, Keys: []string{"pgup", "ctrl+u"}, Show: "^u pgup", Help: "scroll up by ten",
		Group: GroupDialog, Scopes: []Scope{InHelp},
	},
	{
		Action: Top, Keys: []string{"gg", "home"}, Show: "gg home", Help: "top", Group: GroupDialog,
		Scopes: []Scope{InHelp},
	},
	{
		Action: Back, Keys: []string{"esc", "q", "?"}, Show: "? or esc", Short: "close",
		Help: "close the help; first the search", Group: GroupDialog, Scopes: []Scope{InHelp}, Rank: 10,
	},
}
