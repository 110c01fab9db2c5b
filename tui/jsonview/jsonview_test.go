package jsonview_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

const sample = `{"url": "https://partner.example/feed", "n": 9007199254740993, "headers": {"accept": "application/json", "authorization": "Bearer abc"},
 "retry": {"count": 3, "delays": [1, 2.50, 1e400]}, "none": {}, "list": [], "last": null}`

// plain is a theme without colours.
func plain(t testing.TB) *theme.Theme {
	t.Helper()
	th, err := theme.New(theme.Options{Plain: true})
	require.NoError(t, err)
	return th
}

// drawn is the visible part of a view, without trailing blanks.
func drawn(t testing.TB, v *jsonview.View, w, h int) []string {
	t.Helper()
	v.SetSize(w, h)
	lines := v.Lines(w, h, plain(t))
	require.LessOrEqual(t, len(lines), h)
	for i, text := range lines {
		require.LessOrEqual(t, widget.Width(text), w, "%q", text)
		lines[i] = strings.TrimRight(text, " ")
	}
	return lines
}

func of(text string) *jsonview.View {
	v := jsonview.New()
	v.Set(text)
	return v
}

func do(v *jsonview.View, actions ...keymap.Action) {
	for _, a := range actions {
		v.Do(a)
	}
}

func TestADocumentIsLaidOutAsWritten(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"▶ ▾ {",
		`      "url": "https://partner.example/feed",`,
		`      "n": 9007199254740993,`,
		`  ▾   "headers": {`,
		`        "accept": "application/json",`,
		`        "authorization": "‹redacted›"`,
		`      },`,
		`  ▾   "retry": {`,
		`        "count": 3,`,
		`  ▾     "delays": [`,
		`          1,`,
		`          2.50,`,
		`          1e400`,
		`        ]`,
		`      },`,
		`      "none": {},`,
		`      "list": [],`,
		`      "last": null`,
		`    }`,
	}, drawn(t, of(sample), 60, 40))
}

func TestFolding(t *testing.T) {
	t.Parallel()
	v := of(sample)
	drawn(t, v, 60, 40)
	do(v, keymap.RowDown, keymap.RowDown, keymap.RowDown, keymap.RowDown, keymap.Left)
	require.Equal(t, `▶ ▾   "headers": {`, drawn(t, v, 60, 40)[3], "from within it goes to the bracket around")
	do(v, keymap.Left)
	require.Equal(t, `▶ ▸   "headers": { … 2 keys },`, drawn(t, v, 60, 40)[3])
	do(v, keymap.Right)
	require.Equal(t, `▶ ▾   "headers": {`, drawn(t, v, 60, 40)[3])
	do(v, keymap.FoldAll)
	require.Len(t, drawn(t, v, 60, 40), 9, "all but the outermost is folded")
	do(v, keymap.FoldAll)
	require.Len(t, drawn(t, v, 60, 40), 19)
}

func TestFoldsAndCursorOutliveAChange(t *testing.T) {
	t.Parallel()
	v := of(`{"a":{"x":1},"b":{"y":2},"c":3}`)
	drawn(t, v, 60, 20)
	do(v, keymap.RowDown, keymap.Left, keymap.RowDown, keymap.RowDown)
	path, text, ok := v.Value()
	require.Equal(t, []any{"/b/y", "2", true}, []any{path, text, ok})
	v.Set(`{"new":0,"a":{"x":7},"b":{"y":2},"c":4}`)
	lines := drawn(t, v, 60, 20)
	require.Equal(t, `  ▸   "a": { … 1 key },`, lines[2])
	path, _, _ = v.Value()
	require.Equal(t, "/b/y", path)
}

func TestSecretsAreNeitherShownNorFoundNorCopied(t *testing.T) {
	t.Parallel()
	const text = `{"password":"hunter2","api_key":{"id":"hunter2"},"value":{"$attune_secret":true,"id":"hunter2"},"t\u006fken":"hunter2",` +
		`"url":"amqp://user:hunter2@host/","list":["postgres://u:hunter2@h/db","amqp:\/\/u:hunter2@h"]}`
	v := of(text)
	frame := strings.Join(drawn(t, v, 70, 40), "\n")
	require.NotContains(t, frame, "hunter2")
	require.Equal(t, 7, strings.Count(frame, "‹redacted›"))
	require.Zero(t, v.Search("hunter2"))
	require.NotContains(t, jsonview.Redact(text), "hunter2")
	require.True(t, json.Valid([]byte(jsonview.Redact(text))))
	do(v, keymap.RowDown, keymap.RowDown)
	_, value, _ := v.Value()
	require.Equal(t, jsonview.Masked, value)

	do(v, keymap.Reveal)
	require.Equal(t, 7, strings.Count(strings.Join(drawn(t, v, 70, 40), "\n"), "hunter2"))
	require.Contains(t, v.Status(), "secrets shown")
	require.Equal(t, 7, v.Search("hunter2"))
	v.Hide()
	require.NotContains(t, strings.Join(drawn(t, v, 70, 40), "\n"), "hunter2")
	do(v, keymap.Reveal)
	v.Reset()
	v.Set(`{"password":"hunter3"}`)
	require.NotContains(t, strings.Join(drawn(t, v, 70, 40), "\n"), "hunter3", "the next value is masked again")
}

func TestSearch(t *testing.T) {
	t.Parallel()
	v := of(`{"a":{"needle":1},"b":[{"x":"a NEEDLE"},2],"c":"no"}`)
	drawn(t, v, 60, 20)
	do(v, keymap.FoldAll)
	require.Equal(t, 2, v.Search("Needle"))
	path, _, _ := v.Value()
	require.Equal(t, "/a/needle", path, "a fold opens for a match in it")
	do(v, keymap.NextMatch)
	path, _, _ = v.Value()
	require.Equal(t, "/b/0/x", path)
	require.Contains(t, v.Status(), "match 2/2")
	do(v, keymap.NextMatch)
	path, _, _ = v.Value()
	require.Equal(t, "/a/needle", path, "around the end")
	do(v, keymap.PrevMatch)
	path, _, _ = v.Value()
	require.Equal(t, "/b/0/x", path)
	require.Zero(t, v.Search("nowhere"))
	require.Contains(t, v.Status(), "no match")
	v.Search("")
	require.NotContains(t, v.Status(), "match")
}

func TestWrappedLinesAreScrolledRowByRow(t *testing.T) {
	t.Parallel()
	v := of(`{"text":"` + strings.Repeat("0123456789", 20) + `","end":1}`)
	drawn(t, v, 40, 4)
	do(v, keymap.Wrap)
	lines := drawn(t, v, 40, 20)
	require.Greater(t, len(lines), 7)
	whole := strings.Join(lines, "")
	require.Equal(t, 200,
		strings.Count(whole, "0")+strings.Count(whole, "1")+strings.Count(whole, "2")+strings.Count(whole, "3")+
			strings.Count(whole, "4")+strings.Count(whole, "5")+strings.Count(whole, "6")+strings.Count(whole, "7")+
			strings.Count(whole, "8")+strings.Count(whole, "9")-1, "nothing is lost")
	do(v, keymap.Bottom)
	require.Contains(t, drawn(t, v, 40, 4)[3], "}")
	do(v, keymap.HalfUp, keymap.HalfUp, keymap.HalfUp)
	require.Contains(t, strings.Join(drawn(t, v, 40, 4), ""), "0123")
	do(v, keymap.Top)
	require.Contains(t, drawn(t, v, 40, 4)[0], "{")
}

func TestTextsThatAreCutOffOrNoJSON(t *testing.T) {
	t.Parallel()
	const text = `{"a": {"password": "hunter2", "b": [1, 2, "unfini`
	v := of(text)
	require.Equal(t, []string{
		"▶ ▾ {", `  ▾   "a": {`, `        "password": "‹redacted›",`, `  ▾     "b": [`, `          1,`, `          2,`,
		`          "unfini…`,
	}, drawn(t, v, 60, 20))
	require.Contains(t, v.Status(), "cut off here")
	require.NotContains(t, jsonview.Redact(text), "hunter2")

	v = of("Traceback:\n\tpassword=hunter2\n\x1b[31mred \u202eevil")
	lines := drawn(t, v, 60, 20)
	require.Equal(t, []string{"▶   Traceback:", "        password ‹redacted›", `    \x1b[31mred \u202eevil`}, lines)
	require.Contains(t, v.Status(), "no JSON")
	require.Zero(t, v.Search("hunter2"))

	require.Empty(t, drawn(t, of(""), 60, 20))
	v = jsonview.New()
	do(v, keymap.Left, keymap.Right, keymap.FoldAll, keymap.Bottom, keymap.NextMatch, keymap.Reveal, keymap.HalfDown)
	_, _, ok := v.Value()
	require.False(t, ok)
}

func TestLettersInsteadOfTheirNumbers(t *testing.T) {
	t.Parallel()
	v := of(`["caf\u00e9 \ud83d\ude00 \u003cb\u003e", "\u001b[31m \u202e \\u0041 \u0022 \ud83d"]`)
	lines := drawn(t, v, 60, 20)
	require.Equal(t, `      "café 😀 <b>",`, lines[1])
	require.Equal(t, `      "\u001b[31m \u202e \\u0041 \u0022 \ud83d"`, lines[2], "what cannot be shown stays a number")
	do(v, keymap.RowDown)
	path, text, _ := v.Value()
	require.Equal(t, []string{"/0", "café 😀 <b>"}, []string{path, text})
}

func TestTextMasksSecretsAndKeepsNumbers(t *testing.T) {
	t.Parallel()
	lines := strings.Join(jsonview.Text(`{"n": 9007199254740993, "db": {"Password": "x", "api_key": null}, `+
		`"s": {"$attune_secret": true, "redacted": true}, "u": "a&b"}`), "\n")
	require.Contains(t, lines, "9007199254740993")
	require.Contains(t, lines, `"Password": "‹redacted›"`)
	require.Contains(t, lines, `"s": "‹redacted›"`)
	require.Contains(t, lines, "a&b")
	cut := strings.Join(jsonview.Text(`{"token": "abc", "x": "cut of`), "\n")
	require.NotContains(t, cut, "abc", "a text that is not JSON is masked too")
}

func TestPathsAreJSONPointers(t *testing.T) {
	t.Parallel()
	v := of(`{"a/b":[{"~":1}]}`)
	drawn(t, v, 60, 20)
	do(v, keymap.RowDown, keymap.RowDown, keymap.RowDown)
	path, _, _ := v.Value()
	require.Equal(t, "/a~1b/0/~0", path)
}

func TestRedactKeepsEverythingElse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{ "n": 12345678901234567890.10, "token": ["a", {"b": 1}], "x":[{"a":1}] }`: `{ "n": 12345678901234567890.10, "token": "‹redacted›", "x":[{"a":1}] }`,
		`{"token": {"a": 1, "secret": "x`:                                           `{"token": "‹redacted›"`,
	} {
		require.Equal(t, want, jsonview.Redact(text))
	}
}

// big is a document of about a megabyte, on one line.
func big() string {
	var b strings.Builder
	b.WriteString(`{"rows":[`)
	for i := range 12_000 {
		fmt.Fprintf(&b, `{"id":%d,"name":"row number %d","tags":["a","b"],"token":"t%d"},`, i, i, i)
	}
	return b.String() + `{}]}`
}

func TestALargeDocumentIsMovedInAtOnce(t *testing.T) {
	t.Parallel()
	v := of(big())
	drawn(t, v, 140, 30)
	do(v, keymap.Bottom)
	require.Contains(t, drawn(t, v, 140, 30)[29], "}")
	require.Equal(t, 1, v.Search("row number 11999"))
	path, _, _ := v.Value()
	require.Equal(t, "/rows/11999/name", path)
	do(v, keymap.FoldAll)
	require.Len(t, drawn(t, v, 140, 30), 3)
}

func BenchmarkSet(b *testing.B) {
	text := big()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		of(text)
	}
}

func BenchmarkLines(b *testing.B) {
	v, th := of(big()), plain(b)
	v.SetSize(140, 36)
	v.Do(keymap.Bottom)
	for b.Loop() {
		v.Lines(140, 36, th)
	}
}

func BenchmarkSearch(b *testing.B) {
	v := of(big())
	for b.Loop() {
		v.Search("row number 11")
	}
}

func FuzzView(f *testing.F) {
	for _, seed := range []string{
		sample, `{"a":`, `[`, `{"password":{"a":[1`, "text\n\x1b[31m", `"\ud83d`,
		`[[],{},[{}]]`, "{\"\xff\":\"\xfe\"}", `{"a":true "b"`, `[1,]`,
	} {
		f.Add(seed, uint8(40), uint8(7))
	}
	f.Fuzz(func(t *testing.T, text string, w, h uint8) {
		v := of(text)
		for _, action := range []keymap.Action{
			keymap.None, keymap.Bottom, keymap.Left, keymap.FoldAll, keymap.Wrap, keymap.HalfDown, keymap.FoldAll,
			keymap.Top,
			keymap.Right, keymap.Reveal, keymap.RowDown, keymap.HalfDown, keymap.Wrap, keymap.Bottom, keymap.Reveal,
		} {
			v.Do(action)
			if w%2 == 0 { // with the size of the last drawing, and of another one
				v.SetSize(int(w), int(h))
			}
			for _, drawn := range v.Lines(int(w), int(h), plain(t)) {
				require.LessOrEqual(t, widget.Width(drawn), max(int(w), 5))
				require.NotContains(t, drawn, "\x1b")
			}
			v.Search("a")
			v.Value()
			v.Status()
		}
		v.Set(text + " ")
		if json.Valid([]byte(text)) {
			require.True(t, json.Valid([]byte(jsonview.Redact(text))), "%q", jsonview.Redact(text))
		}
	})
}
