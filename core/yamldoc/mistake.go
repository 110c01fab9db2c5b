package yamldoc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

// Mistake is one thing that has to be corrected in a file, or that its author
// should look at.
type Mistake struct {
	Place Place
	Text  string
}

// String is the mistake on one line, the place first if it is known.
func (m Mistake) String() string {
	text := OneLine(m.Text)
	if at := m.Place.String(); at != "" {
		return at + ": " + text
	}
	return text
}

// OneLine is a text with blanks in place of its line breaks.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// MistakesError says that files cannot be used. It holds all mistakes in the order
// of Sort.
type MistakesError struct{ Mistakes []Mistake }

// Error counts the mistakes and names the first; who prints it prints them one by one
// as well.
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
		return cmp.Or(cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line),
			cmp.Compare(a.Place.Column, b.Place.Column), cmp.Compare(a.Text, b.Text))
	})
	return slices.Compact(sorted)
}

// Report collects mistakes and warnings.
type Report struct {
	Mistakes []Mistake
	Warnings []Mistake
	// About begins the texts of those that follow.
	About string
}

// Mistakef notes a mistake.
func (r *Report) Mistakef(at Place, format string, args ...any) {
	r.Mistakes = append(r.Mistakes, Mistake{Place: at, Text: r.About + fmt.Sprintf(format, args...)})
}

// Warnf notes something that is not wrong and has no effect, or an unexpected one.
func (r *Report) Warnf(at Place, format string, args ...any) {
	r.Warnings = append(r.Warnings, Mistake{Place: at, Text: r.About + fmt.Sprintf(format, args...)})
}
