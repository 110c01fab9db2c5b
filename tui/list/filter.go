package list

import (
	"strings"

	"github.com/attune-go/attune/tui/filter"
)

// Passes reports whether a row matches the filter and, in the problems-only mode, is a problem.
func (l *List[R]) Passes(r *R) bool {
	return (!l.problems || l.spec.IsProblem == nil || l.spec.IsProblem(r)) && l.Matches(r)
}

// Matches reports whether a row passes the filter.
func (l *List[R]) Matches(r *R) bool { return l.query.Matches(filterRow[R]{l, r}) }

// Matcher is the present filter, for a goroutine beside the list.
func (l *List[R]) Matcher() func(r *R) bool {
	env := *l.env
	frozen := &List[R]{env: &env, spec: l.spec, terms: l.terms, query: l.query}
	return frozen.Matches
}

// filterRow gives a filter the data of a row.
type filterRow[R any] struct {
	l *List[R]
	r *R
}

// Texts are the texts of a field. The empty name means the search texts.
func (s filterRow[R]) Texts(field string) []string {
	if field == "" {
		return s.l.spec.SearchTexts(s.r)
	}
	f := s.l.terms[field]
	if f == nil || f.texts == nil {
		return nil
	}
	texts := f.texts(s.l.env, s.r)
	if f.also != nil {
		texts = append(texts, f.also(s.r))
	}
	return texts
}

// Number is the number of a field, if known.
func (s filterRow[R]) Number(field string) (float64, bool) {
	if f := s.l.terms[field]; f != nil && f.number != nil {
		return f.number(s.l.env, s.r)
	}
	return 0, false
}

// Schema lists the fields of the filter.
func (l *List[R]) Schema() filter.Schema { return l.schema }

// Live reports whether filtering needs no read, so that it can follow every key.
func (l *List[R]) Live() bool { return l.spec.Database == nil }

// Known lists values of a field for completion, some more than once.
func (l *List[R]) Known(field string) []string {
	f := l.terms[field]
	if f == nil || f.texts == nil || f.term.Kind != filter.Text && !f.complete || !l.spec.Loaded() {
		return nil
	}
	rows := l.spec.Rows()
	if l.spec.Others != nil {
		rows = append(rows, l.spec.Others()...)
	}
	var known []string
	for i := range rows {
		known = append(known, f.texts(l.env, &rows[i])...)
	}
	return known
}

// Filter is the text of the filter.
func (l *List[R]) Filter() string { return l.text }

// Query is the parsed filter; nil matches every row.
func (l *List[R]) Query() *filter.Query { return l.query }

// SetFilter filters the list. After an error, often a *filter.Error, the former filter stays.
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

// Requery applies filter, mode and order. If the database filters, the list is empty until the next reading.
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

// Asked numbers the queries, to recognise late answers.
func (l *List[R]) Asked() int { return l.asked }
