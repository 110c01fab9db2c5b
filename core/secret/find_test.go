package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/secret"
)

const (
	awkward = `p"<ä>&/` + "\\😀\u2028"
	key     = "-----BEGIN KEY-----\n  MIIEvQIBADANBg\n\tkqhkiG9w0BAQEF\nshort\n-----END KEY-----\n"
)

// indented is a text of several lines as a template or a log writes it.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n    | ") }

func folded(text string, width int) string {
	for i := width; i < len(text); i += width + 1 {
		text = text[:i] + "\n" + text[i:]
	}
	return text
}

func ascii(text string, format string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out.WriteString(`\` + string(r))
		case r < ' ' || r > '~':
			for _, unit := range utf16Of(r) {
				fmt.Fprintf(&out, format, unit)
			}
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func utf16Of(r rune) []rune {
	if r < 0x10000 {
		return []rune{r}
	}
	return []rune{0xd800 + (r-0x10000)>>10, 0xdc00 + (r-0x10000)&0x3ff}
}

// Every form that a secret is searched for is found in a text.
func TestSecretsAreFoundInEveryForm(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long secret ", 20)
	f := (&secret.Finder{}).With(awkward,
		map[string]any{"pin": int64(84729163), "price": -1234.5, "list": []any{key, long}}, "hunter2", "0042")
	html, err := json.Marshal(awkward)
	require.NoError(t, err)
	nested, err := json.Marshal(string(html))
	require.NoError(t, err)
	std, url := base64.StdEncoding, base64.URLEncoding
	for name, c := range map[string]struct{ text, want string }{
		"as it is":          {"a " + awkward + " b", "a *** b"},
		"a number":          {"pin 84729163, pin=84729163", "pin ***, pin=***"},
		"a negative number": {"-1234.5", "-***"},
		"digits in a text":  {"0042", "***"},
		"JSON of Go":        {`{"x":` + string(html) + `}`, `{"x":"***"}`},
		"JSON without HTML": {`{"x":"p\"<ä>&/\\😀\u2028"}`, `{"x":"***"}`},
		"JSON of PHP":       {`"p\"<\u00e4>&\/\\\ud83d\ude00\u2028"`, `"***"`},
		"only ASCII":        {`"` + ascii(awkward, `\u%04x`) + `"`, `"***"`},
		"ASCII, upper case": {`"` + ascii(awkward, `\u%04X`) + `"`, `"***"`},
		"JSON within JSON":  {string(nested), `"\"***\""`},
		"all escaped":       {`\u0068\u0075\u006e\u0074\u0065\u0072\u0032!`, "***!"},
		"lines, indented":   {indented(key), "***\n    |   ***\n    | \t***\n    | short\n    | ***\n    | "},
		"several lines":     {"<" + key + ">", "<***>"},
		"lines in JSON":     {ascii(key, `\u%04x`) + "!", "***!"},
		"base64":            {std.EncodeToString([]byte(awkward)) + " x", "*** x"},
		"base64 of URLs":    {"=" + url.EncodeToString([]byte(awkward)) + "&", "=***&"},
		"base64, bare":      {std.WithPadding(base64.NoPadding).EncodeToString([]byte("hunter2")) + " x", "*** x"},
		"base64 of a line":  {std.EncodeToString([]byte("hunter2\n")) + "\n", "***\n"},
		"base64 in 64":      {folded(std.EncodeToString([]byte(long)), 64) + "\n", "***\n"},
		"base64 in 76":      {folded(std.EncodeToString([]byte(key)), 76) + "\n", "***\n"},
		"base64 in JSON": {
			`{"x":"` + strings.ReplaceAll(std.EncodeToString([]byte(awkward)), "/", `\/`) + `"}`,
			`{"x":"***"}`,
		},
		"next to each other": {"hunter2hunter2", "******"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, f.Hide(c.text))
		})
	}
	for _, text := range []string{
		"", "pin", "1847291630", "8472916", "hunter", "HUNTER2", "004", "short", `\u00`, `\`,
		`a\`, "\\ud83d",
	} {
		require.Equal(t, text, f.Hide(text))
	}
	require.Equal(t, "hunter2", (*secret.Finder)(nil).Hide("hunter2"))
	require.Same(t, f, f.With("abc", int64(123), true, nil, "").With(), "short values are not searched for")
}

func TestOverlappingSecretsLeaveNothing(t *testing.T) {
	t.Parallel()
	f := (&secret.Finder{}).With("abcdef", "defghi", "cdef", "xyz123xyz")
	require.Equal(t, "-***-***-***", f.Hide("-abcdefghi-cdef-xyz123xyz123xyz"))
}

func TestSecretsAreFoundInData(t *testing.T) {
	t.Parallel()
	f := (&secret.Finder{}).With("hunter2", json.Number("84729163"))
	data := value(t, `{"n":84729163,"f":8.4729163e7,"neg":-84729163,"t":"pin 84729163","other":[847291630,1],
		"named":{"x-hunter2":{"deep":"hunter2"},"n":1},"deep":[{"json":"{\"p\":\"hunter\\u0032\"}"}],"hunter":"2"}`)
	decoder := json.NewDecoder(strings.NewReader(`{"f":8.4729163e7,"neg":-84729163}`))
	decoder.UseNumber()
	var numbers map[string]any
	require.NoError(t, decoder.Decode(&numbers))
	require.ElementsMatch(t, []string{"/f", "/neg"}, f.In(numbers))
	require.ElementsMatch(t, []string{"/n", "/f", "/neg", "/t", "/named", "/deep/0/json"}, f.In(data))
	require.Equal(t, []string{""}, f.In(map[string]any{"hunter2": 1}))
	require.Empty(t, f.In([]any{"x", true, nil, "8472"}))
	require.Empty(t, (*secret.Finder)(nil).In(data))
}

// A text that is read in parts hides secrets at their borders too.
func TestSecretsAreFoundAtBorders(t *testing.T) {
	t.Parallel()
	f := (&secret.Finder{}).With(`se"cret`)
	for _, around := range []int{1<<20 - 168, 1<<20 - 8, 1 << 20} {
		for _, filler := range []string{"x", `\`} {
			text := strings.Repeat(filler, around) + ` se\"cret ` + strings.Repeat("y", 1<<20) + `se\u0022cret`
			hidden := f.Hide(text)
			require.NotContains(t, hidden, "cret", "%s %d", filler, around)
			require.Equal(t, 2, strings.Count(hidden, secret.Mask))
		}
	}
}

// The time of a search is independent of the number of secrets, and a text that would make it slow is hidden.
func TestASearchIsBounded(t *testing.T) {
	t.Parallel()
	var many []any
	for i := range 1000 {
		many = append(many, fmt.Sprintf("secret-number-%d-of-many", i*7919))
	}
	lines := strings.Repeat(`{"level":"info","msg":"request \"GET /\" done","id":123456,"status":200}`+"\n", 2<<20/74)
	same := strings.Repeat("A", 100_000)
	for name, c := range map[string]struct {
		f    *secret.Finder
		text string
		want string
	}{
		"many secrets":    {(&secret.Finder{}).With(many...), lines, lines},
		"one long secret": {(&secret.Finder{}).With(same + "B"), strings.Repeat("A", 2<<20), secret.Unsearched},
		"only backslashes": {
			(&secret.Finder{}).With("hunter2"), strings.Repeat(`\`, 2<<20),
			strings.Repeat(`\`, 2<<20),
		},
	} {
		begin := time.Now()
		hidden := c.f.Hide(c.text)
		require.Len(t, hidden, len(c.want), name)
		require.Equal(t, c.want[:50], hidden[:50], name)
		require.Less(t, time.Since(begin), 30*time.Second, name)
	}
}

// FuzzHide tries texts and secrets: the hidden text does not contain the secret, however
// JSON writes it.
func FuzzHide(f *testing.F) {
	f.Add("hunter2", "a", "b")
	f.Add(awkward, `\`, `\u0041`)
	f.Add(key, "-", "=")
	f.Fuzz(func(t *testing.T, plain, before, after string) {
		raw, err := json.Marshal(plain)
		require.NoError(t, err)
		var stored string
		require.NoError(t, json.Unmarshal(raw, &stored))
		if len(stored) < 4 || strings.ContainsAny(stored, "*\\") || strings.HasSuffix(before, `\`) {
			return
		}
		finder := (&secret.Finder{}).With(stored)
		hidden := finder.Hide(before + " " + stored + " " + string(raw) + after)
		require.NotContains(t, hidden, stored)
		require.NotContains(t, hidden, string(raw[1:len(raw)-1]))
		require.Equal(t, hidden, finder.Hide(hidden))
	})
}
