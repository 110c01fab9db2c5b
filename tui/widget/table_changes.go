package widget

import (
	"strings"

	"github.com/attune-go/attune/tui/theme"
)

// changes are the texts of the watched cells that were drawn, so that what a poll has
// changed is underlined until the next. Only rows that were on the screen are known: of
// the others nobody would see a difference.
type changes struct {
	// before are the texts from before the rows were replaced last, drawn those since;
	// both by the key of the row, with a text for each watched column.
	before, drawn map[string][]string
}

// next begins anew with what was drawn. Rows that were replaced before anybody has
// seen them are no change.
func (c *changes) next() {
	if len(c.drawn) > 0 {
		c.before, c.drawn = c.drawn, nil
	}
}

// note remembers the watched cells of a row that is drawn.
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

// changed reports whether the nth watched cell of a row reads differently from before.
func (c *changes) changed(key string, nth int, text string) bool {
	before, ok := c.before[key]
	return ok && nth < len(before) && before[nth] != text
}

// underlined underlines a cell's text and not the room around it.
func underlined(text string, th *theme.Theme) string {
	on, off := th.Underline()
	bare := strings.Trim(text, " ")
	if on == "" || bare == "" {
		return text
	}
	at := strings.Index(text, bare)
	return text[:at] + on + bare + off + text[at+len(bare):]
}
