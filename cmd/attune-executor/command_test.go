package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/yamldoc"
)

// Columns are measured in cells, and one long name does not widen a table beyond a screen.
func TestTablesWithNamesOfAnyScript(t *testing.T) {
	t.Parallel()
	names := []string{"部署.服务", "cafe\u0301", strings.Repeat("a", 150) + strings.Repeat("b", 150), "short"}
	var p page
	table(&p, "", names, "NAME, COUNT", func(name *string) []any { return []any{*name, 1} })
	p.row(names[2], "1")
	lines := strings.Split(strings.TrimSuffix(phrase.Align(p.String()), "\n"), "\n")
	for _, line := range lines[1:] {
		require.Equal(t, 63, phrase.Width(line), line)
	}
	require.Contains(t, lines[3], "aaa…bbb")
	require.Equal(t, lines[3], lines[5])
}

// Every flag with a duration reads what the product writes.
func TestDurationsOfFlags(t *testing.T) {
	t.Parallel()
	found := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		check := func(flag *pflag.Flag) {
			if flag.Value.Type() == "duration" {
				found++
				value, ok := flag.Value.(phrase.SpanFlag)
				require.True(t, ok, cmd.CommandPath()+" --"+flag.Name)
				require.NoError(t, value.Set("1w1d02h"))
				require.Equal(t, 194*time.Hour, *value.To)
			}
		}
		cmd.Flags().VisitAll(check)
		cmd.PersistentFlags().VisitAll(check)
		for _, below := range cmd.Commands() {
			walk(below)
		}
	}
	walk(newRootCommand(&app{}))
	require.Greater(t, found, 10)
	for _, write := range []func(time.Duration) string{short, age, config.DurationText} {
		for d := time.Millisecond; d < 400*24*time.Hour; d = d*7/5 + time.Nanosecond {
			got, err := phrase.ParseSpan(write(d))
			require.NoError(t, err)
			require.Equal(t, write(d), write(got))
		}
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	var visit func(cmd *cobra.Command)
	seen := 0
	visit = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			visit(child)
		}
		seen++
		require.NotEmpty(t, cmd.Short, cmd.CommandPath())
		require.Contains(t, cmd.Example, cmd.CommandPath(), "the example of %s must show it", cmd.CommandPath())
		require.NotNil(t, cmd.RunE, cmd.CommandPath())
		require.NotNil(t, cmd.Args, "%s must say which arguments it takes", cmd.CommandPath())
	}
	visit(newRootCommand(&app{}))
	require.Greater(t, seen, 15)
}

func TestDocumentationNamesEveryCommand(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	for _, cmd := range newRootCommand(&app{}).Commands() {
		require.Regexp(t, "`"+cmd.Name()+"[ `]", string(page))
		for _, child := range cmd.Commands() {
			require.Regexp(t, "`"+cmd.Name()+" [^`]*"+child.Name(), string(page))
		}
	}
}

// The advice depends on the reason of the refusal.
func TestARefusalOfTheDatabaseComesWithAdvice(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	for state, says := range map[string]string{
		"53300": "max_connections of the server is reached: raise it, or lower database.max_connections",
		"28P01": "the database refuses the login  (no, SQLSTATE 28P01): correct the user",
		"57P03": "the database starts or stops (no, SQLSTATE 57P03): ",
	} {
		err := unreachable(cfg,
			fmt.Errorf("connect: %w", &pgconn.PgError{Severity: "FATAL", Code: state, Message: "no"}))
		require.ErrorContains(t, err, says)
	}
}

func TestAddPairs(t *testing.T) {
	t.Parallel()
	schema := []byte(`{"text":{"type":"string","required":true},"count":{"type":"integer"}}`)
	cases := map[string]struct {
		pairs  []string
		schema []byte
		want   string
	}{
		"TextStaysText":         {[]string{"text=5"}, schema, `{"text":"5"}`},
		"NumberIsJSON":          {[]string{"count=5"}, schema, `{"count":5}`},
		"WordIsText":            {[]string{"count=five"}, schema, `{"count":"five"}`},
		"UnknownParameter":      {[]string{"x=true", "y=yes"}, schema, `{"x":true,"y":"yes"}`},
		"Forced":                {[]string{`text:={"a":[1]}`}, schema, `{"text":{"a":[1]}}`},
		"ValueWithEquals":       {[]string{"text=a=b"}, schema, `{"text":"a=b"}`},
		"EmptyValue":            {[]string{"count="}, schema, `{"count":""}`},
		"LaterWins":             {[]string{"count=1", "count=2"}, schema, `{"count":2}`},
		"BigNumberKeepsDigits":  {[]string{"count=12345678901234567890"}, schema, `{"count":12345678901234567890}`},
		"TrailingTextIsNotJSON": {[]string{"count=1 2"}, schema, `{"count":"1 2"}`},
		"JSONSchemaForm": {
			[]string{"text=5"},
			[]byte(`{"type":"object","properties":{"text":{"type":"string"}}}`), `{"text":"5"}`,
		},
		"WithoutSchema": {[]string{"text=5"}, nil, `{"text":5}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			params := map[string]any{}
			require.NoError(t, addPairs(params, tc.pairs, tc.schema))
			text, err := json.Marshal(params)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(text))
		})
	}

	err := addPairs(map[string]any{}, []string{"count:=five"}, schema)
	require.EqualError(t, err, `parameter count: "five" is not JSON: write -p count=value for a text`)
}

// A value of the command line is stored as it was given, or refused.
func TestValuesOfTheCommandLineStayAsWritten(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]string{
		`{"a":[18446744073709551617,0.12345678901234567890123,1e400,1.50,-0]}`: "",
		`"\ud83d\ude00"`:       "",
		`{"b":["\ud83d"]}`:     "b[0]: the text contains half of a surrogate pair",
		`{"b":"a\u0000b"}`:     "b: the text contains U+0000, which cannot be stored",
		`{"b":[1e9999]}`:       "b[0]: the number has more than 8000 digits",
		"{\"b\":\"\xff\"}":     "is not valid UTF-8",
		"{\"b\":\"\xed\xa0\"}": "is not valid UTF-8",
	} {
		pair, err := pairsAnswer([]string{"p:=" + text}, nil)
		payload, payloadErr := (&emitOptions{payload: text}).readPayload(nil)
		answer, answerErr := readAnswer("@-", strings.NewReader(yamldoc.BOM+text))
		if refused != "" {
			require.ErrorContains(t, err, refused)
			require.ErrorContains(t, payloadErr, refused)
			require.ErrorContains(t, answerErr, refused)
			continue
		}
		require.NoError(t, errors.Join(err, payloadErr, answerErr))
		var params map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(pair, &params))
		var value, want any
		require.NoError(t, jsonvalue.Decode(params["p"], &value))
		require.NoError(t, jsonvalue.Decode([]byte(text), &want))
		require.Equal(t, want, value)
		require.Equal(t, []string{text, text}, []string{string(payload), string(answer)})
	}
	require.ErrorContains(t, checkPairs([]string{"p=\xff"}), "is not valid UTF-8")
}

func TestATooLargeParameterFileIsRefused(t *testing.T) {
	t.Parallel()
	_, err := readParams(&runOptions{paramsFile: "-"}, strings.NewReader("a: "+strings.Repeat("x", 16<<20)))
	require.EqualError(t, err,
		"- is larger than 16777216 bytes (16 MiB), the most that is read: pass large data by reference")
}

func TestReadParams(t *testing.T) {
	t.Parallel()
	read := func(text string) (map[string]any, error) {
		return readParams(&runOptions{paramsFile: "-"}, strings.NewReader(text))
	}
	for _, text := range []string{"a: 1\nb: [x]\n", `{"a": 1, "b": ["x"]}`} {
		params, err := read(text)
		require.NoError(t, err)
		require.EqualValues(t, 1, params["a"])
		require.Equal(t, []any{"x"}, params["b"])
	}
	for _, text := range []string{"", "null"} {
		params, err := read(text)
		require.NoError(t, err)
		require.NotNil(t, params)
		require.Empty(t, params)
	}
	_, err := read("- a\n")
	require.ErrorContains(t, err, "is not a mapping of parameters")
}

func TestYAMLOutputEqualsJSON(t *testing.T) {
	t.Parallel()
	value := map[string]any{
		"text": "yes", "number": 1, "looks": "5", "list": []string{"a: b", ""}, "none": nil, "empty": []string{},
		"lines": "a\nb", "nested": map[string]any{"x": true},
	}
	text, err := yamldoc.Write(value)
	require.NoError(t, err)
	require.Equal(t, `empty: []
lines: |-
  a
  b
list:
  - "a: b"
  - ""
looks: "5"
nested:
  x: true
none: null
number: 1
text: "yes"
`, text)
}

func TestRowsContainNoControlCharacters(t *testing.T) {
	t.Parallel()
	var out page
	out.row("a\x1b[31mred\u202e\u200b", "b\nc")
	require.Equal(t, `a\x1b[31mred\u202e\u200b`+"\tb c\n", out.String())
	require.Equal(t, `"\u001b[31m"`, pretty([]byte(`"\u001b[31m"`)))
	require.Equal(t, `not \x1bjson`, pretty([]byte("not \x1bjson")))
}

func TestErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a; b: c", oneLine("a\n\n  b: c\r\n"))
}
