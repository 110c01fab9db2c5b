package output_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/worker/output"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ format, stdout, want string }{
		"TextHasNoData":          {"text", `{"a":1}`, ""},
		"EmptyHasNoData":         {"json", " \n", ""},
		"JSON":                   {"json", "{\"a\": [1, 2.50, null]}\n", `{"a":[1,2.50,null]}`},
		"BigNumbersStayExact":    {"json", `{"id":12345678901234567890}`, `{"id":12345678901234567890}`},
		"NulBecomesReplacement":  {"json", `{"k\u0000":"a\u0000b"}`, "{\"k\uFFFD\":\"a\uFFFDb\"}"},
		"LoneSurrogate":          {"json", `"\ud800"`, "\"\uFFFD\""},
		"InvalidUTF8":            {"json", "\"a\xffb\"", "\"a\uFFFDb\""},
		"NumberBeyondNumeric":    {"json", `[1e999999]`, `["1e999999"]`},
		"YAML":                   {"yaml", "a: 1\nb:\n  - x\n  - true\n", `{"a":1,"b":["x",true]}`},
		"YAMLKeysThatAreNumbers": {"yaml", "1: one\n", `{"1":"one"}`},
		"YAMLNotANumber":         {"yaml", "x: .nan\ny: .inf\n", `{"x":"NaN","y":"+Inf"}`},
		"YAMLDatesAndDigits": {
			"yaml", "d: 2024-01-02\nn: [18446744073709551617, 0.12345678901234567890123, 1.0, 1e400]\n",
			`{"d":"2024-01-02","n":[18446744073709551617,0.12345678901234567890123,1.0,1e400]}`,
		},
		"YAMLMark":            {"yaml", "\uFEFFa: 1\n", `{"a":1}`},
		"JSONMark":            {"json", "\uFEFF{\"a\":1}\n", `{"a":1}`},
		"LinesMark":           {"jsonl", "\uFEFF1\n2\n", `[1,2]`},
		"Lines":               {"jsonl", "{\"a\":1}\n\n2\n\"x\"", `[{"a":1},2,"x"]`},
		"LinesThatAreJSON":    {"jsonl", "begin\n{\"a\":1}\n{\n", `[{"a":1}]`},
		"LastLine":            {"json", "begin\n{}\n{\"a\":1}\n", `{"a":1}`},
		"WholeBeforeLastLine": {"json", "[\n1,\n2\n]\n", `[1,2]`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := output.Parse(c.format, []byte(c.stdout))
			require.NoError(t, err)
			require.Equal(t, c.want, string(data))
		})
	}
	for name, c := range map[string]struct{ format, stdout, want string }{
		"BrokenJSON":    {"json", "{", "json"},
		"TwoValues":     {"json", "{} {}", "more than one value"},
		"NoLine":        {"jsonl", "y\nx\n", "line 1"},
		"LogAtTheEnd":   {"json", "{}\nend\n", "more than one value"},
		"TwoDocuments":  {"yaml", "a: 1\n---\nb: 2\n", "more than one document"},
		"TooDeep":       {"json", strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "result[0][0]"},
		"UnknownFormat": {"xml", "<a/>", `"xml"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := output.Parse(c.format, []byte(c.stdout))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"Nil":             {nil, ""},
		"Struct":          {struct{ A int }{7}, `{"A":7}`},
		"Nul":             {map[string]string{"a": "x\x00y"}, "{\"a\":\"x\uFFFDy\"}"},
		"NotANumber":      {map[string]any{"a": math.NaN(), "b": []any{math.Inf(-1)}}, `{"a":"NaN","b":["-Inf"]}`},
		"RawMessage":      {json.RawMessage(`{"n":1e999999}`), `{"n":"1e999999"}`},
		"LargeFloat":      {1e300, `1e+300`},
		"BracketsInAText": {strings.Repeat("[", 600), `"` + strings.Repeat("[", 600) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := output.Value(c.value)
			require.NoError(t, err)
			require.Equal(t, c.want, string(raw))
		})
	}
	t.Run("AnUnencodableValueIsAnError", func(t *testing.T) {
		t.Parallel()
		for _, value := range []any{make(chan int), struct{ F float64 }{math.NaN()}} {
			_, err := output.Value(value)
			require.Error(t, err)
		}
	})
}

func TestText(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\uFFFDb\uFFFDc", output.Text([]byte("a\x00b\xffc")))
}

func FuzzText(f *testing.F) {
	f.Add([]byte("a\x00\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		text := output.Text(raw)
		require.True(t, utf8.ValidString(text))
		require.NotContains(t, text, "\x00")
	})
}

func TestCapture(t *testing.T) {
	t.Parallel()

	t.Run("KeepsEverythingWithinTheLimit", func(t *testing.T) {
		t.Parallel()
		capture := output.NewCapture(4)
		n, err := capture.Write([]byte("abcd"))
		require.NoError(t, err)
		require.Equal(t, 4, n)
		require.Equal(t, "abcd", string(capture.Bytes()))
		require.False(t, capture.Truncated())
	})

	t.Run("CutsAtTheLimitBetweenCharacters", func(t *testing.T) {
		t.Parallel()
		capture := output.NewCapture(5)
		for _, part := range []string{"ab", "€€", "zzz"} {
			n, err := capture.Write([]byte(part))
			require.NoError(t, err)
			require.Len(t, part, n)
		}
		require.Equal(t, "ab€", string(capture.Bytes()))
		require.True(t, capture.Truncated())

		cut := output.NewCapture(4)
		_, err := cut.Write([]byte("ab€"))
		require.NoError(t, err)
		require.Equal(t, "ab", string(cut.Bytes()))
	})

	t.Run("ALimitOfZeroKeepsNothing", func(t *testing.T) {
		t.Parallel()
		capture := output.NewCapture(0)
		_, err := capture.Write([]byte("x"))
		require.NoError(t, err)
		require.Empty(t, capture.Bytes())
		require.True(t, capture.Truncated())
	})
}

func TestFit(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "plain", "\x01\x02", "\"\\\n\r\t\b\f/", "<>&\x7f", "ä€😀\u2028\u2029\ufeff\u0085",
		strings.Repeat("\x1b[0m", 50), "a\uFFFDb",
	} {
		var out strings.Builder
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		require.NoError(t, encoder.Encode(text))
		size := int64(out.Len() - len("\"\"\n"))
		fitting, counted := output.Fit(text, math.MaxInt64)
		require.Equal(t, text, fitting)
		require.GreaterOrEqual(t, counted, size, "%q", text)
		require.LessOrEqual(t, counted, size+3*int64(strings.Count(text, "\uFFFD")), "%q", text)
		if counted > 0 {
			fitting, less := output.Fit(text, counted-1)
			require.Less(t, len(fitting), len(text))
			require.Less(t, less, counted)
			require.True(t, utf8.ValidString(fitting))
		}
	}
}

func TestCaptureCountsControlCharacters(t *testing.T) {
	t.Parallel()
	capture := output.NewCaptureWithin(100, 12)
	_, err := capture.Write([]byte("ab\n\x01\x02"))
	require.NoError(t, err)
	require.False(t, capture.Truncated())
	_, err = capture.Write([]byte("cd\x01efg"))
	require.NoError(t, err)
	_, err = capture.Write([]byte("h"))
	require.NoError(t, err)
	require.Equal(t, "ab\n\x01\x02cd", string(capture.Bytes()))
	require.Equal(t, 7, capture.Len())
	require.True(t, capture.Truncated())
}
