package deliver_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/worker/deliver"
)

// runScript runs the code with the parameters and returns its output.
func runScript(t *testing.T, params map[string]any, code string) (string, error) {
	t.Helper()
	raw, err := json.Marshal(params)
	require.NoError(t, err)
	environment := []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "ATTUNE_ACTION=a.b"}
	script, err := deliver.Script(code, raw, deliver.Names{
		Declared: func(name string) bool { return !strings.HasPrefix(name, "undeclared") }, Environment: environment,
	})
	require.NoError(t, err)
	path, remove, err := deliver.ScriptFile(t.TempDir(), "exec_1.sh", script)
	require.NoError(t, err)
	defer remove()
	cmd := exec.CommandContext(t.Context(), "/bin/bash", path)
	cmd.Env = environment
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestScript(t *testing.T) {
	t.Parallel()

	t.Run("ValuesArriveUnchanged", func(t *testing.T) {
		t.Parallel()
		for _, value := range []string{
			"", "hi", "it's", `'; touch /tmp/no; echo '`, "two\nlines\n", "$(false) `false` ${x}",
			`back\slash "quoted"`, "ünï ☃", "-n", "a'\\''b", "\t",
		} {
			out, err := runScript(t, map[string]any{"value": value}, `printf '%s|%s' "$value" "$PARAM_VALUE"`)
			require.NoError(t, err, out)
			require.Equal(t, value+"|"+value, out)
		}
	})

	t.Run("OtherValuesAreJSON", func(t *testing.T) {
		t.Parallel()
		out, err := runScript(t, map[string]any{"o": map[string]any{"a": []int{1}}, "n": 1.5, "b": true, "z": nil},
			`echo "o is $o $n $b $z"`)
		require.NoError(t, err, out)
		require.Equal(t, "o is {\"a\":[1]} 1.5 true null\n", out)
	})

	t.Run("NamesNeitherBreakNorInject", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "made")
		out, err := runScript(t, map[string]any{
			"my-param": 1, "x;touch " + file + ";y": 2, "$(touch " + file + ")": 3, "a\ntouch " + file: 4, "9": 5,
			"": 6, "é": 7, "if": 8,
			"UID": 9, "PATH": "/nowhere", "IFS": "x", "BASH_ENV": file, "HOME": "/elsewhere", "my_param": 10,
			"PARAM_OTHER": 11, "other": 12, "undeclared": 13,
		}, `ls / >/dev/null; echo "$PARAM_MY_PARAM $PARAM_9 $PARAM_UID $PARAM_PATH $HOME $PARAM_HOME $PARAM_IF $PARAM_OTHER $other"
echo "$PARAM_UNDECLARED$undeclared"`)
		require.NoError(t, err, out)
		require.Equal(t, "10 5 9 /nowhere / /elsewhere 8 12 12\n13\n", out)
		require.NoFileExists(t, file)
	})

	t.Run("ItEndsAtTheFirstFailureAndExportsNothing", func(t *testing.T) {
		t.Parallel()
		out, err := runScript(t, map[string]any{"secret": "s"},
			"env | grep -c -e secret -e SECRET || true\nfalse\necho on")
		require.Error(t, err)
		require.Equal(t, "0\n", out)
	})
}

func TestScriptFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, remove, err := deliver.ScriptFile(dir, "exec_7.sh", []byte("secret"))
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(path, "/exec_7.sh"), path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	remove()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	_, _, err = deliver.ScriptFile(dir, "exec_7/../../x", nil)
	require.ErrorContains(t, err, "out of its folder")
	left, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	_, _, err = deliver.ScriptFile("/does/not/exist", "x", nil)
	require.ErrorContains(t, err, "create script")
}
