package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/schema"
)

// prompter asks a person for a response, field by field.
type prompter struct {
	in     *bufio.Reader
	out    io.Writer
	hidden func() (string, error) // reads what shall not be shown; nil reads it openly
}

// promptField is what a schema says of one value, as far as a person is asked.
type promptField struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Enum        []any           `json:"enum"`
	Default     json.RawMessage `json:"default"`
	Required    any             `json:"required"` // a list in JSON Schema
	Secret      bool            `json:"secret"`

	name   string
	must   bool
	single bool           // it is the whole response
	rules  *schema.Schema // nil allows everything
}

// maxTries is how often a person may write what does not fit.
const maxTries = 5

// ask asks for everything that the schema names, or for any JSON, and has it
// confirmed.
func (p *prompter) ask(prompt string, form json.RawMessage) (json.RawMessage, error) {
	p.printf("%s\n", clean(prompt))
	fields, single := promptFields(form)
	var response any
	var err error
	if single != nil {
		response, _, err = p.field(single)
	} else {
		response, err = p.object(fields)
	}
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(response)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	p.printf("answer it so? y or n: ")
	line, err := p.line()
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(line, "y") && !strings.EqualFold(line, "yes") {
		return nil, refusedErrorf("nothing was answered: you did not say y")
	}
	return raw, nil
}

func (p *prompter) object(fields []promptField) (map[string]any, error) {
	response := map[string]any{}
	for i := range fields {
		value, given, err := p.field(&fields[i])
		if err != nil {
			return nil, err
		}
		if given {
			response[fields[i].name] = value
		}
	}
	return response, nil
}

// field asks for one value until it is of its type. An empty line leaves out what is
// not required.
func (p *prompter) field(f *promptField) (value any, given bool, err error) {
	for range maxTries {
		p.printf("%s: ", f.label())
		var line string
		if f.Secret && p.hidden != nil {
			line, err = p.hidden()
		} else {
			line, err = p.line()
		}
		if err != nil {
			return nil, false, err
		}
		if line == "" {
			if len(f.Default) > 0 {
				return f.Default, true, nil
			}
			if !f.must {
				return nil, false, nil
			}
			p.printf("  it is required\n")
			continue
		}
		value, why := f.read(line)
		if why == "" {
			return value, true, nil
		}
		p.printf("  %s\n", why)
	}
	return nil, false, refusedErrorf("nothing was answered: %s did not fit %d times", f.name, maxTries)
}

// label is the name of a field and what it takes.
func (f *promptField) label() string {
	var takes []string
	if f.Type != "" {
		takes = append(takes, f.Type)
	}
	if len(f.Enum) > 0 {
		words := make([]string, len(f.Enum))
		for i, one := range f.Enum {
			words[i] = fmt.Sprint(one)
		}
		takes = append(takes, "one of "+strings.Join(words, ", "))
	}
	switch {
	case len(f.Default) > 0 && !f.Secret:
		takes = append(takes, "default "+string(f.Default))
	case f.must:
		takes = append(takes, "required")
	}
	text := f.name
	if about := cmp.Or(f.Description, f.Title); about != "" {
		text += " - " + about
	}
	if len(takes) > 0 {
		text += " (" + strings.Join(takes, "; ") + ")"
	}
	return clean(text)
}

// read makes a value of a line, or says why it is none.
func (f *promptField) read(line string) (value any, why string) {
	value = line
	if f.Type != "string" {
		if parsed, ok := parseJSON(line); ok {
			value = parsed
		}
	}
	if f.Type == "boolean" {
		switch strings.ToLower(line) {
		case "y", "yes", "true":
			value = true
		case "n", "no", "false":
			value = false
		default:
			return nil, "say y or n"
		}
	}
	if f.rules == nil {
		return value, ""
	}
	return value, schema.Words(f.rules.Validate(expr.Value(f.wrapped(value))))
}

// wrapped is the value as the rules of the field know it.
func (f *promptField) wrapped(value any) any {
	if f.single {
		return value
	}
	return map[string]any{f.name: value}
}

// promptFields are the fields of either form of a schema, what is required first; or
// the one value that is asked for when it is no object.
func promptFields(form json.RawMessage) (fields []promptField, single *promptField) {
	var raw map[string]json.RawMessage
	if json.Unmarshal(form, &raw) != nil || len(raw) == 0 {
		return nil, &promptField{name: "answer", must: true}
	}
	var whole promptField
	var required []string
	if json.Unmarshal(raw["type"], &whole.Type) == nil && whole.Type != "object" {
		if json.Unmarshal(form, &whole) == nil {
			whole.name, whole.must, whole.single = "answer", true, true
			whole.rules, _ = schema.Parse(form) // one that cannot be read allows everything
			return nil, &whole
		}
	}
	if whole.Type == "object" {
		_ = json.Unmarshal(raw["required"], &required) // there may be none
		var properties map[string]json.RawMessage
		if json.Unmarshal(raw["properties"], &properties) != nil {
			return nil, &promptField{name: "answer", Type: "object", must: true}
		}
		raw = properties
	}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		f := promptField{}
		if json.Unmarshal(raw[name], &f) != nil {
			f = promptField{}
		}
		f.name = name
		f.must = f.Required == true || slices.Contains(required, name)
		f.rules = rulesOf(name, raw[name])
		fields = append(fields, f)
	}
	slices.SortStableFunc(fields, func(x, y promptField) int {
		if x.must == y.must {
			return 0
		}
		if x.must {
			return -1
		}
		return 1
	})
	return fields, nil
}

// rulesOf are the rules of one field, as an object with nothing else.
func rulesOf(name string, form json.RawMessage) *schema.Schema {
	one, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]json.RawMessage{name: form}})
	if err != nil {
		return nil
	}
	rules, err := schema.Parse(one)
	if err != nil {
		return nil
	}
	return rules
}

func (p *prompter) line() (string, error) {
	line, err := p.in.ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || line == "") {
		return "", refusedErrorf("nothing was answered: the input ended")
	}
	return strings.TrimSpace(line), nil
}

func (p *prompter) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format, args...) // that it cannot be written is no reason to fail
}
