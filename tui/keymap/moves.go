package keymap

// The actions that lead from one thing to another and look closely at it.
const (
	Command   Action = "command"
	Earlier   Action = "earlier"
	Later     Action = "later"
	FoldAll   Action = "fold-all"
	Wrap      Action = "wrap"
	NextMatch Action = "next-match"
	PrevMatch Action = "previous-match"
	Reveal    Action = "reveal"
)

// moves are their keys.
var moves = []Binding{
	{Earlier, []string{"["}, "[", "", "the view before, as it was", GroupMove, []Scope{Everywhere}, 0, false},
	{Later, []string{"]"}, "]", "", "the view after it again", GroupMove, []Scope{Everywhere}, 0, false},
	{Command, []string{":"}, ":", "", "commands, with completion", GroupView, []Scope{Everywhere}, 0, false},
}
