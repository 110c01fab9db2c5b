package expr

import (
	"fmt"
	"strings"
)

// Error is a mistake in an expression or in its values.
type Error struct {
	Source string // the expression
	Offset int    // of the mistake, in bytes
	Text   string // the reason
	Cause  error  // of the scope; nil if the expression itself is wrong
}

// Unwrap returns the error of the scope.
func (e *Error) Unwrap() error { return e.Cause }

// Error implements error.
func (e *Error) Error() string {
	line, column := e.Position()
	where := fmt.Sprintf("column %d", column)
	if line > 1 {
		where = fmt.Sprintf("line %d, %s", line, where)
	}
	return fmt.Sprintf("%s: %s in %s", where, e.Text, excerpt(e.Source))
}

// Position returns the line and the column in characters, both from 1.
func (e *Error) Position() (line, column int) {
	before := e.Source[:min(max(e.Offset, 0), len(e.Source))]
	line = 1 + strings.Count(before, "\n")
	last := before[strings.LastIndexByte(before, '\n')+1:]
	return line, 1 + len([]rune(last))
}

// excerpt is the beginning of the source on one line.
func excerpt(source string) string {
	const most = 80
	short := []rune(strings.Join(strings.Fields(source), " "))
	if len(short) > most {
		return fmt.Sprintf("%q…", string(short[:most]))
	}
	return fmt.Sprintf("%q", string(short))
}
