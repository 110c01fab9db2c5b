package inquiry

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

const flatForm = `{"ok": {"type": "boolean", "required": true, "description": "deploy it", "position": 1},
	"where": {"type": "string", "enum": ["old", "new"], "default": "new", "position": 2},
	"port": {"type": "integer", "minimum": 1, "maximum": 65535, "position": 3},
	"tags": {"type": "array", "items": {"type": "string"}, "position": 4},
	"key": {"type": "string", "secret": true, "default": "hidden", "position": 5}}`

func TestAFormHasAFieldForEachValue(t *testing.T) {
	t.Parallel()
	form := NewAnswerForm(json.RawMessage(flatForm))
	var names []string
	fields := map[string]AnswerField{}
	for _, f := range form.Fields {
		names = append(names, f.Name)
		fields[f.Name] = f
	}
	require.Equal(t, []string{"ok", "where", "port", "tags", "key"}, names)
	require.Equal(t, []string{"yes", "no"}, fields["ok"].Choices)
	require.Equal(t, "deploy it", fields["ok"].About)
	require.True(t, fields["ok"].Required)
	require.Equal(t, "one of old, new", fields["where"].Words)
	require.Equal(t, "new", fields["where"].Default)
	require.Equal(t, "a whole number, at least 1, at most 65535", fields["port"].Words)
	require.Equal(t, "a list as JSON: [ … ]", fields["tags"].Words)
	require.True(t, fields["key"].Secret)
	require.Empty(t, fields["key"].Default, "a secret is not shown")

	response, problems := form.Compose(map[string]string{
		"ok": "YES", "where": "old", "port": " 9007 ", "tags": `["a"]`,
		"key": " x ",
	})
	require.Empty(t, problems)
	require.JSONEq(t, `{"ok": true, "where": "old", "port": 9007, "tags": ["a"], "key": " x "}`, string(response))
	response, problems = form.Compose(map[string]string{"ok": "no"})
	require.Empty(t, problems)
	require.JSONEq(t, `{"ok": false}`, string(response), "empty fields are omitted")
	_, problems = form.Compose(map[string]string{"where": "elsewhere", "port": "70000", "tags": "[1]"})
	require.Equal(t, "it is required", problems["ok"])
	require.Equal(t, "say one of old, new", problems["where"])
	require.Contains(t, problems["port"], "65535")
	require.Contains(t, problems["tags"], "[0]")
	_, problems = form.Compose(map[string]string{"ok": "yes", "port": "many", "tags": "{"})
	require.Equal(t, "it is not a whole number, at least 1, at most 65535", problems["port"])
	require.Contains(t, problems, "tags")
	require.Equal(t, map[string]string{"port": "is a string, not an integer", "": "the value is odd"},
		form.ByField([]string{"port is a string, not an integer", "the value is odd"}))
}

func TestAFormOfBothKindsOfSchemas(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]struct {
		fields []string
		texts  map[string]string
		answer string
	}{
		`null`: {[]string{"answer"}, map[string]string{"answer": "host-3"}, `"host-3"`},
		``: {
			[]string{"answer"},
			map[string]string{"answer": `{"n": 12345678901234567890}`},
			`{"n": 12345678901234567890}`,
		},
		`{"type": "object", "properties": {"n": {"type": "number"}, "a": {"type": ["string", "null"]}}, "required": ["n"]}`: {
			[]string{"n", "a"}, map[string]string{"n": "0.10", "a": "null"}, `{"n": 0.10, "a": null}`,
		},
		`{"type": "integer", "minimum": 3}`: {[]string{"answer"}, map[string]string{"answer": "3"}, `3`},
		`{"type": "object"}`:                {[]string{"answer"}, map[string]string{"answer": `{"x": 1}`}, `{"x": 1}`},
		`{"enum": [1, "two"]}`:              {[]string{"answer"}, map[string]string{"answer": "1"}, `1`},
		`{"type": "string", "enum": ["1", "2"]}`: {
			[]string{"answer"}, map[string]string{"answer": "2"}, `"2"`,
		},
		`{"answer": {"type": "string", "minLength": 2}}`: {
			[]string{"answer"},
			map[string]string{"answer": "ab"},
			`{"answer": "ab"}`,
		},
		`[1]`: {[]string{"answer"}, map[string]string{"answer": "x"}, `"x"`},
	} {
		form := NewAnswerForm(json.RawMessage(schema))
		var names []string
		for _, f := range form.Fields {
			names = append(names, f.Name)
		}
		require.Equal(t, want.fields, names, schema)
		response, problems := form.Compose(want.texts)
		require.Empty(t, problems, schema)
		require.JSONEq(t, want.answer, string(response), schema)
	}
	_, problems := NewAnswerForm(json.RawMessage(`{"type": "integer", "minimum": 3}`)).Compose(
		map[string]string{"answer": "2"})
	require.Contains(t, problems["answer"], "3")
	_, problems = NewAnswerForm(nil).Compose(nil)
	require.Equal(t, map[string]string{"answer": "it is required"}, problems)
}
