package keymap

// The actions that lead to related things.
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

var moves = []Binding{
	{Earlier, []string{"["}, "[", "", "the view before, as it was", GroupMove, []Scope{Everywhere}, 0, false},
	{Later, []string{"]"}, "]", "", "the view after it again", GroupMove, []Scope{Everywhere}, 0, false},
	{Related, []string{"o"}, "o", "", "what it has to do with; then a letter", GroupRows, with(Relates), 0, false},
	{Xray, []string{"x"}, "x", "", "the tree that it is in", GroupRows, with(Treed), 0, false},
	{NextMatch, []string{"n"}, "n", "", "next match of the search", GroupMove, with(Searches), 0, false},
	{PrevMatch, []string{"N"}, "N", "", "match before", GroupMove, with(Searches), 0, false},
	{Wrap, []string{"w"}, "w", "", "break long lines, or cut them; in lists show a row whole", GroupView,
		with(Documents | Tabled), 0, false},
	{Reveal, []string{"U"}, "U", "", "show the secrets of the document, or mask them", GroupView, with(Documents), 0,
		false},
	{Yank, []string{"y"}, "y", "yank", "copy; then a letter", GroupRows, []Scope{Everywhere}, 12, false},
	{Export, []string{"e"}, "e", "export", "write to a file: what is marked, else all that matches", GroupRows,
		[]Scope{Everywhere}, 12, false},
	{Command, []string{":"}, ":", "", "commands, with completion", GroupView, []Scope{Everywhere}, 0, false},
}
