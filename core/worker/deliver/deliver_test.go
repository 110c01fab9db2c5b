package deliver_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/worker/deliver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// all declares every parameter.
var all = deliver.Names{Declared: func(string) bool { return true }}

func TestEncode(t *testing.T) {
	t.Parallel()
	params := json.RawMessage(
		`{"b": {"x": [1, 2]}, "a": "it's $HOME\nand more", "n": 12345678901, "f": 0.5, "no": null, "9-x": true}`)

	t.Run("JSON", func(t *testing.T) {
		t.Parallel()
		text, err := deliver.Encode("json", params, deliver.Names{})
		require.NoError(t, err)
		require.JSONEq(t, string(params), string(text))
		text, err = deliver.Encode("json", nil, deliver.Names{})
		require.NoError(t, err)
		require.JSONEq(t, `{}`, string(text))
	})

	t.Run("YAML", func(t *testing.T) {
		t.Parallel()
		text, err := deliver.Encode("yaml", params, deliver.Names{})
		require.NoError(t, err)
		require.YAMLEq(t, string(params), string(text))
		require.Contains(t, string(text), ": 12345678901\n")
		exact := "dec: 0.12345678901234567890123\nday: \"2024-01-02\"\nbig: 18446744073709551617\n" +
			"huge: 1e400\none: 1.0\nword: \"yes\"\n"
		text, err = deliver.Encode("yaml", json.RawMessage(`{"dec":0.12345678901234567890123,"day":"2024-01-02",
			"big":18446744073709551617,"huge":1e400,"one":1.0,"word":"yes"}`), deliver.Names{})
		require.NoError(t, err)
		require.Equal(t, exact, string(text)) //nolint:testifylint // each digit
	})

	t.Run("JSONIsOneCompactLine", func(t *testing.T) {
		t.Parallel()
		text, err := deliver.Encode("json", json.RawMessage("{ \"a\": [1,\n 2] }"), deliver.Names{})
		require.NoError(t, err)
		require.JSONEq(t, `{"a":[1,2]}`, string(text))
		require.Len(t, text, len(`{"a":[1,2]}`)+1, "without spaces, and one line break at the end")
	})

	t.Run("Dotenv", func(t *testing.T) {
		t.Parallel()
		text, err := deliver.Encode("dotenv", json.RawMessage(
			`{"url": "http://a/?b=c", "headers": {"Content-Type": "x", "deep": {"n": 1}}, "list": [1, {"a": 2}], "no": null, "yes": true,
			  "none": {}, "it's": "it's", "a\nb;c $(d)=": 1, "é": "ü\u0000", "a/b+": 2}`),
			all)
		require.NoError(t, err)
		require.Equal(t, `a_b_='2'
a_b_c___d__='1'
headers.Content-Type='x'
headers.deep.n='1'
it_s='it'\''s'
list='[1,{"a":2}]'
no=''
url='http://a/?b=c'
yes='true'
é='ü'
`, string(text))
	})

	t.Run("DotenvIsReadBackByAShell", func(t *testing.T) {
		t.Parallel()
		text, err := deliver.Encode("dotenv",
			json.RawMessage(`{"a": "it's $HOME\nand more", "n": 12345678901, "no": null, "l": [1, "'"]}`), all)
		require.NoError(t, err)
		path, remove, err := deliver.File(t.TempDir(), text)
		require.NoError(t, err)
		defer remove()
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c",
			`. "$1"; printf '%s|%s|%s|%s' "$a" "$l" "$n" "$no"`, "sh", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, "it's $HOME\nand more|[1,\"'\"]|12345678901|", string(out))
	})

	t.Run("UndeclaredParametersAreOnlyPARAM", func(t *testing.T) {
		t.Parallel()
		text, err := deliver.Encode("dotenv", json.RawMessage(
			`{"PATH+": "/x", "o": {"a/../b": [1]}, "my-name": null, "mine": {"a/b": 1}, "HOME": "h", "UID": 1}`),
			deliver.Names{
				Declared:    func(name string) bool { return name == "mine" || name == "HOME" || name == "UID" },
				Environment: []string{"HOME=/"},
			})
		require.NoError(t, err)
		require.Equal(t, `PARAM_HOME='h'
PARAM_MY_NAME=''
PARAM_O='{"a/../b":[1]}'
PARAM_PATH_='/x'
PARAM_UID='1'
mine.a_b='1'
`, string(text))
	})

	t.Run("UnknownFormat", func(t *testing.T) {
		t.Parallel()
		_, err := deliver.Encode("toml", params, deliver.Names{})
		require.ErrorContains(t, err, `"toml"`)
	})
}

func TestFile(t *testing.T) {
	t.Parallel()
	path, remove, err := deliver.File(t.TempDir(), []byte("secret"))
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	remove()
	require.NoFileExists(t, path)

	_, _, err = deliver.File("/does/not/exist", nil)
	require.ErrorContains(t, err, "create parameter file")
}
