package export

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// MaxCopy is the longest text in bytes for the clipboard. Encoded, it is what terminals take in one sequence.
const MaxCopy = 74_994

// TooLongError is a text longer than MaxCopy.
type TooLongError struct{ Bytes int }

// Error says what to do instead.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("%d bytes are more than terminals take (%d): e writes them to a file", e.Bytes, MaxCopy)
}

// screenPart is the longest sequence that GNU Screen passes on.
const screenPart = 76

// Within names the multiplexer between the program and the terminal.
type Within struct{ Tmux, Screen bool }

// WithinOf reads it from an environment.
func WithinOf(environ []string) Within {
	var w Within
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		w.Tmux = w.Tmux || name == "TMUX" && value != ""
		w.Screen = w.Screen || name == "STY" && value != ""
	}
	return w
}

// Clipboard returns the sequence that asks a terminal to put a text into the clipboard, also over SSH. Inside
// tmux it asks twice: tmux, which needs set-clipboard, and the terminal around it, which needs
// allow-passthrough. No terminal confirms. A text that is too long is a *TooLongError.
func Clipboard(text string, within Within) (string, error) {
	if len(text) > MaxCopy {
		return "", &TooLongError{len(text)}
	}
	sequence := ansi.SetSystemClipboard(text)
	switch {
	case within.Tmux:
		return sequence + ansi.TmuxPassthrough(sequence), nil
	case within.Screen:
		return ansi.ScreenPassthrough(sequence, screenPart), nil
	default:
		return sequence, nil
	}
}
