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
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/schema"
)

// AnswerForm is the form of a response by its schema, with one field for each value.
type AnswerForm struct {
	Fields []AnswerField

	whole bool           // the only field is the whole response
	rules *schema.Schema // nil allows everything
}

// AnswerField is one value of a response.
type AnswerField struct {
	// Name is its key in the response; "answer" for the whole response.
	Name string
	// About is the description of the schema, Words describes the allowed values.
	About, Words string
	Required     bool
	Secret       bool
	// Choices are the texts of all allowed values of an enumeration.
	Choices []string
	// Default is the initial text.
	Default string

	kinds  []string // the types by name; none allows all
	values []any    // of the choices
	whole  bool
	rules  *schema.Schema
}

// fieldText are the keywords of a schema for one value.
type fieldText struct {
	Type        any             `json:"type"` // a name or a list of names
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

// NewAnswerForm makes the form of a schema of either kind. A malformed schema gives one field for any value.
func NewAnswerForm(raw json.RawMessage) *AnswerForm {
	f := &AnswerForm{}
	f.rules, _ = schema.Parse(raw) // a malformed schema allows everything
	properties, required, ok := propertiesOf(raw)
	if !ok {
		field, _ := answerField("answer", raw)
		field.Required, field.whole, f.whole = true, true, true
		field.rules = f.rules
		f.Fields = []AnswerField{field}
		return f
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

// propertiesOf returns the properties of an object's schema and the required ones; false for any other schema.
func propertiesOf(raw json.RawMessage) (properties map[string]json.RawMessage, required []string, ok bool) {
	var object map[string]any
	if json.Unmarshal(raw, &object) == nil && schema.IsFlat(object) {
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

func rank(b bool) int { return map[bool]int{true: 1}[b] }

// answerField makes the field of one value by its schema.
func answerField(name string, raw json.RawMessage) (field AnswerField, position float64) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	var text fieldText
	if jsonvalue.Decode(raw, &text) != nil {
		text = fieldText{}
	}
	field = AnswerField{
		Name: name, About: cmp.Or(text.Description, text.Label, text.Title), Required: text.Required == true,
		Secret: text.Secret, kinds: kindsOf(text.Type),
	}
	if one, err := json.Marshal(map[string]any{
		"type":       "object",
		"properties": map[string]json.RawMessage{name: raw},
	}); err == nil {
		field.rules, _ = schema.Parse(one) // a malformed schema allows everything
	}
	switch {
	case len(text.Enum) > 0:
		for _, value := range text.Enum {
			field.Choices = append(field.Choices, expr.Text(expr.Value(value)))
			field.values = append(field.values, value)
		}
	case slices.Equal(field.kinds, []string{"boolean"}):
		field.Choices, field.values = []string{"yes", "no"}, []any{true, false}
	}
	field.Words = text.words(field.kinds, field.Choices)
	field.Default = field.written(text.Default)
	return field, text.Position
}

// kindsOf lists the types that a schema names, none if it allows any.
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

// words describes the allowed values.
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

// written is the text of a default.
func (f *AnswerField) written(raw json.RawMessage) string {
	var value any
	if len(raw) == 0 || f.Secret || jsonvalue.Decode(raw, &value) != nil || value == nil {
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

// read makes a value of a text; given is false for an empty text.
func (f *AnswerField) read(text string) (value any, given bool, err error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		if f.Required {
			return nil, false, errors.New("it is required")
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
	if json.Valid([]byte(trimmed)) {
		if err := jsonvalue.Check("", []byte(trimmed)); err != nil {
			return nil, false, err
		}
		if jsonvalue.Decode([]byte(trimmed), &value) == nil {
			return value, true, nil
		}
	}
	if len(f.kinds) == 0 || slices.Contains(f.kinds, "string") {
		return text, true, nil
	}
	return nil, false, errors.New("it is not " + f.Words)
}

// choice finds the choice of a text, -1 for none. Yes and no may also be y and n, true and false.
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

// Check says why a text is no allowed value.
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

// Compose makes the response from the texts of its fields. problems has the mistakes by field; "" has those of the
// whole.
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
			f.assign(problems, m.String())
		}
	}
	return response, problems
}

// ByField assigns the mistakes of a refused answer to the fields that they concern.
func (f *AnswerForm) ByField(mistakes []string) map[string]string {
	problems := map[string]string{}
	for _, text := range mistakes {
		f.assign(problems, text)
	}
	return problems
}

func (f *AnswerForm) assign(problems map[string]string, mistake string) {
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
