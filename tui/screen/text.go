package screen

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Paint paints text in a role of the current theme.
func (e *Env) Paint(role theme.Role, text string) string { return e.Theme.Paint(role, text) }

// Dim paints secondary text.
func (e *Env) Dim(text string) string { return e.Paint(theme.Dim, text) }

// Look is the sign of a state and a text, in the colour of the state.
func (e *Env) Look(look theme.State, text string) string { return e.Paint(look.Role, look.Glyph+text) }

// Head is the title of a block, with the mark of its feed.
func (e *Env) Head(feed Feed, text string) string { return e.PaneHead(false, feed, text) }

// PaneHead is the title of a block, in colour while the block has the focus.
func (e *Env) PaneHead(focused bool, feed Feed, text string) string {
	if mark := e.Mark(feed); mark != "" {
		text += " " + mark
	}
	return e.Paint(Lit(focused), text)
}

// Num writes a number with groups of three digits.
func (e *Env) Num(n int64) string { return widget.Number(n, e.Theme.Glyphs.Space) }

// Plural is a number with its noun.
func (e *Env) Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return e.Num(n) + " " + many
}

// Consumers is the number of consumers of a broker queue, or that it is unknown.
func (e *Env) Consumers(q *monitor.BrokerQueue) string {
	if q.Uncounted {
		return widget.Unknown + " consumers"
	}
	return e.Plural(q.Consumers, "consumer", "consumers")
}

// Count writes a count, with a plus if it stopped at a bound.
func (e *Env) Count(c monitor.Count) string {
	if c.AtLeast {
		return e.Num(c.Value) + "+"
	}
	return e.Num(c.Value)
}

// BrokerNum writes a number of a broker queue, or that it is unknown.
func (e *Env) BrokerNum(q monitor.BrokerQueue, n int64) string {
	if q.Uncounted {
		return widget.Unknown
	}
	return e.Num(n)
}

// PerMinute writes a rate, or that it is unknown.
func (e *Env) PerMinute(name string) string {
	rate, ok := e.Data.History.PerMinute(name)
	if !ok {
		return widget.Unknown
	}
	return e.Num(int64(rate+0.5)) + "/m"
}

// Change writes a net change, or that it is unknown.
func (e *Env) Change(name string, age time.Duration) string {
	n, ok := e.Data.History.Change(name, age)
	if !ok {
		return widget.Unknown
	}
	return widget.Signed(n, e.Theme.Glyphs.Space)
}

// Spark draws the trend of a number over a time.
func (e *Env) Spark(name string, span time.Duration, w int) string {
	return widget.Spark(e.Data.History.Trend(name, span, w*e.Theme.Glyphs.PerCell()), w, &e.Theme.Glyphs)
}

// Points is how many values a chart shows in a number of cells, at least one.
func (e *Env) Points(cells int) int { return max(1, cells) * e.Theme.Glyphs.PerCell() }

// AgeHeat is the colour of an age, by its share of a limit.
func (e *Env) AgeHeat(at *time.Time, limit time.Duration) theme.Role {
	if at == nil || limit <= 0 {
		return theme.Plain
	}
	return theme.Heat(float64(e.Since(*at)) / float64(limit))
}

// State writes a state as glyph and name in its colour.
func (e *Env) State(name string) string { return e.Look(e.Theme.Of(name), " "+widget.Clean(name)) }

// StateCell is a state as the cell of a table.
func (e *Env) StateCell(name string) widget.Cell {
	s := e.Theme.Of(name)
	return widget.Cell{Text: s.Glyph + " " + name, Role: s.Role}
}

// SignCell is the sign of a state as the cell of a table.
func (e *Env) SignCell(name string) widget.Cell {
	s := e.Theme.Of(name)
	return widget.Cell{Text: s.Glyph, Role: s.Role}
}

// AgeOf writes the age of a database time, or a dash for nil.
func (e *Env) AgeOf(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return widget.Age(e.Since(*at))
}

// Slots writes taken and total slots.
func Slots(taken int64, limit *int64) string {
	return strconv.FormatInt(taken, 10) + "/" + Reference(limit)
}

// Missing explains in w cells why a feed has no data yet. An error is shown whole, because its cause
// stands at its end.
func (e *Env) Missing(feed Feed, what string, w int) []string {
	if f := e.Data.Fresh(feed); f.Err != nil {
		lines := []string{""}
		for _, line := range widget.Hang(" ✗ ", what+" cannot be read: "+widget.Clean(f.Err.Error()), w-1) {
			lines = append(lines, e.Paint(theme.Bad, line))
		}
		return append(lines, " The dashboard tries again; r tries at once.")
	}
	if e.Data.Fresh(feed).Connecting {
		return []string{"", " " + e.Dim("Connecting, to read "+what+" …")}
	}
	return []string{"", " " + e.Dim("Reading "+what+" …")}
}

// Rule is a dim line with a title, for example above a preview.
func (e *Env) Rule(left, right string, w int) string { return e.PaneRule(false, left, right, w) }

// PaneRule is the line with the title of a pane, in colour while the pane has the focus.
func (e *Env) PaneRule(focused bool, left, right string, w int) string {
	left = "─ " + widget.CutMiddle(widget.Clean(left), max(4, w/2)) + " "
	if right != "" {
		right = " " + widget.Clean(right) + " ─"
	}
	fill := w - widget.Width(left) - widget.Width(right)
	if fill < 0 {
		return e.Paint(Lit(focused), widget.Cut(left, w))
	}
	return e.Paint(Lit(focused), left+strings.Repeat("─", fill)+right)
}

// QueueName is the name of a queue in lists: its action, and its group as name=value instead of JSON.
func QueueName(q *monitor.Queue) string {
	decoder := json.NewDecoder(strings.NewReader(q.Group))
	decoder.UseNumber()
	var values map[string]any
	if q.Group == "" || decoder.Decode(&values) != nil {
		return q.Name()
	}
	parts := make([]string, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text, ok := values[key].(string)
		if !ok {
			raw, err := json.Marshal(values[key])
			if err != nil {
				return q.Name()
			}
			text = string(raw)
		}
		parts = append(parts, key+"="+text)
	}
	return q.ActionRef + " " + strings.Join(parts, ", ")
}

// TimeOfDay writes a time without its date.
func TimeOfDay(at time.Time) string { return at.UTC().Format("15:04:05") }
