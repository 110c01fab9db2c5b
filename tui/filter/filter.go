// Package filter is the language in which people say which rows of a list they
// want to see:
//
//	status:failed,timeout  action:core.*  worker:7  age>10m  try>=2
//	group:tenant=acme  text  !word  "two words"  regex:/^etl\./
//
// A space joins terms by and, a bar by or, and "and" binds tighter; an exclamation
// mark turns a term around. A comma separates values of which one must fit, a star
// stands for anything, capitals do not matter.
//
// A text is read against the fields of one list. What cannot be understood is an
// Error that says where it is; nothing is ever applied in part or as something
// wider. A query is then asked row by row, or is turned into what the database
// filters by.
package filter

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Kind is how the values of a field are read and compared.
type Kind int

// The kinds of fields.
const (
	// Text fits when one of the row's texts is the value; a star stands for anything.
	Text Kind = iota
	// Within fits when one of the row's texts contains the value.
	Within
	// Word is a text out of the field's values; another one is refused.
	Word
	// Number and Age are compared: try>=2, age<1h. Ages are written 90s, 10m, 2h, 3d.
	Number
	Age
	// ID is the number of a row; two with two dots between them are a range.
	ID
	// Param is a parameter, which is named behind the field and a dot: param.order.country:de.
	Param
)

// Field is what a list can be filtered by.
type Field struct {
	Name string
	Kind Kind
	// Values are those that are known: of a Word all, otherwise some to offer.
	Values []string
	// Help says in a few words what it is.
	Help string
}

// Schema is the fields of one list.
type Schema []Field

// Field finds a field by its name, as it is written in a term.
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

// Examples writes a term for each field, for help texts.
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

// Op is how a value is compared.
type Op string

// The comparisons.
const (
	Is        Op = ":"
	Less      Op = "<"
	LessEqual Op = "<="
	More      Op = ">"
	MoreEqual Op = ">="
)

// Span is a piece of the text, in bytes.
type Span struct{ From, To int }

// Term is one condition.
type Term struct {
	Span
	// Field is the name of the field, empty for a text that is looked for in all of
	// the row.
	Field string
	// Path names a parameter, as it was written.
	Path string
	Kind Kind
	Op   Op
	Not  bool
	// Values are those of which one must fit.
	Values []string
	// Number is the value of a comparison; ages are seconds.
	Number float64
	// Regex is the expression of regex:/…/, otherwise nil; its source is a value.
	Regex *regexp.Regexp
	// globs are the compiled values that hold a star, nil for the others.
	globs []*regexp.Regexp
}

// Query is a filter that was understood. The zero value lets every row pass.
type Query struct {
	// Any are the alternatives of which one must hold; of each every term must.
	Any [][]Term
}

// Empty reports whether every row passes.
func (q *Query) Empty() bool { return q == nil || len(q.Any) == 0 }

// Error is why a text cannot be understood, and where.
type Error struct {
	Span
	Why string
}

func (e *Error) Error() string { return e.Why }

func fail(at Span, format string, args ...any) *Error {
	return &Error{Span: at, Why: fmt.Sprintf(format, args...)}
}

// maxTerms and maxText bound what is read.
const (
	maxText         = 2000
	maxTerms        = 50
	maxAlternatives = 8
)

// Parse reads a text against the fields of a list. An error is an *Error.
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

// Quote writes a text so that it is read as one text to look for.
func Quote(text string) string {
	if text == "" {
		return `""`
	}
	if !strings.ContainsAny(text, " \t|\"\\:<>=!,/*") && !isNumber(text) {
		return text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func isNumber(text string) bool { return strings.Trim(text, "0123456789") == "" }
