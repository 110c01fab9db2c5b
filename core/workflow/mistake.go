package workflow

import (
	"cmp"
	"fmt"
	"slices"
)

// Place is where something stands in a file. Line and column begin with 1; 0 means
// that it is not known.
type Place struct {
	File   string
	Line   int
	Column int
}

// String is file:line:column, as editors understand it.
func (p Place) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Mistake is one thing that has to be corrected in a definition, or that its author
// should look at.
type Mistake struct {
	Place Place
	Text  string
}

// String is the mistake on one line, the place first if it is known.
func (m Mistake) String() string {
	if at := m.Place.String(); at != "" {
		return at + ": " + m.Text
	}
	return m.Text
}

// MistakesError says that a definition cannot be run. It holds all mistakes, in order.
type MistakesError struct{ Mistakes []Mistake }

// Error counts the mistakes and tells the first.
func (e *MistakesError) Error() string {
	if len(e.Mistakes) == 1 {
		return e.Mistakes[0].String()
	}
	return fmt.Sprintf("%d mistakes, the first is %s", len(e.Mistakes), e.Mistakes[0])
}

// sorted puts mistakes in order of their places and drops those that are said twice.
func sorted(mistakes []Mistake) []Mistake {
	list := slices.Clone(mistakes)
	slices.SortStableFunc(list, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line),
			cmp.Compare(a.Place.Column, b.Place.Column))
	})
	return slices.Compact(list)
}
