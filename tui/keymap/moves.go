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
	{
		Action: Earlier, Keys: []string{"["}, Show: "[", Help: "the view before, as it was", Group: GroupMove,
		Scopes: []Scope{Everywhere},
	},
	{
		Action: Later, Keys: []string{"]"}, Show: "]", Help: "the view after it again", Group: GroupMove,
		Scopes: []Scope{Everywhere},
	},
	{
		Action: Related, Keys: []string{"o"}, Show: "o", Help: "what it has to do with; then a letter",
		Group: GroupRows, Scopes: with(Relates),
	},
	{
		Action: Xray, Keys: []string{"x"}, Show: "x", Help: "the tree that it is in", Group: GroupRows,
		Scopes: with(Treed),
	},
	{
		Action: NextMatch, Keys: []string{"n"}, Show: "n", Help: "next match of the search", Group: GroupMove,
		Scopes: with(Searches),
	},
	{
		Action: PrevMatch, Keys: []string{"N"}, Show: "N", Help: "match before", Group: GroupMove,
		Scopes: with(Searches),
	},
	{
		Action: Wrap, Keys: []string{"w"}, Show: "w", Help: "break long lines, or cut them; in lists show a row whole",
		Group: GroupView, Scopes: with(Documents | Tabled),
	},
	{
		Action: Reveal, Keys: []string{"U"}, Show: "U", Help: "show the secrets of the document, or mask them",
		Group: GroupView, Scopes: with(Documents),
	},
	{
		Action: Yank, Keys: []string{"y"}, Show: "y", Short: "yank", Help: "copy; then a letter", Group: GroupRows,
		Scopes: []Scope{Everywhere}, Rank: 12,
	},
	{
		Action: Export, Keys: []string{"e"}, Show: "e", Short: "export",
		Help: "write to a file: what is marked, else all that matches", Group: GroupRows, Scopes: []Scope{Everywhere},
		Rank: 12,
	},
	{
		Action: Command, Keys: []string{":"}, Show: ":", Help: "commands, with completion", Group: GroupView,
		Scopes: []Scope{Everywhere},
	},
}
