package filter

import "strings"

// token is a term or a bar.
type token struct {
	Span
	bar bool
}

// split finds terms and bars. Quotes and slashes protect their content.
func split(text string) ([]token, *Error) {
	var tokens []token
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case blank(c):
			at++
		case c == '|':
			tokens = append(tokens, token{Span{at, at + 1}, true})
			at++
		default:
			end, err := termEnd(text, at)
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, token{Span: Span{at, end}})
			at = end
		}
	}
	return tokens, nil
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// regexWord begins a regular expression.
const regexWord = "regex:/"

// termEnd is the end of the term that begins at from.
func termEnd(text string, from int) (int, *Error) {
	body := from
	for body < len(text) && text[body] == '!' {
		body++
	}
	if strings.HasPrefix(text[body:], regexWord) {
		open := body + len(regexWord)
		for at := open; at < len(text); at++ {
			switch text[at] {
			case '\\':
				at++
			case '/':
				if at++; at < len(text) && !blank(text[at]) && text[at] != '|' {
					return 0, fail(Span{from, at + 1}, "a space is missing behind the expression")
				}
				return at, nil
			}
		}
		return 0, fail(Span{open - 1, len(text)}, "the expression does not end: / is missing")
	}
	for at := body; at < len(text); at++ {
		switch c := text[at]; {
		case blank(c) || c == '|':
			return at, nil
		case c == '"':
			end, err := quoteEnd(text, at)
			if err != nil {
				return 0, err
			}
			at = end - 1
		}
	}
	return len(text), nil
}

// quoteEnd is the position after the closing quote.
func quoteEnd(text string, open int) (int, *Error) {
	for at := open + 1; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1, nil
		}
	}
	return 0, fail(Span{open, len(text)}, "the quote is not closed")
}

// value is a value of a term with its position.
type value struct {
	Span
	text   string
	quoted bool
}

// values splits values at commas outside of quotes.
func values(text string, at Span) []value {
	var list []value
	var b strings.Builder
	one := value{Span: Span{at.From, at.From}}
	for i := at.From; i < at.To; i++ {
		switch c := text[i]; c {
		case '"':
			end, _ := quoteEnd(text, i)
			if end == 0 || end > at.To {
				end = at.To
			}
			b.WriteString(unquote(text[i:end]))
			one.quoted = true
			i = end - 1
		case ',':
			one.text, one.To = b.String(), i
			list = append(list, one)
			b.Reset()
			one = value{Span: Span{i + 1, i + 1}}
		default:
			b.WriteByte(c)
		}
	}
	one.text, one.To = b.String(), at.To
	return append(list, one)
}

// unquote removes quotes and backslashes.
func unquote(text string) string {
	text = strings.TrimSuffix(strings.TrimPrefix(text, `"`), `"`)
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
