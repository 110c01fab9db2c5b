package expr_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/expr"
)

// needError is the error of a scope that has not loaded a value yet.
type needError struct{ name string }

func (e *needError) Error() string { return e.name + " is not loaded" }

// tasks is an object that knows the names of its fields before their values.
type tasks struct {
	known  map[string]any
	absent []string
	asked  *[]string
}

func (o tasks) Keys() []string {
	names := slices.Clone(o.absent)
	for name := range o.known {
		names = append(names, name)
	}
	return names
}

func (o tasks) Get(key string) (any, bool, error) {
	*o.asked = append(*o.asked, key)
	if slices.Contains(o.absent, key) {
		return nil, true, &needError{name: key}
	}
	value, ok := o.known[key]
	return value, ok, nil
}

// lazy is a scope with such an object, and with a name and a function that fail.
type lazy struct{ task tasks }

func (s lazy) Lookup(name string) (any, bool, error) {
	switch name {
	case "task":
		return s.task, true, nil
	case "config":
		return nil, false, &needError{name: name}
	}
	return nil, false, nil
}

func (lazy) Call(name string, _ []any) (any, bool, error) {
	if name == "result" {
		return nil, true, &needError{name: "the last result"}
	}
	return nil, false, nil
}

// Only the fields that an expression reads are fetched, and errors of the scope are returned unchanged.
func TestFieldsAreFetchedWhenRead(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]struct {
		value any
		asked []string
		need  string
	}{
		`task.a.x`:                        {value: int64(1), asked: []string{"a"}},
		`task["a"].x + 1`:                 {value: int64(2), asked: []string{"a"}},
		`task.b`:                          {need: "b", asked: []string{"b"}},
		`task.a.x == 1 or task.b`:         {value: true, asked: []string{"a"}},
		`task.a.x == 2 or task.b`:         {need: "b", asked: []string{"a", "b"}},
		`"b" in task and not "c" in task`: {value: true},
		`length(task)`:                    {value: int64(2)},
		`keys(task)`:                      {value: []any{"a", "b"}},
		`not task`:                        {value: false},
		`config.x`:                        {need: "config"},
		`result().x`:                      {need: "the last result"},
		`string([1, result()])`:           {need: "the last result"},
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			var asked []string
			scope := lazy{tasks{
				known: map[string]any{"a": map[string]any{"x": int64(1)}}, absent: []string{"b"},
				asked: &asked,
			}}
			value, err := expr.Render(map[string]any{"in": "{{ " + source + " }}"}, scope)
			require.Equal(t, want.asked, asked)
			if want.need != "" {
				var need *needError
				require.ErrorAs(t, err, &need)
				require.Equal(t, want.need, need.name)
				return
			}
			require.NoError(t, err)
			require.Equal(t, map[string]any{"in": want.value}, value)
		})
	}
}

// All of it is an ordinary object; a field that is not there is one that is missing.
func TestAllFieldsMakeAnOrdinaryObject(t *testing.T) {
	t.Parallel()
	var asked []string
	scope := lazy{tasks{known: map[string]any{"a": int64(1), "b": "x"}, asked: &asked}}
	for source, want := range map[string]any{
		"{{ task }}":                   map[string]any{"a": int64(1), "b": "x"},
		"{{ task }}.":                  `{"a":1,"b":"x"}.`,
		"{{ [task] }}":                 []any{map[string]any{"a": int64(1), "b": "x"}},
		"{{ merge(task, task).a }}":    int64(1),
		"{{ values(task) }}":           []any{int64(1), "x"},
		"{{ task == task }}":           true,
		`{{ type_of(task) }}`:          "object",
		`{{ contains(task, "a") }}`:    true,
		"{{ task.a in values(task) }}": true,
	} {
		got, err := expr.Render(source, scope)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	_, err := expr.Render("{{ task.c }}", scope)
	require.EqualError(t, err, `column 9: there is no field c; fields: a, b in "{{ task.c }}"`)
	var typed *expr.Error
	require.ErrorAs(t, err, &typed)
	require.NoError(t, errors.Unwrap(typed))
}

// The error of a missing field names some of the present fields, and no values.
func TestMissingFieldsNamePresentOnes(t *testing.T) {
	t.Parallel()
	wide := map[string]any{"a b": "s3cret", "\n": "s3cret", strings.Repeat("x", 99): "s3cret"}
	for i := range 12 {
		wide[fmt.Sprintf("f%02d", i)] = "s3cret"
	}
	scope := expr.Names{
		"result": map[string]any{"exit_code": int64(0), "data": map[string]any{"euros": "s3cret"}}, "wide": wide,
		"none": map[string]any{},
	}
	for source, want := range map[string]string{
		"result.euros": `there is no field euros; fields: data, exit_code; did you mean data.euros? in "result.euros"`,
		"result['no']": `there is no field no; fields: data, exit_code in`,
		"wide.no":      `there is no field no; fields: f00, f01, f02, f03, f04, f05, f06, f07, … in`,
		"none.no":      `there is no field no: it has no fields in`,
	} {
		expression, err := expr.Parse(source)
		require.NoError(t, err)
		_, err = expression.Eval(scope)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

// Reads are names and calls with the fields that follow, each once.
func TestReads(t *testing.T) {
	t.Parallel()
	expression, err := expr.Parse(
		`result().data["a b"] == x.y[0].z and succeeded() or length(x.y) > x.y["z"] and (a + b).c`)
	require.NoError(t, err)
	var names []string
	for _, read := range expression.Reads() {
		names = append(names, read.Name())
	}
	require.Equal(t, []string{"result().data.a b", "x.y", "succeeded()", "x.y.z", "a", "b"}, names)
}

// boxed is a value that knows one field more than the value has.
type boxed struct{ value any }

func (b boxed) Value() any   { return b.value }
func (boxed) Keys() []string { return nil }

func (b boxed) Get(key string) (any, bool, error) { return b.value, key == "self", nil }

// A Valued is its value, wherever nothing but a field is asked for that it knows itself.
func TestAValuedIsItsValue(t *testing.T) {
	t.Parallel()
	all := tasks{
		known: map[string]any{"o": boxed{map[string]any{"k": "v"}}, "l": boxed{[]any{"x"}}, "n": boxed{nil}},
		asked: &[]string{},
	}
	for source, want := range map[string]any{
		"task.o":                map[string]any{"k": "v"},
		"task.o.k":              "v",
		"task.o.self.k":         "v",
		"task.o['self']['k']":   "v",
		"'self' in task.o":      false,
		"keys(task.o)":          []any{"k"},
		"task.l[0]":             "x",
		"task.l.self[0]":        "x",
		"'x' in task.l":         true,
		"task.n or task.n.self": false,
		"[task.o, not task.l]":  []any{map[string]any{"k": "v"}, false},
		"task":                  map[string]any{"o": map[string]any{"k": "v"}, "l": []any{"x"}, "n": nil},
	} {
		expression, err := expr.Parse(source)
		require.NoError(t, err)
		got, err := expression.Eval(lazy{all})
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	for source, why := range map[string]string{
		"task.l.k":    "an array has no field k",
		"task.o.none": "there is no field none", "task.n.k": "null has no field k",
	} {
		expression, err := expr.Parse(source)
		require.NoError(t, err)
		_, err = expression.Eval(lazy{all})
		require.ErrorContains(t, err, why)
	}
}
