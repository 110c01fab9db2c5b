package keymap

import (
	"fmt"
	"slices"
	"strings"
)

// Roff writes the key map for man, with a section for each group.
func Roff() string {
	var b strings.Builder
	for _, group := range Groups {
		b.WriteString(roffGroup(group, group, Table))
	}
	b.WriteString(roffGroup("DIALOGS", GroupDialog, Dialogs))
	return b.String()
}

// roffGroup is empty if the group has no keys.
func roffGroup(title, group string, table []Binding) string {
	var text strings.Builder
	for _, b := range table {
		if b.Group == group {
			text.WriteString(".TP\n\\fB" + Escape(b.Show) + "\\fR\n" + Escape(b.Help+" ("+b.Where()+")") + "\n")
		}
	}
	if text.Len() == 0 {
		return ""
	}
	return ".SS " + title + "\n" + text.String()
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

var roffSigns = map[rune]string{'\\': `\e`, '-': `\-`, '\'': `\(aq`, '`': `\(ga`, '^': `\(ha`, '~': `\(ti`}

// Escape writes text so that man reads nothing in it as a command.
func Escape(text string) string {
	var b strings.Builder
	if strings.HasPrefix(text, ".") {
		b.WriteString(`\&`)
	}
	for _, r := range text {
		switch sign, special := roffSigns[r]; {
		case special:
			b.WriteString(sign)
		case r > 0x7e:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
