package keymap

import (
	"slices"
	"strings"
)

// Manual writes the key map as a table of the manual page.
func Manual() string {
	var b strings.Builder
	b.WriteString("| Keys | Where | Meaning |\n|---|---|---|\n")
	for _, binding := range BuiltIn.All() {
		b.WriteString("| `" + binding.Show + "` | " + binding.Where() + " | " + binding.Help + " |\n")
	}
	return b.String()
}

// Where lists the scopes of a binding.
func (b Binding) Where() string {
	if slices.Contains(b.Scopes, Everywhere) {
		return "everywhere"
	}
	names := make([]string, len(b.Scopes))
	for i, s := range b.Scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
