package keymap

import "slices"

// The actions that lead from one thing to another and look closely at it.
const (
	Command   Action = "command"
	Earlier   Action = "earlier"
	Later     Action = "later"
	Related   Action = "related"
	Xray      Action = "xray"
	FoldAll   Action = "fold-all"
	Wrap      Action = "wrap"
	NextMatch Action = "next-match"
	PrevMatch Action = "previous-match"
	Reveal    Action = "reveal"
	Yank      Action = "yank"
	Export    Action = "export"
)

// documentScopes are the views that show a document.
var documentScopes = []Scope{InExecution, InLetter}

// searchScopes are those that are searched and not filtered.
var searchScopes = append([]Scope{InQueue, InWorker}, documentScopes...)

// rowScopes are the views whose row, or what they show, has to do with others.
var rowScopes = []Scope{InQueues, InQueue, InExecutions, InExecution, InWorkers, InWorker, InXray, InAlerts, InDeadLetters, InLetter, InWorkflows, InInquiries, InBroker}

// xrayScopes are the views whose row may stand in a tree of executions.
var xrayScopes = []Scope{InOverview, InQueue, InExecutions, InExecution, InWorker, InDeadLetters, InLetter, InWorkflows, InAlerts, InInquiries}

// moves are their keys.
var moves = []Binding{
	{Earlier, []string{"["}, "[", "", "the view before, as it was", GroupMove, []Scope{Everywhere}, 0, false},
	{Later, []string{"]"}, "]", "", "the view after it again", GroupMove, []Scope{Everywhere}, 0, false},
	{Related, []string{"o"}, "o", "", "what it has to do with; then a letter", GroupRows, rowScopes, 0, false},
	{Xray, []string{"x"}, "x", "", "the tree that it is in", GroupRows, xrayScopes, 0, false},
	{NextMatch, []string{"n"}, "n", "", "next match of the search", GroupMove, searchScopes, 0, false},
	{PrevMatch, []string{"N"}, "N", "", "match before", GroupMove, searchScopes, 0, false},
	{Wrap, []string{"w"}, "w", "", "break long lines, or cut them; in lists show a row whole", GroupView, slices.Concat(documentScopes, tableScopes), 0, false},
	{Reveal, []string{"U"}, "U", "", "show the secrets of the document, or mask them", GroupView, documentScopes, 0, false},
	{Yank, []string{"y"}, "y", "yank", "copy; then a letter", GroupRows, []Scope{Everywhere}, 12, false},
	{Export, []string{"e"}, "e", "export", "write to a file: what is marked, else all that matches", GroupRows, []Scope{Everywhere}, 12, false},
	{Command, []string{":"}, ":", "", "commands, with completion", GroupView, []Scope{Everywhere}, 0, false},
}
