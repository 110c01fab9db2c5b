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
	params := json.RawMessage(`{"b": {"x": [1, 2]}, "a": "it's $HOME\nand more", "n": 12345678901, "f": 0.5, "no": null, "9-x": true}`)

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

	t.Run("DotenvIsReadBackByAShell", func(t *testing.T) {
		t.Parallel()
		text, err := deliver.Encode("dotenv", params)
		require.NoError(t, err)
		path, remove, err := deliver.File(t.TempDir(), text)
		require.NoError(t, err)
		defer remove()
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c",
			`. "$1"; printf '%s|%s|%s|%s|%s' "$a" "$b" "$n" "$no" "$__x"`, "sh", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, "it's $HOME\nand more|{\"x\":[1,2]}|12345678901||true", string(out))
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
