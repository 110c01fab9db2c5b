package carry

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// MaxCopy is how many bytes a clipboard is given: encoded it is just what terminals
// take in one sequence.
const MaxCopy = 74_994

// TooLongError says that a text is more than terminals take.
type TooLongError struct{ Bytes int }

// Error says what to do instead.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("%d bytes are more than terminals take (%d): e writes them to a file", e.Bytes, MaxCopy)
}

// screenPart is how long a part is that screen passes on at once.
const screenPart = 76

// Within is what the program runs inside of, between it and the terminal.
type Within struct{ Tmux, Screen bool }

// WithinOf reads from an environment what the program runs inside of.
func WithinOf(environ []string) Within {
	var w Within
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		w.Tmux = w.Tmux || name == "TMUX" && value != ""
		w.Screen = w.Screen || name == "STY" && value != ""
	}
	return w
}

// Clipboard is the sequence that asks a terminal to put a text into the clipboard,
// also over SSH. Inside tmux it is asked twice: tmux itself, which listens while
// set-clipboard is on, and what is around it, which hears while allow-passthrough
// is. Whether a terminal does as asked is not known. A text that is too long is a
// *TooLongError.
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
