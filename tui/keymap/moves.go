package keymap

// The actions that lead from one thing to another and look closely at it.
const (
	FoldAll   Action = "fold-all"
	Wrap      Action = "wrap"
	NextMatch Action = "next-match"
	PrevMatch Action = "previous-match"
	Reveal    Action = "reveal"
)
