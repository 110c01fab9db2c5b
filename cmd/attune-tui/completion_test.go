package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestCompletionHasEveryFlag(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, out, _ := call(t, nil, "--completion", shell)
		require.Equal(t, exitDone, code)
		flags(&options{}).VisitAll(func(f *pflag.Flag) {
			require.Contains(t, out, f.Name, "%s has no --%s", shell, f.Name)
		})
		require.Contains(t, out, "colour-blind")
	}
	code, _, errors := call(t, nil, "--completion", "tcsh")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errors, `there is no completion for "tcsh": choose bash, zsh or fish`)
}

// TestShellsReadTheCompletion lets each shell that is installed read its script, and bash complete.
func TestShellsReadTheCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := completion(shell)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "attune-tui."+shell)
		require.NoError(t, os.WriteFile(path, []byte(script), 0o600))
		program, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(t.Context(), program, "-n", path).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Empty(t, string(out))
		if shell != "bash" {
			continue
		}
		for words, want := range map[string]string{
			"attune-tui --the":             "--theme\n",
			"attune-tui --view over":       "overview\n",
			"attune-tui -o j":              "json\n",
			"attune-tui --width 100 --hei": "--height\n",
		} {
			out, err := exec.CommandContext(t.Context(), program, "-c",
				`. "$1"; COMP_WORDS=($2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _attune_tui; `+
					`printf '%s\n' "${COMPREPLY[@]}"`, "bash", path, words).CombinedOutput()
			require.NoError(t, err)
			require.Equal(t, want, string(out), words)
		}
	}
}
