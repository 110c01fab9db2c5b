package expr_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/expr"
)

// published are the test cases of the existing executor's own evaluator, with the same results here. An empty result
// stands for an error.
var published = []struct{ source, names, want string }{
	// arithmetic
	{`2 + 3`, ``, `5`},
	{`10 - 4`, ``, `6`},
	{`3 * 7`, ``, `21`},
	{`15 / 5`, ``, `3`},
	{`17 % 5`, ``, `2`},
	{`2.5 + 1.5`, ``, `4`},
	{`10.0 / 3.0`, ``, `3.3333333333333335`},
	{`2 + 1.5`, ``, `3.5`},
	{`10 / 4`, ``, `2.5`},
	{`10 / 4.0`, ``, `2.5`},
	{`10 / 5`, ``, `2`},
	{`2 + 3 * 4`, ``, `14`},
	{`(2 + 3) * 4`, ``, `20`},
	{`10 - 2 * 3 + 1`, ``, `5`},
	{`-5`, ``, `-5`},
	{`-2 + 3`, ``, `1`},
	{`-(2 + 3)`, ``, `-5`},
	{`"hello" + " " + "world"`, ``, `"hello world"`},
	// comparison
	{`3 == 3`, ``, `true`},
	{`3 != 4`, ``, `true`},
	{`3 > 2`, ``, `true`},
	{`3 < 2`, ``, `false`},
	{`3 >= 3`, ``, `true`},
	{`3 <= 4`, ``, `true`},
	{`3 == 3.0`, ``, `true`},
	{`3.0 == 3`, ``, `true`},
	{`3 != 3.1`, ``, `true`},
	{`"abc" == "abc"`, ``, `true`},
	{`"abc" < "abd"`, ``, `true`},
	{`"abc" > "abb"`, ``, `true`},
	{`null == null`, ``, `true`},
	{`null != null`, ``, `false`},
	{`null == 0`, ``, `false`},
	{`null == false`, ``, `false`},
	{`a == b`, `{"a":[1,2,3],"b":[1,2,3]}`, `true`},
	{`a != c`, `{"a":[1,2,3],"c":[1,2,4]}`, `true`},
	{`a == b`, `{"a":{"x":1,"y":2},"b":{"y":2,"x":1}}`, `true`},
	{`a != c`, `{"a":{"x":1,"y":2},"c":{"y":3,"x":1}}`, `true`},
	{`a == b`, `{"a":{"a":[1,2],"b":{"c":3}},"b":{"b":{"c":3},"a":[1,2]}}`, `true`},
	{`a == b`, `{"a":{"a":[1,2]},"b":{"a":[1,3]}}`, `false`},
	// logic
	{`true and true`, ``, `true`},
	{`true and false`, ``, `false`},
	{`false or true`, ``, `true`},
	{`false or false`, ``, `false`},
	{`not true`, ``, `false`},
	{`not false`, ``, `true`},
	{`true or false and false`, ``, `true`},
	{`(true or false) and false`, ``, `false`},
	// access
	{`obj.a.b`, `{"obj":{"a":{"b":42}}}`, `42`},
	{`arr[1]`, `{"arr":[10,20,30]}`, `20`},
	{`arr[-1]`, `{"arr":[10,20,30]}`, `30`},
	{`arr[-2]`, `{"arr":[10,20,30]}`, `20`},
	{`obj["key"]`, `{"obj":{"key":"value"}}`, `"value"`},
	{`2 in arr`, `{"arr":[1,2,3]}`, `true`},
	{`5 in arr`, `{"arr":[1,2,3]}`, `false`},
	{`"key" in obj`, `{"obj":{"key":"val"}}`, `true`},
	{`"nope" in obj`, `{"obj":{"key":"val"}}`, `false`},
	{`"ell" in "hello"`, ``, `true`},
	// functions
	{`length(arr)`, `{"arr":[1,2,3]}`, `3`},
	{`length("hello")`, ``, `5`},
	{`length(obj)`, `{"obj":{"a":1,"b":2}}`, `2`},
	{`string(42)`, ``, `"42"`},
	{`number("3.15")`, ``, `3.15`},
	{`int(3.9)`, ``, `3`},
	{`int("42")`, ``, `42`},
	{`bool(1)`, ``, `true`},
	{`bool(0)`, ``, `false`},
	{`bool("")`, ``, `false`},
	{`bool("x")`, ``, `true`},
	{`type_of(42)`, ``, `"number"`},
	{`type_of("hi")`, ``, `"string"`},
	{`type_of(true)`, ``, `"bool"`},
	{`type_of(null)`, ``, `"null"`},
	{`type_of(arr)`, `{"arr":[1]}`, `"array"`},
	{`type_of(obj)`, `{"obj":{}}`, `"object"`},
	{`sort(keys(obj))`, `{"obj":{"b":2,"a":1}}`, `["a","b"]`},
	{`sort(values(obj))`, `{"obj":{"b":2,"a":1}}`, `[1,2]`},
	{`abs(-5)`, ``, `5`},
	{`floor(3.7)`, ``, `3`},
	{`ceil(3.2)`, ``, `4`},
	{`round(3.5)`, ``, `4`},
	{`min(3, 7)`, ``, `3`},
	{`max(3, 7)`, ``, `7`},
	{`sum([1, 2, 3, 4])`, ``, `10`},
	{`lower("HELLO")`, ``, `"hello"`},
	{`upper("hello")`, ``, `"HELLO"`},
	{`trim("  hi  ")`, ``, `"hi"`},
	{`replace("hello world", "world", "rust")`, ``, `"hello rust"`},
	{`starts_with("hello", "hel")`, ``, `true`},
	{`ends_with("hello", "llo")`, ``, `true`},
	{`split("a,b,c", ",")`, ``, `["a","b","c"]`},
	{`join(["a", "b", "c"], ",")`, ``, `"a,b,c"`},
	{`match("^hello", "hello world")`, ``, `true`},
	{`match("^world", "hello world")`, ``, `false`},
	{`sort(arr)`, `{"arr":[3,1,2]}`, `[1,2,3]`},
	{`reversed(arr)`, `{"arr":[3,1,2]}`, `[2,1,3]`},
	{`unique([1, 2, 2, 3, 1])`, ``, `[1,2,3]`},
	{`flat([[1, 2], [3, 4]])`, ``, `[1,2,3,4]`},
	{`zip([1, 2], ["a", "b"])`, ``, `[[1,"a"],[2,"b"]]`},
	{`range(5)`, ``, `[0,1,2,3,4]`},
	{`range(2, 5)`, ``, `[2,3,4]`},
	{`reversed("abc")`, ``, `"cba"`},
	{`contains([1, 2, 3], 2)`, ``, `true`},
	{`contains("hello", "ell")`, ``, `true`},
	// together
	{`length(items) > 3 and 5 in items`, `{"items":[1,2,3,4,5]}`, `true`},
	{`data.users[1].name`, `{"data":{"users":[{"name":"Alice"},{"name":"Bob"}]}}`, `"Bob"`},
	{`x > 5 and x < 20`, `{"x":10}`, `true`},
	{`"hello" + 5`, ``, ``},
	{`"3" == 3`, ``, `false`},
	{`5 / 0`, ``, ``},
	{`5 % 0`, ``, ``},
	{`[1, 2, 3]`, ``, `[1,2,3]`},
	{`["a", "b"]`, ``, `["a","b"]`},
	{`length(split("a,b,c", ","))`, ``, `3`},
	{`join(sort(["c", "a", "b"]), "-")`, ``, `"a-b-c"`},
	{`true`, ``, `true`},
	{`false`, ``, `false`},
	{`null`, ``, `null`},
}

func TestPublishedExpressionsGiveTheSameResults(t *testing.T) {
	t.Parallel()
	for _, c := range published {
		scope := expr.Names{}
		if c.names != "" {
			require.NoError(t, json.Unmarshal([]byte(c.names), (*map[string]any)(&scope)))
			object, ok := expr.Value(map[string]any(scope)).(map[string]any)
			require.True(t, ok)
			scope = object
		}
		e, err := expr.Parse(c.source)
		require.NoError(t, err, c.source)
		value, err := e.Eval(scope)
		if c.want == "" {
			require.Error(t, err, c.source)
			continue
		}
		require.NoError(t, err, c.source)
		raw, err := json.Marshal(value)
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(raw), c.source)
	}
}

// Division stays among the integers only when it can.
func TestKindsOfNumbersAreKept(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]any{
		`10 / 5`: int64(2), `10 / 3`: 10.0 / 3.0, `2.5 + 1.5`: 4.0, `1 + 1`: int64(2), `number("3")`: 3.0,
		`int("3")`: int64(3), `floor(2.5)`: int64(2),
		`9007199254740993 + 0`: int64(9007199254740993),
	} {
		value, err := eval(t, source)
		require.NoError(t, err, source)
		require.Equal(t, want, value, source)
	}
}
