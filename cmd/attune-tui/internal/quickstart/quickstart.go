// Package quickstart keeps the program from asking the terminal a question
// before it runs.
//
// Bubble Tea asks for the background colour while packages are initialised and
// waits up to five seconds for a terminal that does not answer, even when only
// the version is to be printed. The question is not asked where CI is set, so
// this package sets it first: packages are initialised in the order of their
// import paths, and this path comes before all that ask. Restore takes the
// variable away again before anything else looks at the environment.
//
// The dashboard asks by itself once it runs, and waits for no answer.
package quickstart

import "os"

const variable = "CI"

var hadVariable = os.Getenv(variable) != ""

func init() { //nolint:gochecknoinits // The point of this package is to be early.
	if !hadVariable {
		_ = os.Setenv(variable, "attune-tui")
	}
}

// Restore gives the environment back as it was.
func Restore() {
	if !hadVariable {
		_ = os.Unsetenv(variable)
	}
}
