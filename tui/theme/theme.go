// Package theme decides how the dashboard looks: which escape sequence a role
// such as "warning" is painted with, and which glyph stands for a state.
//
// A theme is data computed once. Painting never measures or allocates a style.
// Meaning never rests on colour: every state has a glyph and a word, and the
// cursor row has a mark besides being reversed, so nothing is lost with
// NO_COLOR, in the mono theme or for a reader who cannot tell red from green.
package theme

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
	codes, ok := palette(name, opts.Dark)
	if !ok {
		return nil, fmt.Errorf("unknown theme %q: choose one of %s", name, strings.Join(Names, ", "))
	}
	t := &Theme{name: name, Glyphs: glyphs, ascii: opts.ASCII, bare: opts.Plain, plain: opts.Plain || opts.NoColor || name == "mono"}
	t.Glyphs.Braille = opts.Braille && !opts.ASCII
	if opts.Plain {
		return t, nil
	}
	if opts.NoColor {
		codes = mono
	}
	for role, code := range codes {
		if code != "" {
			t.codes[role] = "\x1b[" + code + "m"
		}
	}
	return t, nil
}

// mono uses no colour at all.
var mono = [roles]string{Strong: "1", Cursor: "7", Bad: "1", Accent: "1"}

// palette returns the SGR parameters of each role. The sixteen names are used
// where possible, so that the user's own palette rules.
func palette(name string, dark bool) ([roles]string, bool) {
	switch name {
	case "auto":
		if dark {
			return palette("dark", dark)
		}
		return palette("light", dark)
	case "dark":
		return [roles]string{Dim: "90", Accent: "96", Good: "32", Warn: "93", Bad: "91", Strong: "1", Cursor: "7", Warm: "33", Trend: "36"}, true
	case "light":
		return [roles]string{Dim: "38;5;244", Accent: "34", Good: "32", Warn: "38;5;130", Bad: "31", Strong: "1", Cursor: "7", Warm: "38;5;94", Trend: "36"}, true
	case "mono":
		return mono, true
	case "colour-blind":
		return [roles]string{Dim: "90", Accent: "1", Good: "38;5;75", Warn: "38;5;214", Bad: "1;38;5;208", Strong: "1", Cursor: "7", Warm: "38;5;180", Trend: "38;5;75"}, true
	default:
		return [roles]string{}, false
	}
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
	"red": "91", "green": "92", "yellow": "93", "blue": "94", "magenta": "95", "cyan": "96", "white": "97", "grey": "90",
}

// Colours lists the names that Colour knows.
var Colours = slices.Sorted(maps.Keys(colours))

// Colour paints text in a colour by its name. Where nothing is coloured, and for
// a name it does not know, the text comes back in bold or as it is.
func (t *Theme) Colour(name, text string) string {
	code, ok := colours[name]
	if !ok || t.plain {
		return t.Paint(Strong, text)
	}
	return "\x1b[1;" + code + "m" + text + reset
}
