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

// profile is the number of colours that the environment declares.
func profile(environ []string) termenv.Profile {
	return termenv.NewOutput(nil, termenv.WithTTY(true), termenv.WithEnvironment(surroundings(environ))).ColorProfile()
}

// surroundings adapts an environment for termenv.
type surroundings []string

// Environ returns it.
func (s surroundings) Environ() []string { return s }

// Getenv returns a variable.
func (s surroundings) Getenv(name string) string { return lookup(s, name) }

// asksBackground reports whether the theme depends on the background and the terminal may know it.
func asksBackground(look theme.Options, environ []string) bool {
	auto := look.Name == "" || look.Name == "auto"
	return auto && !look.NoColor && look.Profile != termenv.Ascii && lookup(environ, "TERM") != "linux" &&
		term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
}

// askBackground asks the terminal for its background colour. The answer arrives as input.
func askBackground() error { return write(os.Stdout, []byte(ansi.RequestBackgroundColor)) }

// input is the terminal's input without the answers to askBackground.
type input struct {
	*os.File

	answered func(tea.Msg)
	// part is the beginning of an incomplete answer.
	part []byte
}

var answerBegin = []byte("\x1b]11;")

// maxAnswer is the longest answer.
const maxAnswer = 64

// Read reads input. After an answer alone it returns no bytes and no error.
func (in *input) Read(p []byte) (int, error) {
	kept := copy(p, in.part)
	in.part = nil
	n, err := in.File.Read(p[kept:])
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
				in.answered(app.BackgroundMsg{Dark: dark})
			}
			text = append(text[:at], text[end:]...)
			from = at
		case end < 0 && len(text)-at < min(maxAnswer, len(p)):
			in.part = bytes.Clone(text[at:])
			text = text[:at]
		default:
			from = at + len(answerBegin)
		}
	}
	return len(text), err
}

// isDark reads a colour such as rgb:RRRR/GGGG/BBBB.
func isDark(answer string) (dark, ok bool) {
	rest, ok := bytes.CutPrefix([]byte(answer), []byte("rgb:"))
	parts := bytes.Split(bytes.TrimRight(rest, "\a\\\x1b"), []byte("/"))
	if !ok || len(parts) != 3 {
		return false, false
	}
	light := 0.0
	for i, weight := range []float64{0.299, 0.587, 0.114} { // luminance
		value, err := strconv.ParseUint(string(parts[i]), 16, 32)
		if err != nil {
			return false, false
		}
		light += weight * float64(value) / float64(uint64(1)<<(4*len(parts[i]))-1)
	}
	return light < 0.5, true
}
