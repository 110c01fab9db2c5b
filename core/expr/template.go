package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/jsonvalue"
)

// Template is a text with expressions.
type Template struct {
	source string
	parts  []part
	whole  bool // it is only one expression
}

// part is a piece of text, or an expression.
type part struct {
	text       string
	expression *Expression // nil for text
	at         int
}

const (
	opening = "{{"
	closing = "}}"
)

// ParseTemplate reads a text with any number of expressions.
func ParseTemplate(source string) (*Template, error) {
	t := &Template{source: source}
	for at := 0; at < len(source); {
		begin := strings.Index(source[at:], opening)
		if begin < 0 {
			t.parts = append(t.parts, part{text: source[at:], at: at})
			break
		}
		if begin > 0 {
			t.parts = append(t.parts, part{text: source[at : at+begin], at: at})
		}
		at += begin + len(opening)
		size, ok := untilClosing(source[at:])
		if !ok {
			return nil, &Error{Source: source, Offset: at - len(opening), Text: "the template is not closed by }}"}
		}
		expression, err := Parse(source[at : at+size])
		if err != nil {
			return nil, t.moved(err, at)
		}
		t.parts = append(t.parts, part{expression: expression, at: at})
		at += size + len(closing)
	}
	t.whole = t.single()
	return t, nil
}

// untilClosing is the offset of the first }} that is not in a string.
func untilClosing(s string) (int, bool) {
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.HasPrefix(s[i:], closing):
			return i, true
		}
	}
	return 0, false
}

// single reports whether the text is only one expression with blanks around it.
func (t *Template) single() bool {
	expressions := 0
	for _, p := range t.parts {
		if p.expression != nil {
			expressions++
		} else if strings.TrimSpace(p.text) != "" {
			return false
		}
	}
	return expressions == 1
}

// moved converts the error of an expression to one of the template.
func (t *Template) moved(err error, by int) error {
	inner, ok := err.(*Error) //nolint:errorlint // it is never wrapped here
	if !ok {
		return err
	}
	return &Error{Source: t.source, Offset: by + inner.Offset, Text: inner.Text, Cause: inner.Cause}
}

// Plain reports whether the text has no expressions.
func (t *Template) Plain() bool {
	return !slices.ContainsFunc(t.parts, func(p part) bool { return p.expression != nil })
}

// Eval is the value of the text.
func (t *Template) Eval(scope Scope) (any, error) { return t.EvalWithin(scope, &Budget{}) }

// EvalWithin is Eval for one of several texts that share a budget.
func (t *Template) EvalWithin(scope Scope, all *Budget) (any, error) {
	if t.Plain() {
		return t.source, nil
	}
	var text strings.Builder
	for _, p := range t.parts {
		if p.expression == nil {
			text.WriteString(p.text)
			continue
		}
		value, err := p.expression.EvalWithin(scope, all)
		if err != nil {
			return nil, t.moved(err, p.at)
		}
		if t.whole {
			return value, nil
		}
		if all.steps += weight(value); all.steps > maxRender {
			return nil, &Error{
				Source: t.source, Offset: p.at,
				Text: fmt.Sprintf("the templates take more than %d steps", maxRender),
			}
		}
		text.WriteString(Text(value))
		if all.size+text.Len() > maxSize {
			return nil, &Error{
				Source: t.source, Offset: p.at,
				Text: fmt.Sprintf("the texts become longer than %d bytes", maxSize),
			}
		}
	}
	all.size += text.Len()
	return text.String(), nil
}

// Render evaluates all texts in a value, also in lists and objects, except keys. An error has the place in the value.
// All texts have one budget.
func Render(value any, scope Scope) (any, error) {
	all := &Budget{}
	return render(value, "", 0, func(_, text string) (any, error) {
		t, err := ParseTemplate(text)
		if err != nil {
			return nil, err
		}
		return t.EvalWithin(scope, all)
	})
}

// render returns a value with text of each text in it, which gets the place of the text in the value.
func render(value any, path string, depth int, text func(at, text string) (any, error)) (any, error) {
	if depth > jsonvalue.Depth {
		return nil, fmt.Errorf("%s: nested deeper than %d", path, jsonvalue.Depth)
	}
	switch v := value.(type) {
	case string:
		rendered, err := text(path, v)
		if err != nil && path != "" {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return rendered, err
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = render(item, path+"["+strconv.Itoa(i)+"]", depth+1, text); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, key := range sortedKeys(v) {
			rendered, err := render(v[key], under(path, key), depth+1, text)
			if err != nil {
				return nil, err
			}
			object[key] = rendered
		}
		return object, nil
	default:
		return Value(v), nil
	}
}

func under(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
