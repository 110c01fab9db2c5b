package devstack_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/devstack"
)

// Attach creates neither the folder nor one above it, also if the user of PostgreSQL cannot enter it.
func TestAttachCreatesNoFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, err := devstack.Attach(t.Context(), devstack.Config{Dir: filepath.Join(folder, ".attune", "stack")})
	require.ErrorIs(t, err, devstack.ErrNoStack)
	require.NoDirExists(t, filepath.Join(folder, ".attune"))
}

// TestAResetRemovesTheDefaultFolderToo: .attune is made for the stack, unless more is in it.
func TestAResetRemovesTheDefaultFolderToo(t *testing.T) {
	t.Parallel()
	for _, more := range []bool{false, true} {
		folder := filepath.Join(tempDir(t, "project"), ".attune")
		dir := filepath.Join(folder, "stack")
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "stack.json"), []byte(`{"version": 1}`), 0o600))
		if more {
			require.NoError(t, os.WriteFile(filepath.Join(folder, "mine"), nil, 0o600))
		}
		stack, err := devstack.Attach(t.Context(), devstack.Config{Dir: dir})
		require.NoError(t, err)
		require.NoError(t, stack.Reset(t.Context()))
		require.NoDirExists(t, dir)
		if more {
			require.FileExists(t, filepath.Join(folder, "mine"))
		} else {
			require.NoDirExists(t, folder)
		}
	}
}
