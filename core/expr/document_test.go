package expr_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/expr"
)

// rows are the cells of the lines of the tables under a heading, code in backquotes
// without these.
func rows(t *testing.T, document, header string) [][]string {
	t.Helper()
	_, rest, found := strings.Cut(document, header+"\n")
	require.True(t, found, header)
	var all [][]string
	for line := range strings.SplitSeq(rest, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if strings.HasPrefix(line, "| ---") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.Trim(cell, "` "))
		}
		all = append(all, cells)
	}
	require.NotEmpty(t, all, header)
	return all
}

// The examples of the documentation give the documented values.
func TestTheDocumentIsTrue(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/expressions.md")
	require.NoError(t, err)
	document := string(raw)
	_, values, found := strings.Cut(document, "```json\n")
	require.True(t, found)
	values, _, _ = strings.Cut(values, "```")
	parsed, err := expr.FromJSON([]byte(values))
	require.NoError(t, err)
	names, isObject := parsed.(map[string]any)
	require.True(t, isObject)
	scope := expr.Names(names)
	is := func(got any, want, what string) {
		value, err := expr.FromJSON([]byte(want))
		require.NoError(t, err, what)
		require.True(t, expr.Equal(value, got), "%s gives %s, not %s", what, expr.Text(got), want)
	}
	for _, row := range rows(t, document, "| Text | Value |") {
		got, err := expr.Render(row[0], scope)
		require.NoError(t, err, row[0])
		is(got, row[1], row[0])
	}
	evaluated := func(source, want string) {
		e, err := expr.Parse(source)
		require.NoError(t, err, source)
		got, err := e.Eval(scope)
		require.NoError(t, err, source)
		is(got, want, source)
	}
	for _, row := range rows(t, document, "| You want | You write | Value |") {
		evaluated(row[1], row[2])
	}
	for _, row := range rows(t, document, "| Example | Value | |") {
		evaluated(row[0], row[1])
	}
	for _, row := range rows(t, document, "| Expression | Error |") {
		e, err := expr.Parse(row[0])
		require.NoError(t, err, row[0])
		_, err = e.Eval(scope)
		require.EqualError(t, err, row[1]+" in "+strconv.Quote(row[0]))
	}
	var described []string
	for _, row := range rows(t, document, "| Function | What it gives | Example | Value |") {
		name, _, _ := strings.Cut(row[0], "(")
		require.Contains(t, row[2], name+"(", "the example of %s shows it", name)
		described = append(described, name)
		evaluated(row[2], row[3])
	}
	require.True(t, slices.IsSorted(described))
	require.Equal(t, expr.Functions(), described, "every function is described")
}
