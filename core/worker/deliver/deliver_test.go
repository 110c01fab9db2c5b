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

func TestEncode(t *testing.T) {
	t.Parallel()
	params := json.RawMessage(
		`{"b": {"x": [1, 2]}, "a": "it's $HOME\nand more", "n": 12345678901, "f": 0.5, "no": null, "9-x": true}`)

	t.Run("JSON", func(t *testing.T) {
		t.Parallel()
		text, err := deliver.Encode("json", params)
		require.NoError(t, err)
		require.JSONEq(t, string(params), string(text))
		text, err = deliver.Encode("json", nil)
		require.NoError(t, err)
		require.JSONEq(t, `{}`, string(text))
	})

	t.Run("YAML", func(t *testing.T) {
		t.Parallel()
		text, err := deliver.Encode("yaml", params)
		require.NoError(t, err)
		require.YAMLEq(t, string(params), string(text))
		require.Contains(t, string(text), ": 12345678901\n")
	})

	t.Run("JSONIsOneCompactLine", func(t *testing.T) {
		t.Parallel()
		text, err := deliver.Encode("json", json.RawMessage("{ \"a\": [1,\n 2] }"))
		require.NoError(t, err)
		require.JSONEq(t, `{"a":[1,2]}`, string(text))
		require.Len(t, text, len(`{"a":[1,2]}`)+1, "without spaces, and one line break at the end")
	})

	t.Run("Dotenv", func(t *testing.T) {
		t.Parallel()
		text, err := deliver.Encode("dotenv", json.RawMessage(
			`{"url": "http://a/?b=c", "headers": {"Content-Type": "x", "deep": {"n": 1}}, "list": [1, {"a": 2}], "no": null, "yes": true,
			  "none": {}, "it's": "it's", "a\nb;c $(d)=": 1, "é": "ü\u0000"}`))
		require.NoError(t, err)
		require.Equal(t, `a_b_c___d__='1'
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
			json.RawMessage(`{"a": "it's $HOME\nand more", "n": 12345678901, "no": null, "l": [1, "'"]}`))
		require.NoError(t, err)
		path, remove, err := deliver.File(t.TempDir(), text)
		require.NoError(t, err)
		defer remove()
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c",
			`. "$1"; printf '%s|%s|%s|%s' "$a" "$l" "$n" "$no"`, "sh", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, "it's $HOME\nand more|[1,\"'\"]|12345678901|", string(out))
	})

	t.Run("UnknownFormat", func(t *testing.T) {
		t.Parallel()
		_, err := deliver.Encode("toml", params)
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
