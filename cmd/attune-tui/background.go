package main

import (
	"bytes"
	"os"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"golang.org/x/term"

	"github.com/attune-go/attune/tui/app"
	"github.com/attune-go/attune/tui/theme"
)

// profile is how many colours the terminal has, by what the environment says of it.
func profile(environ []string) termenv.Profile {
	return termenv.NewOutput(nil, termenv.WithTTY(true), termenv.WithEnvironment(surroundings(environ))).ColorProfile()
}

// surroundings is an environment as termenv reads it.
type surroundings []string

// Environ returns all of it.
func (s surroundings) Environ() []string { return s }

// Getenv returns the value of a variable.
func (s surroundings) Getenv(name string) string { return lookup(s, name) }

// asksBackground reports whether the colour of the background matters and the terminal may know it.
func asksBackground(look theme.Options, environ []string) bool {
	auto := look.Name == "" || look.Name == "auto"
	return auto && !look.NoColor && look.Profile != termenv.Ascii && lookup(environ, "TERM") != "linux" &&
		term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
}

// askBackground asks the terminal for the colour of its background. The answer comes with what is typed.
func askBackground() error { return write(os.Stdout, []byte(ansi.RequestBackgroundColor)) }

// typed is what comes from the terminal. It takes the answers to askBackground out of what is typed.
type typed struct {
	*os.File

	answered func(tea.Msg)
	// part is the beginning of an answer of which the rest has not come yet.
	part []byte
}

var answerBegin = []byte("\x1b]11;")

// maxAnswer is how long an answer is at most; what is longer is none.
const maxAnswer = 64

// Read reads what was typed. It may have read nothing but an answer, which is no bytes and no error.
func (t *typed) Read(p []byte) (int, error) {
	kept := copy(p, t.part)
	t.part = nil
	n, err := t.File.Read(p[kept:])
	text := p[:kept+n]
	for from := 0; err == nil; {
		at := bytes.Index(text[from:], answerBegin)
		if at < 0 {
			break
		}
		at += from
		end := bytes.IndexAny(text[at+len(answerBegin):], "\a\\")
		switch {
		case end >= 0 && end < maxAnswer:
			end += at + len(answerBegin) + 1
			if dark, ok := isDark(string(text[at+len(answerBegin) : end])); ok {
				t.answered(app.BackgroundMsg{Dark: dark})
			}
			text = append(text[:at], text[end:]...)
			from = at
		case end < 0 && len(text)-at < min(maxAnswer, len(p)):
			t.part = bytes.Clone(text[at:])
			text = text[:at]
		default:
			from = at + len(answerBegin)
		}
	}
	return len(text), err
}

// isDark reads the colour of an answer, rgb:RRRR/GGGG/BBBB, and whether it is dark.
func isDark(answer string) (dark, ok bool) {
	rest, ok := bytes.CutPrefix([]byte(answer), []byte("rgb:"))
	parts := bytes.Split(bytes.TrimRight(rest, "\a\\\x1b"), []byte("/"))
	if !ok || len(parts) != 3 {
		return false, false
	}
	light := 0.0
	for i, weight := range []float64{0.299, 0.587, 0.114} { // as bright as people see it
		value, err := strconv.ParseUint(string(parts[i]), 16, 32)
		if err != nil {
			return false, false
		}
		light += weight * float64(value) / float64(uint64(1)<<(4*len(parts[i]))-1)
	}
	return light < 0.5, true
}
