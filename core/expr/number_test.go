package expr_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/expr"
)

// Infinity, which an action may write, is beyond every given number.
func TestInfinityIsComparedWithGivenNumbers(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]int{math.Inf(1): 1, math.Inf(-1): -1} {
		for _, given := range []json.Number{"18446744073709551617", "1e400", "-1e400", "0.5"} {
			order, ok := expr.CompareNumbers(value, given)
			require.True(t, ok)
			require.Equal(t, want, order, "%v, %s", value, given)
		}
	}
}

// A value that an expression only passes on keeps its digits; what cannot be computed exactly is an error.
func TestGivenNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	value, err := expr.FromJSON([]byte(`{"big": 18446744073709551617, "near": 18446744073709551616, "one": 1.0,
		"dec": 0.12345678901234567890123, "huge": 1e400, "tiny": 1e-400, "zero": 0.00, "cent": 1.10, "half": 2.5,
		"id": 12345678901234567.5, "low": -3.5, "edge": 9223372036854775808}`))
	require.NoError(t, err)
	names, ok := value.(map[string]any)
	require.True(t, ok)
	for source, want := range map[string]string{
		"big": "18446744073709551617", "[one, dec, huge, tiny]": "[1.0,0.12345678901234567890123,1e400,1e-400]",
		"-big": "-18446744073709551617", "-(-dec)": "0.12345678901234567890123", "-edge": "-9223372036854775808",
		"string(cent)": `"1.10"`, "abs(-big)": "18446744073709551617", "number(big)": "18446744073709551617",
		`number("18446744073709551617")`: "18446744073709551617", `number("9007199254740993")`: "9007199254740993",
		`number("0.1")`: "0.1", `int("4.7")`: "4", "int(id)": "12345678901234567", "int(low)": "-3",
		"floor(id)": "12345678901234567", "ceil(id)": "12345678901234568", "floor(low)": "-4", "round(low)": "-4",
		"round(half)": "3", "ceil(low)": "-3", "cent + 1": "2.1", "half * 2": "5", "[1, 2, 3][one]": "2",
		"big == near": "false", "big > near": "true", "-big < -near": "true", "big == big": "true",
		"one == 1": "true", "cent == 1.1": "true", "zero == 0": "true", "zero or false": "false", "not tiny": "false",
		"huge > big": "true", "tiny > 0": "true", "tiny < dec": "true", "-huge < 0": "true",
		"9223372036854775807 < edge": "true", "max(big, near)": "18446744073709551617",
		"sort([huge, big, near, dec])":                  "[0.12345678901234567890123,18446744073709551616,18446744073709551617,1e400]",
		"unique([big, near, big, one, 1])":              "[18446744073709551617,18446744073709551616,1.0]",
		"[type_of(big), type_of(huge)]":                 `["number","number"]`,
		"big in [near, big] and [1.0, 1] == [one, one]": "true",
	} {
		parsed, err := expr.Parse(source)
		require.NoError(t, err)
		got, err := parsed.Eval(expr.Names(names))
		require.NoError(t, err, source)
		require.Equal(t, want, expr.JSON(got), source)
	}
	for source, want := range map[string]string{
		"big + 1": "the number has more than 64 bits", "1 - near": "the number has more than 64 bits",
		"sum([big])": "the number has more than 64 bits", "huge * 0.5": "the number is too large",
		"1 / huge": "the number is too large", "int(huge)": "the number has more than 64 bits",
		"floor(big)": "the number has more than 64 bits",
	} {
		parsed, err := expr.Parse(source)
		require.NoError(t, err)
		_, err = parsed.Eval(expr.Names(names))
		require.ErrorContains(t, err, want, source)
	}
}
