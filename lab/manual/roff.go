package manual

import (
	"fmt"
	"strings"

	"github.com/attune-go/attune/tui/keymap"
)

// Keys writes the key map for man, with a section for each group.
func Keys() string {
	var b strings.Builder
	for _, group := range keymap.Groups {
		b.WriteString(keyGroup(group, group, keymap.Table))
	}
	b.WriteString(keyGroup("DIALOGS", keymap.GroupDialog, keymap.Dialogs))
	return b.String()
}

// keyGroup is empty if the group has no keys.
func keyGroup(title, group string, table []keymap.Binding) string {
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
