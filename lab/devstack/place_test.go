package devstack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFolderBelowAClosedHome asks for a folder that PostgreSQL's user cannot
// reach, as below root's home: every process that asks gets the same other one.
func TestFolderBelowAClosedHome(t *testing.T) {
	t.Parallel()
	as, err := postgresAccount()
	require.NoError(t, err)
	if as == nil {
		t.Skip("PostgreSQL runs as the caller, who can enter its own folders")
	}
	home := t.TempDir()
	require.NoError(t, os.Chmod(home, 0o700))
	asked := filepath.Join(home, "project", "stack")

	first, err := findPlace(t.Context(), asked, as)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(first.dir)) })
	second, err := findPlace(t.Context(), asked, as)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.NotEqual(t, asked, first.dir)
	require.Contains(t, first.moved, as.name)
	require.True(t, canEnter(t.Context(), first.dir, as))
}

func TestPreparedFolderIsNotTrusted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.True(t, owned(dir))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("/tmp", link))
	require.False(t, owned(link), "a link in the place of our folder was followed")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 65534, 65534))
		require.False(t, owned(dir), "a folder of another user was taken")
	}
}

func TestPathsThatScriptsDoNotSurvive(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"/srv/attune/.attune/stack", "/home/a-b_c/x@1.2+3"} {
		require.True(t, plainPath.MatchString(good), good)
	}
	for _, bad := range []string{"/a b", "/a'b", "/a$b", "/a*b", "/a\nb", "/ä", "/a;b", ""} {
		require.False(t, plainPath.MatchString(bad), bad)
	}
}
