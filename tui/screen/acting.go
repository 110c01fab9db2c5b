package screen

import (
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/theme"
)

// Tone is the role in which a line of a plan or a receipt is painted.
func Tone(tone act.Tone) theme.Role {
	switch tone {
	case act.Note:
		return theme.Dim
	case act.Good:
		return theme.Good
	case act.Warn:
		return theme.Warn
	case act.Danger:
		return theme.Bad
	default:
		return theme.Plain
	}
}
