package expr_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/expr"
)

// names are the names in the expressions of these tests.
func names(t testing.TB) expr.Names {
	t.Helper()
	value, err := expr.FromJSON([]byte(`{
		"n": 7, "f": 2.5, "s": "hello", "empty": "", "nothing": null, "yes": true,
		"list": [1, 2, 3], "words": ["b", "a", "b"], "nested": [[1], [2, 3], 4],
		"o": {"key": "value", "in": 1, "deep": {"x": [10, 20]}}, "big": 9223372036854775807}`))
	require.NoError(t, err)
	object, ok := value.(map[string]any)
	require.True(t, ok)
	return object
}

func eval(t testing.TB, source string) (any, error) {
	t.Helper()
	e, err := expr.Parse(source)
	if err != nil {
		return nil, err
	}
	return e.Eval(names(t))
}

// Every documented operator, function and rule of the language.
func TestTheLanguage(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		// literals
		`1`: `1`, `1.5`: `1.5`, `1e3`: `1000`, `"a\n\t\r\\\"b"`: `"a\n\t\r\\\"b"`, `'it\'s'`: `"it's"`, `true`: `true`,
		`null`:          `null`,
		`[1, "a", [],]`: `[1,"a",[]]`, `9223372036854775807`: `9223372036854775807`,
		// arithmetic
		`2 + 3 * 4`: `14`, `(2 + 3) * 4`: `20`, `10 - 2 * 3 + 1`: `5`, `15 / 5`: `3`, `10 / 4`: `2.5`,
		`10 / 4.0`: `2.5`, `17 % 5`: `2`,
		`-7 % 5`: `-2`, `-(2 + 3)`: `-5`, `--3`: `3`, `2 - -1`: `3`, `5.5 % 2`: `1.5`, `"a" + "b"`: `"ab"`,
		`[1] + [2]`: `[1,2]`, `2 + 1.5`: `3.5`,
		`8 / 2 / 2`: `2`, `2 - 3 - 4`: `-5`,
		// comparison
		`3 == 3.0`: `true`, `3 != 3.1`: `true`, `"3" == 3`: `false`, `null == false`: `false`, `null == null`: `true`,
		`"abc" < "abd"`:      `true`,
		`[1, 2] == [1.0, 2]`: `true`, `[1, 2] < [1, 3]`: `true`, `[1] < [1, 0]`: `true`, `o == o`: `true`,
		`1 <= 1`: `true`, `2 > 2.5`: `false`,
		`9223372036854775807 == 9223372036854775807.0`: `false`, `n >= 7`: `true`, `true == 1`: `false`,
		// booleans
		`true or false and false`: `true`, `(true or false) and false`: `false`, `not true`: `false`,
		`not n == 8`: `true`, `not not n`: `true`,
		`yes and not empty`: `true`, `0 or "x"`: `true`, `"" or 0`: `false`, `[] or {} == 1 or null`: ``,
		`yes or missing`: `true`, `false and missing`: `false`,
		`not false and true`: `true`, `not true or true`: `true`,
		// membership and access
		`2 in list`: `true`, `2.0 in list`: `true`, `"key" in o`: `true`, `"ell" in s`: `true`, `"z" in s`: `false`,
		`not 9 in list`: `true`,
		`o.key`:         `"value"`, `o["key"]`: `"value"`, `o.in`: `1`, `o.deep.x[1]`: `20`, `list[-1]`: `3`,
		`list[1.0]`: `2`, `s[0]`: `"h"`, `o.deep.x[0] + 1`: `11`,
		// conversion and introspection
		`string(42)`: `"42"`, `string(null)`: `"null"`, `string(2.0)`: `"2.0"`, `string([1, "a"])`: `"[1,\"a\"]"`,
		`number("3.15")`: `3.15`, `number(" 4 ")`: `4`,
		`number(true)`: `1`, `int(3.9)`: `3`, `int(-3.9)`: `-3`, `int("42")`: `42`, `int("4.7")`: `4`,
		`bool("")`: `false`, `bool("x")`: `true`, `bool(0.0)`: `false`,
		`type_of(1)`: `"number"`, `type_of(1.5)`: `"number"`, `type_of("")`: `"string"`, `type_of(yes)`: `"bool"`,
		`type_of(null)`: `"null"`,
		`type_of(list)`: `"array"`, `type_of(o)`: `"object"`, `length("héllo")`: `6`, `length(list)`: `3`,
		`length(o)`: `3`,
		`keys(o)`:   `["deep","in","key"]`, `values({})`: ``, `values(o.deep)`: `[[10,20]]`,
		// numbers
		`abs(-5)`: `5`, `abs(-2.5)`: `2.5`, `floor(3.7)`: `3`, `ceil(3.2)`: `4`, `round(3.5)`: `4`, `round(-2.5)`: `-3`,
		`floor(3)`: `3`, `min(3, 7)`: `3`,
		`max(3, 7)`: `7`, `min(list)`: `1`, `max("a", "b")`: `"b"`, `sum([1, 2, 3.5])`: `6.5`, `sum([])`: `0`,
		// strings
		`lower("HÉ")`: `"hé"`, `upper("é")`: `"É"`, `trim("  a ")`: `"a"`, `split("a,b,", ",")`: `["a","b",""]`,
		`join(words, "-")`:      `"b-a-b"`,
		`join([1, null, true])`: `"1nulltrue"`, `replace("aXbX", "X", "-")`: `"a-b-"`, `starts_with(s, "he")`: `true`,
		`ends_with(s, "lo")`: `true`,
		`match("^h.*o$", s)`: `true`, `match("ell", s)`: `true`, `match("^ell", s)`: `false`,
		// collections
		`contains(list, 2)`: `true`, `contains(s, "ell")`: `true`, `contains(o, "key")`: `true`,
		`reversed(list)`: `[3,2,1]`, `reversed("añ")`: `"ña"`,
		`sort(words)`: `["a","b","b"]`, `sort([2, 1.5, 1])`: `[1,1.5,2]`,
		`unique([1, 1.0, "1", [1], [1]])`: `[1,"1",[1]]`, `flat(nested)`: `[1,2,3,4]`,
		`zip([1, 2, 3], ["a", "b"])`: `[[1,"a"],[2,"b"]]`, `range(3)`: `[0,1,2]`, `range(2, 4)`: `[2,3]`,
		`range(0)`: `[]`, `range(3, 1)`: `[]`,
		`slice(list, 1)`: `[2,3]`, `slice(list, 0, 2)`: `[1,2]`, `slice(list, -2)`: `[2,3]`, `slice(list, 2, 1)`: `[]`,
		`slice(list, 1, 99)`: `[2,3]`, `slice("héllo", 1, 3)`: `"él"`,
		`index_of(list, 3)`: `2`, `index_of(list, 9)`: `-1`, `index_of("héllo", "l")`: `3`, `count(words, "b")`: `2`,
		`count("banana", "an")`: `2`, `count("añ", "")`: `3`, `split("añ", "")`: `["","a","ñ",""]`,
		`string(1234567.5)`: `"1234567.5"`, `string(1e16)`: `"1e16"`, `string(1.5e-7)`: `"1.5e-7"`,
		`string(0.0001)`: `"0.0001"`, `string(-1e15)`: `"-1000000000000000.0"`, `string(number("4"))`: `"4.0"`,
		`string(0.0)`:           `"0.0"`,
		`merge(o.deep, o.deep)`: `{"x":[10,20]}`, `chunks([1, 2, 3], 2)`: `[[1,2],[3]]`, `chunks([], 2)`: `[]`,
	} {
		value, err := eval(t, source)
		if want == "" {
			require.Error(t, err, source)
			continue
		}
		require.NoError(t, err, source)
		raw, err := json.Marshal(value)
		require.NoError(t, err)
		require.JSONEq(t, want, string(raw), source)
	}
}

// Errors have their place and never repeat values, which may be secret.
func TestErrorsSayWhere(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		``:                          `column 1: the expression ends where a value is expected in ""`,
		`1 +`:                       `column 4: the expression ends where a value is expected`,
		`(1`:                        `column 3: ) is missing after what is in brackets`,
		`[1 2]`:                     `column 4: , is expected after a value of a list, not 2`,
		`a b`:                       `column 3: unexpected b`,
		"1 +\n  é":                  `line 2, column 3: unexpected "é"`,
		`"open`:                     `column 1: the string does not end`,
		`99999999999999999999`:      `column 1: the number 99999999999999999999 has more than 64 bits`,
		`missing`:                   `column 1: there is no missing`,
		`o.nope`:                    `column 3: there is no field nope`,
		`o["nope"]`:                 `column 2: there is no field nope`,
		`s.x`:                       `column 3: a string has no field x`,
		`list[3]`:                   `column 5: the index 3 is beyond the 3 items of the list`,
		`list[-4]`:                  `column 5: the index -4 is beyond the 3 items of the list`,
		`list["a"]`:                 `column 5: the index of a list is an integer, not a string`,
		`1 + "a"`:                   `column 3: + does not go between a number and a string`,
		`null < 1`:                  `column 6: null and a number have no order`,
		`1 / 0`:                     `column 3: division by zero`,
		`1.5 % 0`:                   `column 5: division by zero`,
		`big + 1`:                   `column 5: the result has more than 64 bits`,
		`big * 2`:                   `column 5: the result has more than 64 bits`,
		`-big - 2`:                  `column 6: the result has more than 64 bits`,
		`nope(1)`:                   `column 1: there is no function nope`,
		`o.key()`:                   `column 6: only names can be called`,
		`length()`:                  `column 1: length takes 1 argument, not 0`,
		`split("a")`:                `column 1: split takes 2 arguments, not 1`,
		`slice(list)`:               `column 1: slice takes 2 to 3 arguments, not 1`,
		`lower(1)`:                  `column 1: lower: a string is expected, not a number`,
		`number("x")`:               `column 1: number: the string is no number`,
		`sort([1, "a"])`:            `column 1: sort: `,
		`match("(", s)`:             `column 1: match: error parsing regexp`,
		`1 in 2`:                    `column 3: nothing can be in a number`,
		`a.`:                        `column 3: the name of a field is expected after the point`,
		`and`:                       `column 1: unexpected and`,
		`range(100001)`:             `column 1: range: more than 100000 numbers`,
		`chunks(list, 0)`:           `column 1: chunks: the size is to be above zero`,
		`{"a": 1}`:                  `column 1: unexpected "{"`,
		`abs("secret-in-a-string")`: `column 1: abs: a number is expected, not a string`,
	} {
		_, err := eval(t, source)
		require.Error(t, err, source)
		require.True(t, strings.HasPrefix(err.Error(), want), "%s\n%s", source, err)
		var typed *expr.Error
		require.ErrorAs(t, err, &typed, source)
	}
}

// Nothing that can be written takes for ever, all memory, or all of the stack.
func TestCostIsBounded(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"nesting": strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000),
		"signs":   strings.Repeat("-", 60_000) + "1",
		"not":     strings.Repeat("not ", 10_000) + "1",
		"indexes": strings.Repeat("list[", 1000) + "0" + strings.Repeat("]", 1000),
		"length":  strings.Repeat("1+", 40_000) + "1",
		"doubling": "replace(" + strings.Repeat("replace(", 20) + `"aaaaaaaaaa"` +
			strings.Repeat(`, "a", "aaaaaaaaaa")`, 20) + `, "a", "b")`,
		"concat":     "join(range(90000), join(range(20000)))",
		"loops":      "sum(range(60000)) + sum(range(60000))",
		"comparison": "unique(zip(range(30000), range(30000)))",
	} {
		_, err := eval(t, source)
		require.Error(t, err, name)
		require.Less(t, len(err.Error()), 300, name)
	}
	long, err := eval(t, strings.Repeat("1+", 20_000)+"1")
	require.NoError(t, err)
	require.EqualValues(t, 20_001, long)
}

// Nor does anything that can be written in many templates.
func TestCostOfManyTemplatesIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		many int
		want string
	}{
		"steps": {`{{ sum(range(40000)) }}`, 100, "the templates take more than 1000000 steps"},
		"texts": {`{{ s }} {{ join(range(9000), s) }}`, 100, "builds more than 4194304 bytes"},
		"built": {`{{ range(30000) }}`, 100, "builds more than 4194304 bytes"},
	} {
		list := make([]any, c.many)
		for i := range list {
			list[i] = c.text
		}
		_, err := expr.Render(list, names(t))
		require.ErrorContains(t, err, c.want, name)
		_, err = expr.Render(list[:5], names(t))
		require.NoError(t, err, name)
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"plain":                           `"plain"`,
		"":                                `""`,
		"{{ n }}":                         `7`,
		" {{ list }} ":                    `[1,2,3]`,
		"{{ nothing }}":                   `null`,
		"n={{n}}, f={{ f }}, x={{empty}}": `"n=7, f=2.5, x="`,
		"{{ nothing }}.":                  `"."`,
		"{{ o.deep }}!":                   `"{\"x\":[10,20]}!"`,
		"{{ n }}{{ n }}":                  `"77"`,
		`{{ "}}" }}`:                      `"}}"`,
		`{{ '}}' + "\"}}" }}.`:            `"}}\"}}."`,
		"a } b":                           `"a } b"`,
	} {
		template, err := expr.ParseTemplate(source)
		require.NoError(t, err, source)
		value, err := template.Eval(names(t))
		require.NoError(t, err, source)
		raw, err := json.Marshal(value)
		require.NoError(t, err)
		require.JSONEq(t, want, string(raw), source)
	}
	_, err := expr.ParseTemplate("a {{ b")
	require.EqualError(t, err, `column 3: the template is not closed by }} in "a {{ b"`)
	_, err = expr.ParseTemplate("a {{ 1 + }} b")
	require.EqualError(t, err, `column 10: the expression ends where a value is expected in "a {{ 1 + }} b"`)
}

func TestRenderGoesThroughValues(t *testing.T) {
	t.Parallel()
	in := map[string]any{"a": []any{"{{ n }}", map[string]any{"{{ n }}": "x{{ n }}"}}, "b": 1, "c": nil}
	out, err := expr.Render(in, names(t))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": []any{int64(7), map[string]any{"{{ n }}": "x7"}}, "b": int64(1), "c": nil},
		out)
	require.Equal(t, map[string]any{"a": []any{"{{ n }}", map[string]any{"{{ n }}": "x{{ n }}"}}, "b": 1, "c": nil}, in,
		"what was given is not changed")
	_, err = expr.Render(map[string]any{"a": []any{map[string]any{"x": "{{ nope }}"}}}, names(t))
	require.EqualError(t, err, `a[0].x: column 4: there is no nope in "{{ nope }}"`)
	_, err = expr.Render(map[string]any{"a": "{{ ( }}"}, names(t))
	require.EqualError(t, err,
		`a: column 6: the expression ends where a value is expected in "{{ ( }}"`)
}

// Templates of rules are paths only; a path without a value is null.
func TestRulesKnowPathsOnly(t *testing.T) {
	t.Parallel()
	scope := map[string]any{"event": map[string]any{"payload": map[string]any{"a": []any{
		int64(1),
		map[string]any{"b": "x"},
	}, "s": "text", "t": "{{ event.payload.s }}"}}}
	for source, want := range map[string]any{
		"{{ event.payload.s }}": "text", "{{event.payload.a.1.b}}": "x", "{{ event.payload.a.0 }}": int64(1),
		"{{ event.nope.x }}": nil,
		"{{ 1 + 1 }}":        nil, "{{}}": "{{}}", "{{ event.payload.s }} ": "text ", "{{\nevent.payload.s\t}}": "text",
		"{{ event.payload.s }}{{ event.payload.a.0 }}": "text1", "{{{ event.payload.s }}}": "}",
		"{{ event.payload.t }}!": "{{ event.payload.s }}!", "s={{ event.payload.s }};{{ event.nope }}": "s=text;",
		"{{ event.payload.a }}!": `[1,{"b":"x"}]!`, "none": "none",
	} {
		got, err := expr.RenderPaths(source, scope)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	long := strings.Repeat("x", 1<<20)
	_, err := expr.RenderPaths(map[string]any{"a": []any{strings.Repeat("{{ event.long }}{{ event.long }}", 3)}},
		map[string]any{"event": map[string]any{"long": long}})
	_, open := expr.RenderPaths([]any{"a {{ x }} {{ y"}, scope)
	require.EqualError(t, open, `[0]: column 11: the template is not closed by }} in "a {{ x }} {{ y"`)
	require.ErrorContains(t, err, "a[0]: column 65: the texts become longer than 4194304 bytes")
}

// counting is a scope with functions of its own.
type counting struct{ expr.Names }

func (counting) Call(name string, arguments []any) (any, bool, error) {
	switch name {
	case "succeeded":
		return len(arguments) == 0, true, nil
	case "broken":
		return nil, true, errors.New("no result yet")
	}
	return nil, false, nil
}

func TestFunctionsOfTheScope(t *testing.T) {
	t.Parallel()
	e, err := expr.Parse("not succeeded() or length(words) == 3")
	require.NoError(t, err)
	value, err := e.Eval(counting{names(t)})
	require.NoError(t, err)
	require.Equal(t, true, value)
	used, functions := e.Names()
	require.Equal(t, []string{"words"}, used)
	require.Equal(t, []string{"succeeded", "length"}, functions)
	e, err = expr.Parse("broken()")
	require.NoError(t, err)
	_, err = e.Eval(counting{names(t)})
	require.EqualError(t, err, `column 1: broken: no result yet in "broken()"`)
}

func TestTruth(t *testing.T) {
	t.Parallel()
	for _, v := range []any{nil, false, int64(0), 0.0, "", []any{}, map[string]any{}} {
		require.False(t, expr.Truthy(v), "%#v", v)
	}
	for _, v := range []any{true, int64(-1), math.SmallestNonzeroFloat64, "0", []any{nil}, map[string]any{"": nil}} {
		require.True(t, expr.Truthy(v), "%#v", v)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`a.b[0] + f(1, "x") * -2 <= 3 and not x in [1,]`, `{{ a }} b {{ "}}" }}`,
		`sort(unique(flat(zip(range(3), [1]))))`, "\"\\", "é",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if e, err := expr.Parse(source); err == nil {
			first, errFirst := e.Eval(names(t))
			second, errSecond := e.Eval(names(t))
			require.Equal(t, errFirst, errSecond)
			require.True(t, errFirst != nil || expr.Equal(first, second) || fmt.Sprint(first) == fmt.Sprint(second))
		}
		if template, err := expr.ParseTemplate(source); err == nil {
			_, _ = template.Eval(names(t)) // it ends, whatever it says
		}
		_, _ = expr.RenderPaths(source, names(t)) // the same
	})
}
