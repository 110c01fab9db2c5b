package filter

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Row gives a query the data of a row.
type Row interface {
	// Texts are the texts of a field. The empty name means the texts that a term without a field matches.
	Texts(field string) []string
	// Number is the number of a field, ages in seconds; false if it is unknown.
	Number(field string) (float64, bool)
}

// Matches reports whether a row matches. An unknown number matches no comparison.
func (q *Query) Matches(row Row) bool {
	if q.Empty() {
		return true
	}
	return slices.ContainsFunc(q.Any, func(terms []Term) bool {
		for i := range terms {
			t := &terms[i]
			var matches bool
			if t.Kind == Number || t.Kind == Age {
				n, known := row.Number(t.Field)
				matches = known && t.compares(n)
			} else {
				matches = slices.ContainsFunc(row.Texts(t.Field), t.fits)
			}
			if matches == t.Not {
				return false
			}
		}
		return true
	})
}

func (t *Term) compares(n float64) bool {
	switch t.Op {
	case Less:
		return n < t.Number
	case LessEqual:
		return n <= t.Number
	case More:
		return n > t.Number
	case MoreEqual:
		return n >= t.Number
	default:
		return n == t.Number
	}
}

func (t *Term) fits(text string) bool {
	if t.Regex != nil {
		return t.Regex.MatchString(text)
	}
	for i, v := range t.Values {
		switch {
		case t.Kind == ID:
			from, to, _ := idRange(v)
			if id, err := strconv.ParseInt(text, 10, 64); err == nil && from <= id && id <= to {
				return true
			}
		case t.globs[i] != nil && t.globs[i].MatchString(text),
			t.globs[i] == nil && t.Kind == Within && strings.Contains(strings.ToLower(text), strings.ToLower(v)),
			t.globs[i] == nil && t.Kind != Within && strings.EqualFold(text, v):
			return true
		}
	}
	return false
}

// prepare compiles the values with a star.
func (t *Term) prepare() {
	t.globs = make([]*regexp.Regexp, len(t.Values))
	for i, v := range t.Values {
		if strings.Contains(v, "*") {
			t.globs[i] = regexp.MustCompile("(?is)" + Pattern(v, t.Kind == Within))
		}
	}
}

// Pattern writes a value as a regular expression for both Go and PostgreSQL. A star matches anything.
func Pattern(value string, within bool) string {
	parts := strings.Split(value, "*")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	expression := strings.Join(parts, ".*")
	if within {
		return expression
	}
	return "^" + expression + "$"
}
