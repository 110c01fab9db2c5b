package devstack_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/devstack"
)

func TestVariablesOfAFolderWithoutAStackAreNone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.Empty(t, devstack.Variables(t.Context(), folder))
	require.Empty(t, devstack.Variables(t.Context(), filepath.Join(folder, "missing")))
	require.NoDirExists(t, filepath.Join(folder, "missing"))
}
