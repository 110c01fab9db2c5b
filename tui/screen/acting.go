package screen

import (
	"strconv"

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

// Targets are the rows of keys that are numbers, to be acted upon.
func Targets(keys []string) []act.Target {
	targets := make([]act.Target, 0, len(keys))
	for _, key := range keys {
		if id, err := strconv.ParseInt(key, 10, 64); err == nil {
			targets = append(targets, act.Target{ID: id, Name: key})
		}
	}
	return targets
}
