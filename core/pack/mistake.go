package pack

import (
	"cmp"
	"fmt"
	"slices"
)

// Place is where something stands in a file. Line and column begin with 1; 0
// means that it is not known.
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

// before orders places by file, line and column.
func (p Place) before(q Place) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// Mistake is one thing that has to be corrected in a file.
type Mistake struct {
	Place Place
	Text  string
}

// String is the mistake on one line, the place first.
func (m Mistake) String() string { return m.Place.String() + ": " + oneLine(m.Text) }

// MistakesError says that files cannot be applied. It holds all mistakes in
// the order of Sort.
type MistakesError struct{ Mistakes []Mistake }

// Error counts the mistakes; who prints it prints them one by one as well.
func (e *MistakesError) Error() string {
	if len(e.Mistakes) == 1 {
		return e.Mistakes[0].String()
	}
	return fmt.Sprintf("%d mistakes, the first is %s", len(e.Mistakes), e.Mistakes[0])
}

// Sort puts the mistakes in order of file, line and column and drops those
// that say the same of the same place.
func Sort(mistakes []Mistake) []Mistake {
	sorted := slices.Clone(mistakes)
	slices.SortFunc(sorted, func(a, b Mistake) int {
		return cmp.Or(a.Place.before(b.Place), cmp.Compare(a.Text, b.Text))
	})
	return slices.Compact(sorted)
}
