// Package theme maps roles such as Warn to escape sequences and states to glyphs.
//
// A theme is computed once, by Lip Gloss for the colours of the terminal. Painting neither measures nor allocates
// styles. No meaning rests on colour alone: every state has a glyph and a word, and the cursor row has a mark.
// Nothing is lost with NO_COLOR, in the mono theme, or for colour-blind readers.
package theme

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// Role is the meaning of a text's colour.
type Role int

// The roles. Plain text has no escape sequence.
const (
	Plain Role = iota
	Dim
	Accent
	Good
	Warn
	Bad
	Strong
	Cursor
	// Warm is a number near Warn. Trend is a chart.
	Warm
	Trend
	roles
)

// Names lists the themes.
var Names = []string{"auto", "dark", "light", "mono", "colour-blind"}

// Options chooses a theme.
type Options struct {
	// Name is one of Names; empty means auto.
	Name string
	// Dark is true if the terminal's background is dark; auto follows it.
	Dark bool
	// Profile is the number of colours of the terminal; the zero value is true colour. Other colours become the
	// nearest one.
	Profile termenv.Profile
	// NoColor keeps only bold and reverse.
	NoColor bool
	// Plain drops every escape sequence.
	Plain bool
	// ASCII replaces glyphs outside ASCII.
	ASCII bool
	// Braille draws charts in dots.
	Braille bool
}

// Theme is a computed look.
type Theme struct {
	name  string
	ascii bool
	codes [roles]string
	// plain is true without colours.
	plain    bool
	terminal *lipgloss.Renderer
	// bare is true without any escape sequence.
	bare   bool
	Glyphs Glyphs
}

// New computes a theme. An unknown name is an error that lists the known ones.
func New(opts Options) (*Theme, error) {
	name := opts.Name
	if name == "" {
		name = "auto"
	}
	styles, ok := palette(name, opts.Dark)
	if !ok {
		return nil, fmt.Errorf("unknown theme %q: choose one of %s", name, strings.Join(Names, ", "))
	}
	t := &Theme{name: name, Glyphs: glyphs, ascii: opts.ASCII, bare: opts.Plain}
	t.plain = opts.Plain || opts.NoColor || opts.Profile == termenv.Ascii || name == "mono"
	t.Glyphs.Braille = opts.Braille && !opts.ASCII
	if opts.ASCII { // both cursors would become >
		t.Glyphs.Rest = "."
	}
	if opts.Plain {
		return t, nil
	}
	t.terminal = lipgloss.NewRenderer(io.Discard)
	t.terminal.SetColorProfile(opts.Profile)
	if t.plain {
		styles = mono
		t.terminal.SetColorProfile(termenv.ANSI) // the profile with bold and reverse
	}
	for role, style := range styles {
		t.codes[role] = t.start(style)
	}
	return t, nil
}

// start is the sequence that begins a style.
func (t *Theme) start(style lipgloss.Style) string {
	code, _, _ := strings.Cut(style.Renderer(t.terminal).Render("x"), "x")
	return code
}

// in is a colour of the terminal's sixteen, which follow its palette, or of the 256.
func in(colour string) lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Color(colour)) }

var (
	bold    = lipgloss.NewStyle().Bold(true)
	reverse = lipgloss.NewStyle().Reverse(true)
	// mono has no colours.
	mono = [roles]lipgloss.Style{Strong: bold, Cursor: reverse, Bad: bold, Accent: bold}
)

func palette(name string, dark bool) ([roles]lipgloss.Style, bool) {
	styles := [roles]lipgloss.Style{Strong: bold, Cursor: reverse}
	switch {
	case name == "dark" || name == "auto" && dark:
		styles[Dim], styles[Accent], styles[Good], styles[Warn], styles[Bad] = in("8"), in("14"), in("2"), in("11"),
			in("9")
		styles[Warm], styles[Trend] = in("3"), in("6")
	case name == "light" || name == "auto":
		styles[Dim], styles[Accent], styles[Good], styles[Warn], styles[Bad] = in("244"), in("4"), in("2"), in("130"),
			in("1")
		styles[Warm], styles[Trend] = in("94"), in("6")
	case name == "colour-blind":
		styles[Dim], styles[Accent], styles[Good], styles[Warn], styles[Bad] = in("8"), bold, in("75"), in("214"),
			in("208").Bold(true)
		styles[Warm], styles[Trend] = in("180"), in("75")
	case name == "mono":
		return mono, true
	default:
		return styles, false
	}
	return styles, true
}

// Name is the requested name.
func (t *Theme) Name() string { return t.name }

// Next is the following name in Names.
func (t *Theme) Next() string {
	for i, name := range Names {
		if name == t.name {
			return Names[(i+1)%len(Names)]
		}
	}
	return Names[0]
}

const reset = "\x1b[0m"

// Paint wraps text in the sequences of a role. Plain and empty texts stay as they are.
func (t *Theme) Paint(role Role, text string) string {
	code := t.codes[role]
	if code == "" || text == "" {
		return text
	}
	return code + text + reset
}

// Heat is the role of a used share of a limit: Warm from one half on, Warn above the limit.
func Heat(share float64) Role {
	switch {
	case share >= 2:
		return Bad
	case share >= 1:
		return Warn
	case share >= 0.5:
		return Warm
	default:
		return Plain
	}
}

// Underline returns the sequences of an underline, which works in every role. Both are empty in a plain theme.
func (t *Theme) Underline() (on, off string) {
	if t.bare {
		return "", ""
	}
	return "\x1b[4m", "\x1b[24m"
}

// Start returns the sequence that begins a role; empty for Plain.
func (t *Theme) Start(role Role) string { return t.codes[role] }

// Stop returns the sequence that ends the role.
func (t *Theme) Stop(role Role) string {
	if t.codes[role] == "" {
		return ""
	}
	return reset
}

// colours are the names of the terminal's sixteen colours that mark installations.
var colours = map[string]string{
	"red": "9", "green": "10", "yellow": "11", "blue": "12", "magenta": "13", "cyan": "14", "white": "15", "grey": "8",
}

// Colours lists the names for Colour.
var Colours = slices.Sorted(maps.Keys(colours))

// Colour paints text in a named colour. Without colours it is bold; an unknown name changes nothing.
func (t *Theme) Colour(name, text string) string {
	colour, ok := colours[name]
	if !ok || t.plain {
		return t.Paint(Strong, text)
	}
	return t.start(in(colour).Bold(true)) + text + reset
}
