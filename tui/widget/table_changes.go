package widget

import (
	"strings"

	"github.com/attune-go/attune/tui/theme"
)

// changes remembers the watched cells of visible rows, to underline the changes of the last poll.
type changes struct {
	// before are the texts before the last SetRows, drawn those after it, both by the key of the row.
	before, drawn map[string][]string
}

// next starts a new comparison. Rows that were replaced before they were visible are no change.
func (c *changes) next() {
	if len(c.drawn) > 0 {
		c.before, c.drawn = c.drawn, nil
	}
}

// note remembers the watched cells of a visible row.
func (c *changes) note(key string, columns []Column, cells []Cell) {
	texts, at := c.drawn[key], 0
	for i := range columns {
		if !columns[i].Watch || i >= len(cells) {
			continue
		}
		if at >= len(texts) {
			texts = append(texts, cells[i].Text)
		} else if texts[at] != cells[i].Text {
			texts[at] = cells[i].Text
		}
		at++
	}
	if at == 0 {
		return
	}
	if c.drawn == nil {
		c.drawn = map[string][]string{}
	}
	c.drawn[key] = texts[:at]
}

// changed reports whether the nth watched cell of a row differs from before.
func (c *changes) changed(key string, nth int, text string) bool {
	before, ok := c.before[key]
	return ok && nth < len(before) && before[nth] != text
}

// underlined underlines the text of a cell without its padding.
func underlined(text string, th *theme.Theme) string {
	on, off := th.Underline()
	bare := strings.Trim(text, " ")
	if on == "" || bare == "" {
		return text
	}
	at := strings.Index(text, bare)
	return text[:at] + on + bare + off + text[at+len(bare):]
}
