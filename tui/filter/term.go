package filter

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/phrase"
)

// term parses a term.
func (s Schema) term(text string, tok token) (Term, *Error) {
	t := Term{Span: tok.Span, Op: Is, Kind: Within}
	body := tok.From
	for body < tok.To && text[body] == '!' {
		body++
		t.Not = !t.Not
	}
	if body == tok.To {
		return t, fail(tok.Span, "! stands before a term")
	}
	if strings.HasPrefix(text[body:tok.To], regexWord) {
		return t, t.expression(text, Span{body + len(regexWord), tok.To - 1})
	}
	name, op, from := operator(text[body:tok.To])
	if op == "" {
		return t, t.bare(text, Span{body, tok.To})
	}
	at, rest := Span{body, body + len(name)}, Span{body + from, tok.To}
	field, known := s.Field(name)
	if !known {
		return t, fail(at, "there is no field %q here; in quotes it is a text", name)
	}
	t.Field, t.Kind, t.Op = field.Name, field.Kind, op
	if rest.From == rest.To {
		return t, fail(tok.Span, "%s has no value", name)
	}
	if field.Kind == Param {
		if _, t.Path, _ = strings.Cut(name, "."); slices.Contains(strings.Split(t.Path, "."), "") {
			return t, fail(at, "name the parameter: %s.NAME:…", field.Name)
		}
	}
	return t, t.read(field, text, rest, Span{at.To, rest.From})
}

// operator splits a term into field and operator. A term that begins with a quote has no operator.
func operator(term string) (name string, op Op, behind int) {
	at := strings.IndexAny(term, `:<>="`)
	if at < 0 || term[at] == '"' {
		return "", "", 0
	}
	sign := strings.TrimPrefix(term[at:], ":") // age:>10m means age>10m
	for _, op := range []Op{LessEqual, MoreEqual, Less, More} {
		if strings.HasPrefix(sign, string(op)) {
			return term[:at], op, len(term) - len(sign) + len(op)
		}
	}
	return term[:at], Is, at + 1
}

// bare parses a text without a field.
func (t *Term) bare(text string, at Span) *Error {
	for _, v := range values(text, at) {
		if v.text == "" && !v.quoted {
			return fail(at, "a comma stands between two texts")
		}
		t.Values = append(t.Values, v.text)
	}
	return nil
}

// expression parses the part between the slashes of regex:/…/.
func (t *Term) expression(text string, at Span) *Error {
	source := strings.ReplaceAll(text[at.From:at.To], `\/`, `/`)
	if source == "" {
		return fail(Span{t.From, t.To}, "the expression is empty")
	}
	compiled, err := regexp.Compile("(?i)" + source)
	if err != nil {
		why := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return fail(at, "not an expression: %s", strings.ReplaceAll(why, "(?i)", ""))
	}
	t.Regex, t.Values = compiled, []string{source}
	return nil
}

// read parses the values of a field.
func (t *Term) read(field Field, text string, at, op Span) *Error {
	if field.Kind == Number || field.Kind == Age {
		return t.compare(field, text[at.From:at.To], at, op)
	}
	if t.Op != Is {
		name := t.name()
		return fail(op, "%s is not compared: write %s:", name, name)
	}
	for _, v := range values(text, at) {
		switch {
		case v.text == "" && !v.quoted:
			return fail(Span{v.From, min(v.To+1, at.To)}, "a value of %s is missing", field.Name)
		case field.Kind == Word:
			v.text = strings.ToLower(v.text)
			if !slices.Contains(field.Values, v.text) {
				return fail(v.Span, "%s is one of %s", field.Name, strings.Join(field.Values, ", "))
			}
		case field.Kind == ID:
			if _, _, ok := idRange(v.text); !ok {
				return fail(v.Span, "%s needs a number, or a range such as 10..20", field.Name)
			}
		}
		t.Values = append(t.Values, v.text)
	}
	return nil
}

// idRange parses an id or a range of ids.
func idRange(text string) (from, to int64, ok bool) {
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		last = first
	}
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil || from < 1 {
		return 0, 0, false
	}
	to, err = strconv.ParseInt(last, 10, 64)
	return from, to, err == nil && to >= from
}

// name is the field as written.
func (t *Term) name() string {
	if t.Path != "" {
		return t.Field + "." + t.Path
	}
	return t.Field
}

// compare parses the number of a comparison.
func (t *Term) compare(field Field, text string, at, op Span) *Error {
	if field.Kind == Number {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fail(at, "%s needs a number", field.Name)
		}
		t.Number, t.Values = float64(n), []string{text}
		return nil
	}
	if t.Op == Is {
		return fail(op, "an age is compared: %s>10m or %s<1h", field.Name, field.Name)
	}
	d, err := phrase.ParseSpan(text)
	if err != nil || d <= 0 {
		return fail(at, "%q is no age such as 90s, 10m, 2h or 3d", text)
	}
	t.Number, t.Values = d.Seconds(), []string{text}
	return nil
}

// String writes the term so that Parse reads it back.
func (t *Term) String() string {
	head := ""
	if t.Not {
		head = "!"
	}
	if t.Regex != nil {
		return head + regexWord + strings.ReplaceAll(t.Values[0], "/", `\/`) + "/"
	}
	list := make([]string, len(t.Values))
	for i, v := range t.Values {
		list[i] = quoteValue(v)
	}
	text := strings.Join(list, ",")
	if t.Field == "" {
		return head + text
	}
	return head + t.name() + string(t.Op) + text
}

// Quote writes a text so that it is parsed as one text.
func Quote(text string) string {
	if isNumber(text) || strings.Contains(text, "*") {
		return quoted(text)
	}
	return quoteValue(text)
}

func isNumber(text string) bool { return strings.Trim(text, "0123456789") == "" }

// quoteValue quotes a value if Parse would read it differently.
func quoteValue(text string) string {
	if text == "" || strings.ContainsAny(text, " \t\r\n|\"\\:<>=!,/") {
		return quoted(text)
	}
	return text
}

func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// String writes the query so that Parse reads it back.
func (q *Query) String() string {
	if q.Empty() {
		return ""
	}
	parts := make([]string, len(q.Any))
	for i, terms := range q.Any {
		words := make([]string, len(terms))
		for j := range terms {
			words[j] = terms[j].String()
		}
		parts[i] = strings.Join(words, " ")
	}
	return strings.Join(parts, " | ")
}
