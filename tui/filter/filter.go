// Package filter is the language of list filters:
//
//	status:failed,timeout  action:core.*  worker:7  age>10m  try>=2
//	group:tenant=acme  text  !word  "two words"  regex:/^etl\./
//
// A space means and, a bar or; "and" binds tighter. An exclamation mark negates a term. A comma separates alternative
// values, a star matches anything, case is ignored.
//
// A text is parsed for the fields of one list. A mistake is an Error with its position; no part of a wrong filter is
// ever applied. A query matches rows one by one, or becomes a filter of the database.
package filter

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Kind is the type of a field.
type Kind int

// The kinds of fields.
const (
	// Text matches one of the row's texts completely; a star matches anything.
	Text Kind = iota
	// Within matches a part of one of the row's texts.
	Within
	// Word is one of the field's values; other values are an error.
	Word
	// Number and Age have comparisons: try>=2, age<1h. Ages are written 90s, 10m, 2h, 3d.
	Number
	Age
	// ID is the number of a row, or a range such as 10..20.
	ID
	// Param is a parameter with its path after a dot: param.order.country:de.
	Param
)

// Field is a field of a list.
type Field struct {
	Name string
	Kind Kind
	// Values are all values of a Word, or known values of other fields.
	Values []string
	// Help is a short description.
	Help string
}

// Schema lists the fields of a list.
type Schema []Field

// Field finds a field by its name in a term.
func (s Schema) Field(name string) (Field, bool) {
	name = strings.ToLower(name)
	if of, _, named := strings.Cut(name, "."); named {
		f, known := s.Field(of)
		return f, known && f.Kind == Param
	}
	for _, f := range s {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// Examples returns an example of a term for each field.
func (s Schema) Examples() []string {
	out := make([]string, 0, len(s)+1)
	for _, f := range s {
		switch f.Kind {
		case Number:
			out = append(out, f.Name+">2")
		case Age:
			out = append(out, f.Name+">10m")
		case ID:
			out = append(out, f.Name+":7")
		case Word:
			out = append(out, f.Name+":"+f.Values[0])
		case Param:
			out = append(out, f.Name+".NAME:…")
		default:
			out = append(out, f.Name+":…")
		}
	}
	return append(out, "text", "!not", "a | b")
}

// Op is a comparison.
type Op string

// The comparisons.
const (
	Is        Op = ":"
	Less      Op = "<"
	LessEqual Op = "<="
	More      Op = ">"
	MoreEqual Op = ">="
)

// Span is a part of the text in bytes.
type Span struct{ From, To int }

// Term is one condition.
type Term struct {
	Span
	// Field is empty if the term matches any text of the row.
	Field string
	// Path is the path of a parameter.
	Path string
	Kind Kind
	Op   Op
	Not  bool
	// Values are alternatives: one of them must match.
	Values []string
	// Number is the compared number; ages are seconds.
	Number float64
	// Regex is the expression of regex:/…/ or nil. Its source is a value.
	Regex *regexp.Regexp
	// globs are the compiled values with a star, nil for others.
	globs []*regexp.Regexp
}

// Query is a parsed filter. The zero value matches every row.
type Query struct {
	// Any are the alternatives. A row must match every term of one of them.
	Any [][]Term
}

// Empty reports whether every row matches.
func (q *Query) Empty() bool { return q == nil || len(q.Any) == 0 }

// Error is a mistake in a filter and its position.
type Error struct {
	Span
	Why string
}

func (e *Error) Error() string { return e.Why }

func fail(at Span, format string, args ...any) *Error {
	return &Error{Span: at, Why: fmt.Sprintf(format, args...)}
}

// The limits of a filter.
const (
	maxText         = 2000
	maxTerms        = 50
	maxAlternatives = 8
)

// Parse parses a filter for the fields of a list. An error is an *Error.
func Parse(schema Schema, text string) (*Query, error) {
	if len(text) > maxText {
		return nil, fail(Span{maxText, len(text)}, "too long")
	}
	if bad := strings.IndexRune(text, utf8.RuneError); bad >= 0 {
		return nil, fail(Span{bad, bad + 1}, "not a letter")
	}
	tokens, err := split(text)
	if err != nil {
		return nil, err
	}
	q, open, terms := &Query{}, []Term(nil), 0
	for i, tok := range tokens {
		if !tok.bar {
			term, err := schema.term(text, tok)
			if err != nil {
				return nil, err
			}
			if terms++; terms > maxTerms {
				return nil, fail(tok.Span, "too many terms")
			}
			term.prepare()
			open = append(open, term)
			continue
		}
		if len(open) == 0 || i == len(tokens)-1 {
			return nil, fail(tok.Span, "| stands between two terms")
		}
		q.Any, open = append(q.Any, open), nil
	}
	if len(open) > 0 {
		q.Any = append(q.Any, open)
	}
	if len(q.Any) > maxAlternatives {
		return nil, fail(q.Any[maxAlternatives][0].Span, "more than %d alternatives", maxAlternatives)
	}
	return q, nil
}
