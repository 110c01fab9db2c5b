package yamldoc_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/yamldoc"
)

func TestValuesStayAsWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want any
	}{
		"beyond 64 bits":        {"18446744073709551617", json.Number("18446744073709551617")},
		"within 64 bits":        {"-9007199254740993", int64(-9007199254740993)},
		"many digits":           {"0.12345678901234567890123", json.Number("0.12345678901234567890123")},
		"beyond floats":         {"-1e400", json.Number("-1e400")},
		"a float":               {"1.0", json.Number("1.0")},
		"a text of digits":      {`"1e400"`, "1e400"},
		"a date":                {`"2024-01-02"`, "2024-01-02"},
		"a surrogate pair":      {`"\ud83d\ude00"`, "😀"},
		"a list":                {"[null, true, [1.50]]", []any{nil, true, []any{json.Number("1.50")}}},
		"a date of YAML":        {"2024-01-02", "2024-01-02"},
		"a time of YAML":        {"2024-01-02 03:04:05", "2024-01-02 03:04:05"},
		"a point without digit": {"-.12345678901234567890123", json.Number("-0.12345678901234567890123")},
		"a tagged text":         {"!!str 1e400", "1e400"},
		"a word of YAML":        {"1e400x", "1e400x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, text := range []string{c.text, "\uFEFF" + c.text, "\uFEFF" + c.text + "\r\n"} {
				got, err := yamldoc.Parse("x.json", []byte(text))
				require.NoError(t, err)
				require.Equal(t, c.want, got)
			}
		})
	}
	for text, want := range map[string]string{
		`{"a": ["\ud83d"]}`:                 "x.json: a[0]: the text contains half of a surrogate pair",
		`[1e9999]`:                          "x.json: [0]: the number has more than 8000 digits",
		"{\"a\": 1,\n  \"b\": 2, \"a\": 3}": "x.json:2:11: a is given twice",
		"a: 1\n---\nb: 1\n":                 "x.json:3:1: more than one document",
	} {
		_, err := yamldoc.Parse("x.json", []byte(text))
		require.EqualError(t, err, want)
	}
}

// The mistakes of a file in JSON name their place.
func TestPlacesInJSON(t *testing.T) {
	t.Parallel()
	r := &yamldoc.Reader{File: "x.json"}
	roots := r.Documents([]byte("{\n  \"ü\": [1,\n    true]\n}"))
	require.Len(t, roots, 1)
	list := roots[0].Content[1]
	require.Equal(t, "x.json:1:1 x.json:2:3 x.json:2:9 x.json:2:10 x.json:3:5", r.At(roots[0]).String()+" "+
		r.At(roots[0].Content[0]).String()+" "+r.At(list).String()+" "+r.At(list.Content[0]).String()+" "+
		r.At(list.Content[1]).String())
}
