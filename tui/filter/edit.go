package filter

import "strings"

// With is a text of a filter with a term in each of its alternatives in place of those
// that are dropped. An alternative of which nothing is left is left out, since it would
// let everything pass.
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
