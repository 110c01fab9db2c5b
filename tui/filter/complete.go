package filter

import (
	"slices"
	"strings"
)

// Completion lists the possible completions at the caret.
type Completion struct {
	// Span is the part of the text that an offer replaces.
	Span
	// Offers are in the order of the completion. A complete value ends with a space, the name of a field with its
	// operator.
	Offers []string
}

const maxOffers = 50

// Complete lists the completions at the caret, a byte offset: names of fields, or the values of a field. known adds
// values to those of the schema.
func Complete(schema Schema, text string, caret int, known func(field string) []string) Completion {
	caret = max(0, min(caret, len(text)))
	begin := termBegin(text[:caret])
	for begin < caret && text[begin] == '!' {
		begin++
	}
	name, op, behind := operator(text[begin:caret])
	if op == "" {
		return schema.names(text, Span{begin, caret})
	}
	field, ok := schema.Field(name)
	if !ok || op != Is {
		return Completion{Span: Span{caret, caret}}
	}
	list := values(text, Span{begin + behind, caret})
	last := list[len(list)-1]
	c := Completion{Span: Span{last.From, caret}}
	all := slices.Clone(field.Values)
	if known != nil {
		all = append(all, known(field.Name)...)
	}
	for _, v := range all {
		begins := len(v) >= len(last.text) && strings.EqualFold(v[:len(last.text)], last.text)
		if v != "" && begins && len(c.Offers) < maxOffers {
			if offer := quoteValue(v) + " "; !slices.Contains(c.Offers, offer) {
				c.Offers = append(c.Offers, offer)
			}
		}
	}
	return c
}

// termBegin is where the last term of a text begins. After a space that is the end of the text.
func termBegin(text string) int {
	for at := 0; at < len(text); {
		if blank(text[at]) || text[at] == '|' {
			at++
			continue
		}
		end, err := termEnd(text, at)
		if err != nil || end == len(text) {
			return at
		}
		at = end
	}
	return len(text)
}

// names offers the fields with a common prefix.
func (s Schema) names(text string, at Span) Completion {
	c := Completion{Span: at}
	written := strings.ToLower(text[at.From:at.To])
	for _, f := range s {
		if strings.HasPrefix(f.Name, written) {
			sign := ":"
			switch f.Kind {
			case Number, Age:
				sign = ">"
			case Param:
				sign = "."
			}
			c.Offers = append(c.Offers, f.Name+sign)
		}
	}
	if strings.HasPrefix(regexWord, written) {
		c.Offers = append(c.Offers, regexWord)
	}
	return c
}
