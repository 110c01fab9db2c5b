// Package theme decides how the dashboard looks: which escape sequence a role
// such as "warning" is painted with, and which glyph stands for a state.
//
// A theme is data computed once, by Lip Gloss for the colours of the terminal. Painting
// never measures or allocates a style.
// Meaning never rests on colour: every state has a glyph and a word, and the
// cursor row has a mark besides being reversed, so nothing is lost with
// NO_COLOR, in the mono theme or for a reader who cannot tell red from green.
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

// Role is the reason why a piece of text looks different from plain data.
type Role int

// The roles. Plain is ordinary data and carries no escape sequence.
const (
	Plain Role = iota
	Dim
	Accent
	Good
	Warn
	Bad
	Strong
	Cursor
	// Warm is a number on its way to Warn, Trend the course of a number.
	Warm
	Trend
	roles
)

// Names lists the themes a user may ask for.
var Names = []string{"auto", "dark", "light", "mono", "colour-blind"}

// Options chooses a theme.
type Options struct {
	// Name is one of Names; empty means auto.
	Name string
	// Dark is whether the terminal's background is dark; auto follows it.
	Dark bool
	// Profile is how many colours the terminal has; the zero value is true colour. A colour that
	// it does not have becomes the nearest one. Without colours bold and reverse are kept.
	Profile termenv.Profile
	// NoColor drops every colour and keeps bold and reverse.
	NoColor bool
	// Plain drops every escape sequence, for output that is not a terminal.
	Plain bool
	// ASCII replaces every glyph outside ASCII.
	ASCII bool
	// Braille draws charts in dots, two values a cell, where the terminal has them.
	Braille bool
}

// Theme is a computed look.
type Theme struct {
	name  string
	ascii bool
	codes [roles]string
	// plain is true where nothing is coloured.
	plain bool
	// terminal knows the colours that there are.
	terminal *lipgloss.Renderer
	// bare is true where nothing but text is drawn.
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
	if opts.Plain {
		return t, nil
	}
	t.terminal = lipgloss.NewRenderer(io.Discard)
	t.terminal.SetColorProfile(opts.Profile)
	if t.plain {
		styles = mono
		t.terminal.SetColorProfile(termenv.ANSI) // which has bold and reverse
	}
	for role, style := range styles {
		t.codes[role] = t.start(style)
	}
	return t, nil
}

// start is the sequence that begins a style on the terminal.
func (t *Theme) start(style lipgloss.Style) string {
	code, _, _ := strings.Cut(style.Renderer(t.terminal).Render("x"), "x")
	return code
}

// in is text in a colour: one of the terminal's sixteen, so that the user's own palette
// rules, or one of the 256.
func in(colour string) lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Color(colour)) }

var (
	bold    = lipgloss.NewStyle().Bold(true)
	reverse = lipgloss.NewStyle().Reverse(true)
	// mono uses no colour at all.
	mono = [roles]lipgloss.Style{Strong: bold, Cursor: reverse, Bad: bold, Accent: bold}
)

// palette returns the style of each role.
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

// Name returns the name the theme was asked for by.
func (t *Theme) Name() string { return t.name }

// Next returns the name that follows this theme's in Names.
func (t *Theme) Next() string {
	for i, name := range Names {
		if name == t.name {
			return Names[(i+1)%len(Names)]
		}
	}
	return Names[0]
}

const reset = "\x1b[0m"

// Paint wraps text in the role's escape sequence. Empty text and plain roles
// come back as they are.
func (t *Theme) Paint(role Role, text string) string {
	code := t.codes[role]
	if code == "" || text == "" {
		return text
	}
	return code + text + reset
}

// Heat is the role of a number that has used up a share of what it may be: it warms from half
// of that on, and warns beyond it.
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

// Underline returns the sequences that begin and end an underline, which may stand in
// any role; both are empty where nothing but text is drawn.
func (t *Theme) Underline() (on, off string) {
	if t.bare {
		return "", ""
	}
	return "\x1b[4m", "\x1b[24m"
}

// Start returns the sequence that begins the role, and Stop what ends it; both
// are empty where the role is plain.
func (t *Theme) Start(role Role) string { return t.codes[role] }

// Stop returns the sequence that ends the role.
func (t *Theme) Stop(role Role) string {
	if t.codes[role] == "" {
		return ""
	}
	return reset
}

// colours are the names by which people mark an installation, in the sixteen
// colours of the terminal, whose palette rules.
var colours = map[string]string{
	"red": "9", "green": "10", "yellow": "11", "blue": "12", "magenta": "13", "cyan": "14", "white": "15", "grey": "8",
}

// Colours lists the names that Colour knows.
var Colours = slices.Sorted(maps.Keys(colours))

// Colour paints text in a colour by its name. Where nothing is coloured, and for
// a name it does not know, the text comes back in bold or as it is.
func (t *Theme) Colour(name, text string) string {
	colour, ok := colours[name]
	if !ok || t.plain {
		return t.Paint(Strong, text)
	}
	return t.start(in(colour).Bold(true)) + text + reset
}
