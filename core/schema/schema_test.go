package schema_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
)

func value(t require.TestingT, raw string) any {
	v, err := expr.FromJSON([]byte(raw))
	require.NoError(t, err)
	return v
}

func object(t require.TestingT, raw string) map[string]any {
	v, ok := value(t, raw).(map[string]any)
	require.True(t, ok)
	return v
}

func parse(t require.TestingT, raw string) *schema.Schema {
	s, err := schema.Parse([]byte(raw))
	require.NoError(t, err)
	return s
}

const flat = `{
	"url": {"type": "string", "required": true, "pattern": "^https?:", "description": "where", "position": 0},
	"port": {"type": "integer", "minimum": 1, "maximum": 65535, "default": 80},
	"ratio": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
	"color": {"type": "string", "enum": ["red", "green"]},
	"tags": {"type": "array", "items": {"type": "string", "minLength": 2}, "maxItems": 2, "uniqueItems": true},
	"on": {"type": "boolean"},
	"deep": {"type": "object", "properties": {"level": {"type": "integer"}}, "required": ["level"], "additionalProperties": false},
	"free": {"type": "any"},
	"token": {"type": "string", "secret": true, "required": true, "default": "none"}}`

func TestParametersAreChecked(t *testing.T) {
	t.Parallel()
	s := parse(t, flat)
	require.Empty(t, s.Ignored())
	for params, want := range map[string]string{
		`{"url":"http://x"}`:                        ``,
		`{"url":"http://x","port":null,"free":[1]}`: ``,
		`{"url":"http://x","more":{"a":1}}`:         ``,
		`{"url":"http://x","port":3.0}`:             ``,
		`{"url":"http://x","ratio":1e-3,"on":false,"tags":["ab","cd"],"deep":{"level":1},"color":"red"}`: ``,
		`{}`:                                `url is missing`,
		`{"url":null}`:                      `url is missing`,
		`{"url":"ftp:","port":"80","on":1}`: `on is an integer, not a boolean; port is a string, not an integer; url does not match ^https?:`,
		`{"url":"http:","port":0,"ratio":0,"color":"blue"}`:                 `color is none of red, green; port is below 1; ratio is not above 0`,
		`{"url":"http:","port":70000,"ratio":1}`:                            `port is above 65535; ratio is not below 1`,
		`{"url":"http:","port":1.5}`:                                        `port is a number, not an integer`,
		`{"url":"http:","tags":["a",1,"cc","cc"]}`:                          `tags has more than 2 items; tags[0] has fewer than 2 characters; tags[1] is an integer, not a string; tags[3] is there twice`,
		`{"url":"http:","deep":{"levels":2}}`:                               `deep.level is missing; deep.levels is unknown`,
		`{"url":"http:","deep":{"level":null}}`:                             `deep.level is null, not an integer`,
		`{"url":"http:","deep":[]}`:                                         `deep is an array, not an object`,
		`{"url":{"$attune_secret":true,"redacted":true},"token":"hunter2"}`: ``,
	} {
		require.Equal(t, want, schema.Words(s.ValidateParams(object(t, params))), params)
	}
	require.Equal(t, "port is a string, not an integer",
		schema.Words(s.ValidateParams(object(t, `{"url":"{{ x }}","port":"{{ y }"}`), schema.AllowTemplates())))
	require.Empty(t,
		s.ValidateParams(object(t, `{"url":"{{ x }}","port":"{{ y }}","tags":["{{ z }}"]}`), schema.AllowTemplates()))
}

func TestJSONSchemaIsUnderstood(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, value, want string }{
		{
			`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"a":"x"}`,
			`a is a string, not an integer`,
		},
		{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{}`, `a is missing`},
		{`{"properties":{"a":{"type":"integer"}}}`, `{"a":true}`, `a is a boolean, not an integer`},
		{`{"type":"boolean"}`, `"yes"`, `the value is a string, not a boolean`},
		{`{"type":["string","null"]}`, `null`, ``},
		{`{"type":["string","null"]}`, `3`, `the value is an integer, not a string or null`},
		{`{"enum":["approve","reject"]}`, `"approve"`, ``},
		{`{"enum":["approve","reject"]}`, `"maybe"`, `the value is none of approve, reject`},
		{`{"type":"object","properties":{"k":{"const":3}}}`, `{"k":4}`, `k is not the one value that it may be`},
		{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `true`, `the value is nothing of what it may be`},
		{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `1`, ``},
		{`{"oneOf":[{"type":"number"},{"type":"integer"}]}`, `1`, `the value can be understood in several ways`},
		{`{"oneOf":[{"type":"string"},{"type":"null"}]}`, `1`, `the value is nothing of what it may be`},
		{`{"allOf":[{"minimum":2},{"maximum":3}],"type":"number"}`, `5`, `the value is above 3`},
		{`{"type":"integer","not":{"enum":[0]}}`, `0`, `the value is what it must not be`},
		{`{"type":"number","multipleOf":0.1}`, `0.35`, `the value is no multiple of 0.1`},
		{`{"type":"number","multipleOf":0.1}`, `0.3`, ``},
		{`{"type":"string","maxLength":2}`, `"äöü"`, `the value has more than 2 characters`},
		{`{"type":"array","minItems":1}`, `[]`, `the value has fewer than 1 items`},
		{`{"type":"object","minProperties":2,"maxProperties":2}`, `{"a":1}`, `the value has fewer than 2 fields`},
		{`{"type":"object","maxProperties":1}`, `{"a":1,"b":2}`, `the value has more than 1 fields`},
		{`{"type":"object","additionalProperties":{"type":"string"}}`, `{"a":1}`, `a is an integer, not a string`},
		{``, `{"anything":1}`, ``},
		{`null`, `1`, ``},
	} {
		require.Equal(t, c.want, schema.Words(parse(t, c.schema).Validate(value(t, c.value))), "%s %s", c.schema,
			c.value)
	}
}

// Unknown keywords allow everything, and are listed.
func TestUnknownKeywordsAreListed(t *testing.T) {
	t.Parallel()
	s := parse(t, `{"type":"object","properties":{
		"a":{"type":"text"},"b":{"format":"email","type":"string"},"c":{"pattern":"(?=x)"},"d":{"minimum":"1"},"e":{"$ref":"#/x"},"f":3},"definitions":{}}`)
	require.Equal(t, []string{
		"definitions is not understood", "a: type text is not understood", "b: format is not understood",
		"c: pattern is not understood",
		"d: minimum is not understood", "e: $ref is not understood", "f: it is no object with a type",
	}, s.Ignored())
	require.Empty(t, s.Validate(value(t, `{"a":1,"b":"x","c":"y","d":0,"e":[],"f":{}}`)))
	require.Equal(t, []string{"it is no object"}, parse(t, `[1]`).Ignored())
	require.Equal(t, []string{"x: it is no object with a type"}, parse(t, `{"x":"odd"}`).Ignored())
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, params, want string }{
		"missing keys get defaults":   {flat, `{"other":1}`, `{"other":1,"port":80,"token":"none"}`},
		"null counts as missing":      {flat, `{"port":null,"token":"x"}`, `{"port":80,"token":"x"}`},
		"falsy values are there":      {flat, `{"port":0,"token":""}`, `{"port":0,"token":""}`},
		"no parameters at all":        {flat, `null`, `{"port":80,"token":"none"}`},
		"no schema":                   {``, `{"a":1}`, `{"a":1}`},
		"nothing at all":              {``, ``, `{}`},
		"the other form":              {`{"type":"object","properties":{"a":{"default":[1]}}}`, `{}`, `{"a":[1]}`},
		"the other form without type": {`{"properties":{"a":{"default":[1]}}}`, `{}`, `{"a":[1]}`},
		"a parameter named type":      {`{"type":{"default":"x"}}`, `{}`, `{"type":"x"}`},
		"a parameter named properties": {
			`{"properties":{"type":"object","default":{"x":1}}}`, `{}`,
			`{"properties":{"x":1}}`,
		},
		"a malformed schema is ignored": {`[1,2]`, `{"a":1}`, `{"a":1}`},
		"an odd entry":                  {`{"e":"odd","d":{"default":1}}`, `{}`, `{"d":1}`},
	} {
		filled, err := schema.Fill(json.RawMessage(c.schema), json.RawMessage(c.params))
		require.NoError(t, err, name)
		require.JSONEq(t, c.want, string(filled), name)
	}
	_, err := schema.Fill(nil, json.RawMessage(`[1]`))
	require.EqualError(t, err, "read parameters: they are no JSON object")
	exact, err := schema.Fill(nil, json.RawMessage(`{"a": 12345678901234567890}`))
	require.NoError(t, err)
	require.Equal(t, `{"a": 12345678901234567890}`, string(exact), "values stay as they are written")
}

func TestSecretPaths(t *testing.T) {
	t.Parallel()
	s := parse(t, `{"token":{"secret":true},"user":{"type":"string"},"db":{"type":"object","properties":{
		"password":{"secret":true},"host":{}}},"a/b":{"secret":true,"properties":{"x":{"secret":true}}},
		"list":{"items":{"properties":{"key":{"secret":true}}}},"either":{"anyOf":[{"type":"null"},{"secret":true}]}}`)
	require.True(t, s.HasSecrets())
	require.Equal(t, []string{"/a~1b", "/db/password", "/either", "/list/1/key", "/token"}, s.SecretPaths(value(t, `{
		"token":"x","user":"u","db":{"password":"p","host":"h"},"a/b":{"x":1},"list":[{},{"key":1}],"either":2}`)))
	require.Empty(t, s.SecretPaths(value(t, `{"user":"u","db":"odd"}`)))
	require.Equal(t, []string{"/password"},
		parse(t, `{"type":"object","properties":{"password":{"type":"string","secret":true}}}`).SecretPaths(
			value(t, `{"password":"p"}`)))
	require.False(t, parse(t, `{"a":{"type":"string"}}`).HasSecrets())
	require.False(t, parse(t, `{"secret":{"type":"boolean"}}`).HasSecrets(), "a parameter may have this name")
}

// Nothing that can be written in a schema or value takes for ever.
func TestCostIsBounded(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"items":`, 70) + `{}` + strings.Repeat(`}`, 70)
	_, err := schema.Parse([]byte(`{"type":"array","items":` + deep + `}`))
	require.EqualError(t, err, "a schema is nested deeper than 64")
	_, err = schema.Parse([]byte(`{"a":"` + strings.Repeat("x", 256<<10) + `"}`))
	require.ErrorContains(t, err, "is larger than")
	_, err = schema.Parse([]byte(`{`))
	require.ErrorContains(t, err, "read a schema")

	wide := `{"type":"array","items":` + strings.Repeat(`{"anyOf":[{"type":"string"},`, 20) + `{"type":"integer"}` +
		strings.Repeat(`]}`, 20) + `}`
	list := make([]any, 110_000)
	for i := range list {
		list[i] = true
	}
	mistakes := parse(t, wide).Validate(list)
	require.LessOrEqual(t, len(mistakes), 21)
	many := parse(t, `{"type":"array","items":{"type":"string"}}`).Validate(list)
	require.Len(t, many, 20)
	fine := make([]any, 110_000)
	for i := range fine {
		fine[i] = "x"
	}
	require.Equal(t, "the value is more than can be checked",
		schema.Words(parse(t, `{"type":"array","items":{"type":"string"}}`).Validate(fine)))
	// Such values cost package regexp, or a checker without bounds, minutes; see
	// docs/decisions/0019-our-own-checker-of-schemas.md.
	const tooMuch = "the value is more than can be checked"
	costly := parse(t, `{"type":"string","pattern":"(a?){500}a{500}$"}`)
	require.Empty(t, costly.Ignored())
	require.Equal(t, tooMuch, schema.Words(costly.Validate(strings.Repeat("a", 1<<20)+"b")))
	require.Empty(t, parse(t,
		`{"type":"string","pattern":"^[a-z0-9_.-]+@[a-z0-9.-]+$"}`).Validate(strings.Repeat("a", 4<<20)+"@b.c"))
	require.NotEmpty(t, parse(t, `{"type":"string","pattern":"`+strings.Repeat("a{1000}", 20)+`"}`).Ignored())
	branches := make([]string, 8000)
	for i := range branches {
		branches[i] = fmt.Sprintf(`{"const":"a%d"}`, i)
	}
	mistakes = parse(t, `{"type":"array","items":{"anyOf":[`+strings.Join(branches, ",")+`]}}`).Validate(list)
	require.Contains(t, schema.Words(mistakes), "[0] is nothing of what it may be")
	secrets := parse(t, `{"l":{"type":"array","items":{"properties":{"k":{"secret":true}}}}}`)
	for i := range fine {
		fine[i] = map[string]any{"k": "hunter2"}
	}
	public, _ := secret.Take(map[string]any{"l": fine[:60_000]},
		secrets.SecretPaths(map[string]any{"l": fine[:60_000]})[:5])
	require.NotNil(t, public)
	require.GreaterOrEqual(t, len(secrets.SecretPaths(map[string]any{"l": fine})), 50_000)
}

// For any schema and parameters: defaults replace no given value, secrets are not in the rest, and a second check gives
// the same result.
func TestAnySchemaAndParameters(t *testing.T) {
	t.Parallel()
	names := rapid.SampledFrom([]string{"a", "b", "c/d", "type", "properties"})
	field := rapid.Custom(func(t *rapid.T) map[string]any {
		f := map[string]any{"type": rapid.SampledFrom([]string{"string", "integer", "any", "object"}).Draw(t, "type")}
		if rapid.Bool().Draw(t, "secret") {
			f["secret"] = true
		}
		if rapid.Bool().Draw(t, "default") {
			f["default"] = "fallback"
		}
		f["required"] = rapid.Bool().Draw(t, "required")
		return f
	})
	given := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.Int(), func(i int) any { return int64(i) }),
		rapid.Map(rapid.StringMatching("s3cret-[a-z]{8}"), func(s string) any { return s }))
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.MapOf(names, field).Draw(t, "schema")
		params := rapid.MapOf(names, given).Draw(t, "params")
		raw, err := json.Marshal(fields)
		require.NoError(t, err)
		s := parse(t, string(raw))
		given, err := json.Marshal(params)
		require.NoError(t, err)
		text, err := schema.Fill(raw, given)
		require.NoError(t, err)
		filled, _ := value(t, string(text)).(map[string]any)
		for name, v := range params {
			if v != nil {
				require.Equal(t, v, filled[name])
			}
		}
		again := parse(t, string(raw)).ValidateParams(params)
		require.Equal(t, again, s.ValidateParams(params))
		for _, m := range s.ValidateParams(params) {
			require.NotContains(t, m.Text, "s3cret", "a value is never repeated")
		}
		public, taken := secret.Take(params, s.SecretPaths(params))
		shown := fmt.Sprint(public)
		for _, one := range taken {
			if hidden, ok := one.Value.(string); ok && strings.Count(fmt.Sprint(params), hidden) == 1 {
				require.NotContains(t, shown, hidden)
			}
		}
		for name, f := range fields {
			if v := params[name]; f["secret"] == true && v != nil {
				require.True(t, slices.ContainsFunc(taken,
					func(o secret.Taken) bool { return o.Path == secret.Join("", name) }), name)
			}
		}
	})
}

func FuzzSchema(f *testing.F) {
	f.Add(flat, `{"url":1}`)
	f.Add(`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"items":{}}]}}}`, `{"a":[1]}`)
	f.Add(`{"type":["x",1],"enum":[{}],"not":{"const":null}}`, `null`)
	f.Fuzz(func(t *testing.T, source, params string) {
		s, err := schema.Parse([]byte(source))
		if err != nil {
			return
		}
		v, err := expr.FromJSON([]byte(params))
		if err != nil {
			return
		}
		first := s.Validate(v)
		require.Equal(t, first, s.Validate(v))
		_ = s.SecretPaths(v)
		_, _ = schema.Fill(json.RawMessage(source), json.RawMessage(params))
	})
}
