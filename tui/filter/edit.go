package filter

import "strings"

// With replaces terms in every alternative of a filter: it removes the terms that drop selects and adds a term. An
// alternative that becomes empty is removed, since it would match everything.
func With(schema Schema, text, term string, drop func(*Term) bool) (string, error) {
	q, err := Parse(schema, text)
	if err != nil {
		return "", err
	}
	var list []string
	for _, terms := range q.Any {
		var kept []string
		for i := range terms {
			if t := &terms[i]; !drop(t) {
				kept = append(kept, text[t.From:t.To])
			}
		}
		if term != "" {
			kept = append(kept, term)
		}
		if len(kept) > 0 {
			list = append(list, strings.Join(kept, " "))
		}
	}
	if len(list) == 0 {
		return term, nil
	}
	return strings.Join(list, " | "), nil
}
