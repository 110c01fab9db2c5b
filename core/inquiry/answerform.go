package inquiry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/schema"
)

// AnswerForm is what a person is asked for by the schema of an inquiry's response, one
// field for each value.
type AnswerForm struct {
	Fields []AnswerField
	// whole says that the only field is the whole response.
	whole bool
	rules *schema.Schema // nil allows everything
}

// AnswerField is one value of a response.
type AnswerField struct {
	// Name is its key in the response; "answer" where it is the whole of it.
	Name string
	// About is what the schema says of it for people, Words what fits.
	About, Words string
	Required     bool
	Secret       bool
	// Choices are all values that fit, where these are few; the texts stand for them.
	Choices []string
	// Default is what stands there at first.
	Default string

	kinds  []string // the types by name; none allows all
	values []any    // of the choices
	whole  bool
	rules  *schema.Schema
}

// fieldText is what a schema says of one value, as far as people are told.
type fieldText struct {
	Type        any             `json:"type"` // a word or a list of these
	Title       string          `json:"title"`
	Label       string          `json:"label"`
	Description string          `json:"description"`
	Enum        []any           `json:"enum"`
	Default     json.RawMessage `json:"default"`
	Required    any             `json:"required"` // a list in JSON Schema
	Secret      bool            `json:"secret"`
	Position    float64         `json:"position"`
	Minimum     *json.Number    `json:"minimum"`
	Maximum     *json.Number    `json:"maximum"`
	MinLength   *int            `json:"minLength"`
	MaxLength   *int            `json:"maxLength"`
	Pattern     string          `json:"pattern"`
}

// answerName is what a response is called that is one value.
const answerName = "answer"

// NewAnswerForm makes the form of a schema of either kind. What cannot be read asks
// for any one value.
func NewAnswerForm(raw json.RawMessage) *AnswerForm {
	f := &AnswerForm{}
	f.rules, _ = schema.Parse(raw) // one that cannot be read allows everything
	properties, required, ok := propertiesOf(raw)
	if !ok {
		return f.single(raw)
	}
	position := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field, at := answerField(name, properties[name])
		field.Required = field.Required || slices.Contains(required, name)
		position[name] = at
		f.Fields = append(f.Fields, field)
	}
	slices.SortStableFunc(f.Fields, func(a, b AnswerField) int {
		return cmp.Or(cmp.Compare(position[a.Name], position[b.Name]), cmp.Compare(rank(b.Required), rank(a.Required)))
	})
	return f
}

// propertiesOf lists what a schema says of the values of an object, and which of these
// are required; false of a schema of anything else.
func propertiesOf(raw json.RawMessage) (properties map[string]json.RawMessage, required []string, ok bool) {
	if schema.IsFlat(raw) {
		return properties, nil, json.Unmarshal(raw, &properties) == nil && len(properties) > 0
	}
	var whole struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(raw, &whole) != nil || len(whole.Properties) == 0 {
		return nil, nil, false
	}
	kinds := kindsOf(whole.Type)
	return whole.Properties, whole.Required, len(kinds) == 0 || slices.Equal(kinds, []string{"object"})
}

// single makes the form of a response that is one value.
func (f *AnswerForm) single(raw json.RawMessage) *AnswerForm {
	field, _ := answerField(answerName, raw)
	field.Required, field.whole, f.whole = true, true, true
	field.rules = f.rules
	f.Fields = []AnswerField{field}
	return f
}

func rank(b bool) int { return map[bool]int{true: 1}[b] }

// answerField reads what a schema says of one value, and where it wants to stand.
func answerField(name string, raw json.RawMessage) (field AnswerField, position float64) {
	var text fieldText
	if decode(raw, &text) != nil {
		text = fieldText{}
	}
	field = AnswerField{
		Name: name, About: cmp.Or(text.Description, text.Label, text.Title), Required: text.Required == true,
		Secret: text.Secret,
		kinds:  kindsOf(text.Type),
	}
	if one, err := json.Marshal(map[string]any{"type": "object",
		"properties": map[string]json.RawMessage{name: orObject(raw)}}); err == nil {
		field.rules, _ = schema.Parse(one) // one that cannot be read allows everything
	}
	switch {
	case len(text.Enum) > 0:
		for _, value := range text.Enum {
			field.Choices, field.values = append(field.Choices, expr.Text(expr.Value(value))), append(field.values,
				value)
		}
	case slices.Equal(field.kinds, []string{"boolean"}):
		field.Choices, field.values = []string{"yes", "no"}, []any{true, false}
	}
	field.Words = text.words(field.kinds, field.Choices)
	field.Default = field.written(text.Default)
	return field, text.Position
}

func orObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// decode reads JSON and keeps every digit of its numbers.
func decode(raw json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// kindsOf lists the types that a schema names; none where any fits.
func kindsOf(named any) []string {
	list, ok := named.([]any)
	if !ok {
		list = []any{named}
	}
	var kinds []string
	for _, one := range list {
		word, _ := one.(string)
		if word == "any" || word == "" {
			return nil
		}
		kinds = append(kinds, word)
	}
	return kinds
}

// words says what fits.
func (t *fieldText) words(kinds, choices []string) string {
	if len(choices) > 0 {
		if slices.Equal(choices, []string{"yes", "no"}) {
			return "yes or no"
		}
		return "one of " + strings.Join(choices, ", ")
	}
	says := map[string]string{
		"string": "text", "integer": "a whole number", "number": "a number", "boolean": "yes or no",
		"array": "a list as JSON: [ … ]", "object": "an object as JSON: { … }", "null": "null",
	}
	var parts []string
	for _, kind := range kinds {
		parts = append(parts, cmp.Or(says[kind], kind))
	}
	text := cmp.Or(strings.Join(parts, " or "), "text, or any JSON")
	bound := func(what string, limit any) { text += fmt.Sprintf(", %s %v", what, limit) }
	if t.Minimum != nil {
		bound("at least", *t.Minimum)
	}
	if t.Maximum != nil {
		bound("at most", *t.Maximum)
	}
	if t.MinLength != nil && *t.MinLength > 0 {
		bound("characters at least", *t.MinLength)
	}
	if t.MaxLength != nil {
		bound("characters at most", *t.MaxLength)
	}
	if t.Pattern != "" {
		bound("like", t.Pattern)
	}
	return text
}

// written is a default as a person would write it.
func (f *AnswerField) written(raw json.RawMessage) string {
	var value any
	if len(raw) == 0 || f.Secret || decode(raw, &value) != nil || value == nil {
		return ""
	}
	for i, choice := range f.values {
		if a, err := json.Marshal(choice); err == nil && bytes.Equal(a, compact(raw)) {
			return f.Choices[i]
		}
	}
	if text, ok := value.(string); ok {
		return text
	}
	return string(compact(raw))
}

func compact(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return raw
	}
	return out.Bytes()
}

// errRequired says that a value is missing.
var errRequired = errors.New("it is required")

// read makes a value of what was written; given is false for a value that was left
// out.
func (f *AnswerField) read(text string) (value any, given bool, err error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		if f.Required {
			return nil, false, errRequired
		}
		return nil, false, nil
	}
	if len(f.Choices) > 0 {
		at := f.choice(trimmed)
		if at < 0 {
			return nil, false, errors.New("say " + f.Words)
		}
		return f.values[at], true, nil
	}
	if slices.Equal(f.kinds, []string{"string"}) {
		return text, true, nil
	}
	if json.Valid([]byte(trimmed)) && decode(json.RawMessage(trimmed), &value) == nil {
		return value, true, nil
	}
	if len(f.kinds) == 0 || slices.Contains(f.kinds, "string") {
		return text, true, nil
	}
	return nil, false, errors.New("it is not " + f.Words)
}

// choice finds the choice that a text stands for; -1 is none. Yes and no are known by
// their first letter too, and as JSON has them.
func (f *AnswerField) choice(text string) int {
	if slices.Equal(f.kinds, []string{"boolean"}) && len(f.Choices) == 2 {
		switch strings.ToLower(text) {
		case "y", "true":
			text = "yes"
		case "n", "false":
			text = "no"
		}
	}
	return slices.IndexFunc(f.Choices, func(choice string) bool { return strings.EqualFold(choice, text) })
}

// Check says why a text cannot be the value, or nothing.
func (f *AnswerField) Check(text string) error {
	value, given, err := f.read(text)
	if err != nil || !given || f.rules == nil {
		return err
	}
	known := expr.Value(value)
	if !f.whole {
		known = map[string]any{f.Name: known}
	}
	mistakes := f.rules.Validate(known)
	if len(mistakes) == 0 {
		return nil
	}
	words := make([]string, len(mistakes))
	for i, m := range mistakes {
		words[i] = strings.TrimSpace(strings.TrimPrefix(m.Path, f.Name) + " " + m.Text)
	}
	return errors.New(strings.Join(words, "; "))
}

// Compose makes the response of what was written for its fields. What is wrong with
// it is said by the names of the fields; what concerns none of them has no name.
func (f *AnswerForm) Compose(texts map[string]string) (response json.RawMessage, problems map[string]string) {
	problems, object := map[string]string{}, map[string]any{}
	var whole any
	for i := range f.Fields {
		field := &f.Fields[i]
		if err := field.Check(texts[field.Name]); err != nil {
			problems[field.Name] = err.Error()
			continue
		}
		if value, given, err := field.read(texts[field.Name]); err == nil && given {
			object[field.Name], whole = value, value
		}
	}
	var value any = object
	if f.whole {
		value = whole
	}
	if len(problems) > 0 {
		return nil, problems
	}
	response, err := json.Marshal(value)
	if err != nil {
		problems[""] = err.Error()
		return nil, problems
	}
	if f.rules != nil {
		for _, m := range f.rules.Validate(expr.Value(value)) {
			f.blame(problems, m.String())
		}
	}
	return response, problems
}

// Blame tells of mistakes by the names of the fields that they are about.
func (f *AnswerForm) Blame(mistakes []string) map[string]string {
	problems := map[string]string{}
	for _, text := range mistakes {
		f.blame(problems, text)
	}
	return problems
}

func (f *AnswerForm) blame(problems map[string]string, mistake string) {
	name, text := "", mistake
	for _, field := range f.Fields {
		rest, ok := strings.CutPrefix(mistake, field.Name)
		if field.whole {
			name = field.Name
		} else if ok && (rest == "" || strings.ContainsAny(rest[:1], " .[")) && len(field.Name) > len(name) {
			name, text = field.Name, strings.TrimSpace(rest)
		}
	}
	if before := problems[name]; before != "" {
		text = before + "; " + text
	}
	problems[name] = text
}
