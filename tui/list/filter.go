package list

import (
	"strings"

	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
)

// Passes reports whether a row passes the filter, and is trouble while only that is listed.
func (l *List[R]) Passes(r *R) bool {
	return (!l.problems || l.spec.IsProblem == nil || l.spec.IsProblem(r)) && l.Matches(r)
}

// Matches reports whether a row passes the filter.
func (l *List[R]) Matches(r *R) bool { return l.query.Matches(seen[R]{l, r}) }

// Matcher is what Matches says now, for use beside the list while that goes on.
func (l *List[R]) Matcher() func(r *R) bool {
	env := *l.env
	frozen := &List[R]{env: &env, spec: l.spec, terms: l.terms, query: l.query}
	return frozen.Matches
}

// seen is a row as filters see it.
type seen[R any] struct {
	l *List[R]
	r *R
}

// Texts are the texts of a field, or all of them.
func (s seen[R]) Texts(field string) []string {
	if field == "" {
		return s.l.spec.SearchTexts(s.r)
	}
	f := s.l.terms[field]
	if f == nil || f.Texts == nil {
		return nil
	}
	texts := f.Texts(s.l.env, s.r)
	if f.AlsoMatches != nil {
		texts = append(texts, f.AlsoMatches(s.r))
	}
	return texts
}

// Number is the number of a field.
func (s seen[R]) Number(field string) (float64, bool) {
	if f := s.l.terms[field]; f != nil && f.Number != nil {
		return f.Number(s.l.env, s.r)
	}
	return 0, false
}

// Schema is what the rows can be filtered by.
func (l *List[R]) Schema() filter.Schema { return l.schema }

// Live reports whether a filter can be tried while it is typed: nothing is read for it.
func (l *List[R]) Live() bool { return l.spec.Database == nil }

// Known lists values of a field, to complete with.
func (l *List[R]) Known(field string) []string {
	if l.spec.Completions != nil {
		return l.spec.Completions(field)
	}
	f := l.terms[field]
	if f == nil || !f.Complete {
		return nil
	}
	if !l.spec.Loaded() {
		return nil
	}
	rows := l.spec.Rows()
	var known screen.Distinct
	for i := range rows {
		known.Add(f.Texts(l.env, &rows[i])...)
	}
	return known.List()
}

// Filter is the text in place.
func (l *List[R]) Filter() string { return l.text }

// Query is the filter as it was understood; nil lets every row pass.
func (l *List[R]) Query() *filter.Query { return l.query }

// SetFilter keeps the rows that pass. One that cannot be understood is an error, often a
// *filter.Error, and leaves the one before.
func (l *List[R]) SetFilter(text string) error {
	query, err := filter.Parse(l.schema, text)
	if err != nil {
		return err
	}
	if l.spec.Database != nil {
		if err := l.spec.Database.Ask(query); err != nil {
			return err
		}
	}
	l.text, l.query = strings.TrimSpace(text), query
	l.Requery()
	return nil
}

// Requery lists what is asked for now: at once what is held, and nothing until it was read where
// the database filters.
func (l *List[R]) Requery() {
	l.asked++
	if l.spec.Reset != nil {
		l.spec.Reset()
	}
	if l.spec.Database == nil {
		l.Rebuild(true)
		return
	}
	l.rows, l.keys = nil, nil
	l.table.SetRows(l)
}

// Asked numbers the question that the rows answer.
func (l *List[R]) Asked() int { return l.asked }
