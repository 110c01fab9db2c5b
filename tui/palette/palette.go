// Package palette is the input line of commands: it completes commands and arguments, suggests similar names, and
// keeps the history of the session. It runs no command.
package palette

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Entry is a command.
type Entry struct {
	// Aliases are other names.
	Name    string
	Aliases []string
	// Arg names the argument in texts, in brackets if it is optional; empty for none.
	Arg string
	// Key is the key with the same effect, if any.
	Key string
	// Help is one line.
	Help string
	// Args lists known arguments; nil for none.
	Args func() []string
}

// Outcome is the effect of a key.
type Outcome int

// The outcomes.
const (
	Typing Outcome = iota
	Closed
	Entered
)

const (
	maxHistory = 100
	maxTyped   = 500
)

// Palette is the input line with its completions.
type Palette struct {
	entries []Entry
	input   *widget.Input
	// stem is the text before tab completed it; offers belong to it. chosen is the inserted offer, -1 for none.
	stem   string
	offers []offer
	chosen int
	// history is the list of entered lines, oldest first. at is the line that is shown, draft the text before that.
	history []string
	at      int
	draft   string
}

// offer is a completion.
type offer struct {
	text  string
	entry *Entry
}

// New makes a closed palette.
func New() *Palette { return &Palette{input: widget.NewInput("", maxTyped)} }

// Open starts a line with the present commands.
func (p *Palette) Open(entries []Entry, text string) {
	p.entries = entries
	p.at, p.draft = len(p.history), ""
	p.put(text)
}

// put sets the line and updates its offers.
func (p *Palette) put(text string) {
	p.input = widget.NewInput(text, maxTyped)
	p.typed()
}

func (p *Palette) typed() {
	p.stem, p.chosen = p.input.Value(), -1
	p.offers = p.offer(p.stem)
}

// Value is the typed line.
func (p *Palette) Value() string { return strings.TrimSpace(p.input.Value()) }

// Key takes a key.
func (p *Palette) Key(msg tea.KeyMsg) Outcome {
	switch msg.String() {
	case "esc", "ctrl+c":
		return Closed
	case "backspace", "ctrl+h":
		if p.input.Value() == "" {
			return Closed
		}
	case "enter":
		line := p.Value()
		if line == "" {
			return Closed
		}
		if n := len(p.history); n == 0 || p.history[n-1] != line {
			p.history = append(p.history, line)
		}
		p.history = p.history[max(0, len(p.history)-maxHistory):]
		return Entered
	case "tab", "down":
		p.complete(1)
		return Typing
	case "shift+tab", "up":
		p.complete(-1)
		return Typing
	case "ctrl+p":
		p.recall(-1)
		return Typing
	case "ctrl+n":
		p.recall(1)
		return Typing
	}
	p.input.Update(msg)
	p.typed()
	return Typing
}

// complete inserts the next offer.
func (p *Palette) complete(n int) {
	if len(p.offers) == 0 {
		return
	}
	if p.chosen < 0 && n < 0 {
		p.chosen = 0
	}
	p.chosen = (p.chosen + n + len(p.offers)) % len(p.offers)
	text := p.offers[p.chosen].text
	p.input = widget.NewInput(text, maxTyped)
	if len(p.offers) == 1 { // a single offer is complete: offer its arguments
		p.typed()
	}
}

// recall inserts an earlier line.
func (p *Palette) recall(n int) {
	to := p.at + n
	if to < 0 || to > len(p.history) {
		return
	}
	if p.at == len(p.history) {
		p.draft = p.input.Value()
	}
	p.at = to
	if to == len(p.history) {
		p.put(p.draft)
		return
	}
	p.put(p.history[to])
}

// offer lists the completions: commands, or arguments after a command.
func (p *Palette) offer(line string) []offer {
	line = strings.TrimLeft(line, " :")
	name, arg, hasArg := strings.Cut(line, " ")
	if !hasArg {
		return p.commands(name)
	}
	e := p.named(name)
	if e == nil || e.Args == nil {
		return nil
	}
	var out []offer
	for _, known := range rank(strings.TrimLeft(arg, " "), e.Args()) {
		out = append(out, offer{name + " " + known, e})
	}
	return out
}

func (p *Palette) commands(name string) []offer {
	type scored struct {
		offer
		score int
	}
	var found []scored
	for i := range p.entries {
		e := &p.entries[i]
		best := -1
		for _, word := range append([]string{e.Name}, e.Aliases...) {
			best = max(best, match(name, word))
		}
		if best < 0 && len(name) > 2 && strings.Contains(strings.ToLower(e.Help), strings.ToLower(name)) {
			best = 0 // the last ones
		}
		if best >= 0 {
			text := e.Name
			if e.Arg != "" {
				text += " "
			}
			found = append(found, scored{offer{text, e}, best})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return b.score - a.score })
	out := make([]offer, len(found))
	for i := range found {
		out[i] = found[i].offer
	}
	return out
}

// named finds a command by its name, alias or unique prefix.
func (p *Palette) named(name string) *Entry {
	for i := range p.entries {
		if e := &p.entries[i]; e.Name == name || slices.Contains(e.Aliases, name) {
			return e
		}
	}
	var only *Entry
	for i := range p.entries {
		if name != "" && strings.HasPrefix(p.entries[i].Name, name) {
			if only != nil {
				return nil
			}
			only = &p.entries[i]
		}
	}
	return only
}

// Parse splits a line into command and argument. The error suggests similar commands.
func (p *Palette) Parse(line string) (Entry, string, error) {
	name, arg, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(line), ": "), " ")
	arg = strings.TrimSpace(arg)
	e := p.named(name)
	switch {
	case e == nil:
		return Entry{}, "", fmt.Errorf("no command :%s%s", name, p.near(name))
	case arg == "" && e.Arg != "" && !strings.HasPrefix(e.Arg, "["):
		return *e, "", fmt.Errorf(":%s needs %s", e.Name, e.Arg)
	case arg != "" && e.Arg == "":
		return *e, "", fmt.Errorf(":%s takes nothing, not %q", e.Name, arg)
	}
	return *e, arg, nil
}

// near names similar commands.
func (p *Palette) near(name string) string {
	const most = 3
	var names []string
	for _, o := range p.commands(name) {
		names = append(names, ":"+o.entry.Name)
	}
	for i := range p.entries {
		e := &p.entries[i]
		word := ":" + e.Name
		if !slices.Contains(names, word) && len(e.Name) > 2 && phrase.Distance(name, e.Name) <= 2 {
			names = append(names, word)
		}
	}
	if len(names) == 0 {
		return "; tab lists them"
	}
	return "; near: " + strings.Join(names[:min(len(names), most)], " ")
}

// Line draws the line, w cells wide.
func (p *Palette) Line(w int, th *theme.Theme) string {
	return th.Paint(theme.Accent, ":") + p.input.View(max(1, w-1), true, th)
}

// Offers draws the completions, w cells wide and at most h lines high, with the inserted one visible.
func (p *Palette) Offers(w, h int, th *theme.Theme) []string {
	if h <= 0 {
		return nil
	}
	name := 0
	for _, o := range p.offers {
		name = max(name, widget.Width(o.show()))
	}
	name = min(name, w/2)
	from := max(0, p.chosen-h+1)
	var out []string
	for i := from; i < len(p.offers) && len(out) < h; i++ {
		out = append(out, p.offers[i].line(name, w, i == p.chosen, th))
	}
	return out
}

// show is the offer as a line of the list.
func (o offer) show() string {
	text := widget.Clean(o.text)
	if strings.HasSuffix(text, " ") {
		return ":" + text + o.entry.Arg
	}
	return ":" + text
}

func (o offer) line(name, w int, chosen bool, th *theme.Theme) string {
	text := widget.Left(widget.CutMiddle(o.show(), name), name)
	key := widget.Left(o.entry.Key, 4)
	if chosen {
		return th.Start(theme.Cursor) + widget.Left(th.Glyphs.Cursor+" "+text+"  "+key+" "+o.entry.Help,
			w) + th.Stop(theme.Cursor)
	}
	return "  " + text + "  " + th.Paint(theme.Accent, key) + " " +
		th.Paint(theme.Dim, widget.Cut(o.entry.Help, max(0, w-name-9)))
}

// Count is the number of completions.
func (p *Palette) Count() int { return len(p.offers) }
