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
var DialogScopes = []Scope{InMenu, InForm, InPlanning, InConfirm, InTyping, InRunning, InFailed, InColumns, InHelp,
	InRelated, InExport}

// GroupDialog is the group of the keys of dialogs.
const GroupDialog = "DIALOG"

// Dialogs are the keys of dialogs. Enter alone never confirms: it presses the button in focus, at first the cancel
// button.
var Dialogs = []Binding{
	{RowDown, []string{"j", "down"}, "j ↓", "", "next line", GroupDialog, []Scope{InMenu, InColumns, InRelated}, 0,
		false},
	{RowUp, []string{"k", "up"}, "k ↑", "", "line before", GroupDialog, []Scope{InMenu, InColumns, InRelated}, 0,
		false},
	{RowDown, []string{"down", "tab"}, "↓", "", "next line", GroupDialog, []Scope{InExport}, 0, false},
	{RowUp, []string{"up", "shift+tab"}, "↑", "", "line before", GroupDialog, []Scope{InExport}, 0, false},
	{Choose, []string{" "}, "space", "on or off", "turn the column on or off", GroupDialog, []Scope{InColumns}, 1,
		false},
	{Yes, []string{"a"}, "a", "all", "turn all columns on", GroupDialog, []Scope{InColumns}, 2, false},
	{Back, []string{"esc"}, "esc", "close", "turn to nothing", GroupDialog, []Scope{InRelated}, 10, false},
	{Back, []string{"esc", "q", "enter", "c"}, "esc enter", "close", "close the columns", GroupDialog,
		[]Scope{InColumns}, 10, false},
	{Back, []string{"esc", "q"}, "esc", "close", "copy or write nothing", GroupDialog, []Scope{InExport}, 10, false},
	{Choose, []string{"enter"}, "enter", "choose", "choose; its letter does the same", GroupDialog,
		[]Scope{InMenu, InRelated, InExport}, 1, false},
	{Choose, []string{"enter"}, "enter", "go on", "go on with what is written", GroupDialog, []Scope{InForm, InTyping},
		1, false},
	{Choose, []string{"enter"}, "enter", "press the button", "press the button in focus", GroupDialog,
		[]Scope{InConfirm}, 2, false},
	{Yes, []string{"y"}, "y", "run it", "run the plan, where no word is asked for", GroupDialog, []Scope{InConfirm}, 1,
		false},
	{NextPane, []string{"tab", "down"}, "tab", "next field", "next field", GroupDialog, []Scope{InForm}, 3, false},
	{NextPane, []string{"tab", "down"}, "tab", "reason, buttons", "next field or button", GroupDialog,
		[]Scope{InConfirm, InTyping}, 3, false},
	{PrevPane, []string{"shift+tab", "up"}, "⇧tab", "", "field or button before", GroupDialog,
		[]Scope{InForm, InConfirm, InTyping}, 0, false},
	{Left, []string{"left"}, "←", "", "button before", GroupDialog, []Scope{InConfirm}, 0, false},
	{Right, []string{"right"}, "→", "", "next button", GroupDialog, []Scope{InConfirm}, 0, false},
	{HalfDown, []string{"pgdown", "ctrl+d"}, "^d pgdn", "", "plan: further down", GroupDialog,
		[]Scope{InConfirm, InTyping}, 0, false},
	{HalfUp, []string{"pgup", "ctrl+u"}, "^u pgup", "", "plan: further up", GroupDialog, []Scope{InConfirm, InTyping},
		0, false},
	{Refresh, []string{"r"}, "r", "plan again", "plan again on newer facts", GroupDialog, []Scope{InConfirm, InFailed},
		4, false},
	{Stop, []string{"x"}, "x", "stop after this step", "stop after the step under way; what is done stays", GroupDialog,
		[]Scope{InRunning}, 2, false},
	{Hide, []string{"esc", "q", "enter"}, "esc", "go on in the background", "leave it running; it reports when it ends",
		GroupDialog, []Scope{InRunning}, 1, false},
	{Export, []string{"e"}, "e", "export first", "write the plan to a file", GroupDialog, []Scope{InConfirm}, 5, false},
	{Yank, []string{"c"}, "c", "copy command", "copy the command that does the same", GroupDialog, []Scope{InConfirm},
		6, false},
	{No, []string{"n"}, "n", "", "leave it; nothing is done", GroupDialog, []Scope{InConfirm}, 0, false},
	{Back, []string{"esc", "q"}, "esc", "close", "leave it; nothing is done", GroupDialog, []Scope{InMenu}, 10, false},
	{Back, []string{"esc", "q"}, "esc", "back", "back to the form, or leave it; nothing is done", GroupDialog,
		[]Scope{InPlanning, InConfirm, InFailed}, 10, false},
	{Back, []string{"esc"}, "esc", "back", "back to the form, or leave it; nothing is done", GroupDialog,
		[]Scope{InTyping}, 10, false},
	{Back, []string{"esc"}, "esc", "back", "back to the menu", GroupDialog, []Scope{InForm}, 10, false},
	{Filter, []string{"/"}, "/", "search keys", "search the keys of all views; every letter narrows", GroupDialog,
		[]Scope{InHelp}, 1, false},
	{RowDown, []string{"j", "down"}, "j/k", "scroll", "scroll down", GroupDialog, []Scope{InHelp}, 2, false},
	{RowUp, []string{"k", "up"}, "k ↑", "", "scroll up", GroupDialog, []Scope{InHelp}, 0, false},
	{HalfDown, []string{"pgdown", "ctrl+d"}, "^d pgdn", "", "scroll down by ten", GroupDialog, []Scope{InHelp}, 0,
		false},
	{HalfUp, []string{"pgup", "ctrl+u"}, "^u pgup", "", "scroll up by ten", GroupDialog, []Scope{InHelp}, 0, false},
	{Top, []string{"gg", "home"}, "gg home", "", "top", GroupDialog, []Scope{InHelp}, 0, false},
	{Back, []string{"esc", "q", "?"}, "? or esc", "close", "close the help; first the search", GroupDialog,
		[]Scope{InHelp}, 10, false},
}
