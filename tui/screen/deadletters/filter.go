package deadletters

import (
	"fmt"
	"strconv"
	"strings"
)

// term is one condition of a filter.
type term struct{ field, text string }

// fields are what a filter can name, and how a row says them.
var fields = map[string]func(*row) string{
	"reason": func(r *row) string { return r.reason }, "action": func(r *row) string { return r.action }, "type": func(r *row) string { return r.kind },
	"from": func(r *row) string { return r.from }, "verdict": func(r *row) string { return r.verdict.text }, "status": func(r *row) string { return r.now },
	"decision": func(r *row) string { return r.decision }, "error": func(r *row) string { return r.problem },
	"execution": func(r *row) string { return strconv.FormatInt(r.execution, 10) },
}

// fieldNames lists them in the order in which a refusal names them.
var fieldNames = []string{"reason", "action", "type", "from", "verdict", "status", "decision", "error", "execution"}

// parseFilter reads terms that all have to match: field:text, where a star stands for
// anything, or a word that any field contains.
func parseFilter(text string) ([]term, error) {
	var terms []term
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		field, value, named := strings.Cut(word, ":")
		if !named {
			terms = append(terms, term{"", word})
			continue
		}
		if _, known := fields[field]; !known {
			return nil, fmt.Errorf("%q is no field: use one of %s", field, strings.Join(fieldNames, ", "))
		}
		terms = append(terms, term{field, value})
	}
	return terms, nil
}

func (t term) matches(r *row) bool {
	if t.field != "" {
		return like(t.text, strings.ToLower(fields[t.field](r)))
	}
	for _, name := range fieldNames {
		if strings.Contains(strings.ToLower(fields[name](r)), t.text) {
			return true
		}
	}
	return strings.Contains(strings.ToLower(r.name), t.text)
}

// like compares a text with a pattern of stars. Without a star the pattern is a
// beginning.
func like(pattern, text string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !strings.HasPrefix(text, head) {
		return false
	}
	if !star {
		return true
	}
	text = text[len(head):]
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

func matchesAll(terms []term, r *row) bool {
	for _, t := range terms {
		if !t.matches(r) {
			return false
		}
	}
	return true
}
