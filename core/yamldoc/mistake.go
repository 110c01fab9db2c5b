package yamldoc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Place is a position in a file. Line and column begin with 1; 0 is unknown.
type Place struct {
	File   string
	Line   int
	Column int
}

// String is file:line:column, as editors read it.
func (p Place) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Mistake is an error in a file, or a warning.
type Mistake struct {
	Place Place
	Text  string
}

// String is the mistake on one line, behind its place if known.
func (m Mistake) String() string {
	text := OneLine(m.Text)
	if at := m.Place.String(); at != "" {
		return at + ": " + text
	}
	return text
}

// OneLine replaces line breaks with blanks.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// MistakesError says that files cannot be used. It holds all mistakes in the order of Sort.
type MistakesError struct{ Mistakes []Mistake }

// Error counts the mistakes and names the first. Callers also print each.
func (e *MistakesError) Error() string {
	if len(e.Mistakes) == 1 {
		return e.Mistakes[0].String()
	}
	return fmt.Sprintf("%d mistakes, the first is %s", len(e.Mistakes), e.Mistakes[0])
}

// Sort orders mistakes by file, line and column, without duplicates.
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
	// About begins the texts of later mistakes.
	About string
}

// Mistakef adds a mistake.
func (r *Report) Mistakef(at Place, format string, args ...any) {
	r.Mistakes = append(r.Mistakes, Mistake{Place: at, Text: r.About + fmt.Sprintf(format, args...)})
}

// Warnf adds a warning: valid, but without effect or with an unexpected one.
func (r *Report) Warnf(at Place, format string, args ...any) {
	r.Warnings = append(r.Warnings, Mistake{Place: at, Text: r.About + fmt.Sprintf(format, args...)})
}
