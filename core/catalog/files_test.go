package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/catalog"
)

// tree writes files, each with the policy of its name, and returns the folder.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range names {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		ref := strings.NewReplacer(".", "-", "/", "-").Replace(name)
		require.NoError(t, os.WriteFile(path, []byte("ref: p."+ref+"\nthreshold: 1\n"), 0o600))
	}
	return root
}

// inside are the names of the policies' files and of those left out, below the
// folder.
func inside(t *testing.T, root string, files catalog.Files) (policies, skipped []string) {
	t.Helper()
	policies, skipped = []string{}, []string{}
	relative := func(path string) string {
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		return name
	}
	for i := range files.Policies {
		policies = append(policies, relative(files.Policies[i].Place.File))
	}
	for _, name := range files.Skipped {
		skipped = append(skipped, relative(name))
	}
	return policies, skipped
}

func TestReadFolders(t *testing.T) {
	t.Parallel()
	root := tree(t,
		"limits.yaml", "more/deep/limits.yml", "notes.txt", ".hidden.yaml", ".git/config.yaml", "actions/echo.yaml",
		"deploy/pack.yaml", "deploy/config.yaml", "deploy/actions/rollout.yaml", "deploy/policies/limit.yaml",
		"deploy/policies/prod/quota.yaml", "deploy/lib/data.yaml",
	)
	files, err := catalog.Read([]string{root}, nil)
	require.NoError(t, err)
	require.Empty(t, files.Mistakes)
	policies, skipped := inside(t, root, files)
	require.Equal(t, []string{"deploy/policies/limit.yaml", "deploy/policies/prod/quota.yaml", "limits.yaml", "more/deep/limits.yml"}, policies)
	require.Equal(t, []string{
		"actions/echo.yaml", "deploy/actions/rollout.yaml", "deploy/config.yaml", "deploy/lib/data.yaml", "deploy/pack.yaml",
	}, skipped)

	files, err = catalog.Read([]string{filepath.Join(root, "deploy")}, nil)
	require.NoError(t, err)
	policies, _ = inside(t, root, files)
	require.Equal(t, []string{"deploy/policies/limit.yaml", "deploy/policies/prod/quota.yaml"}, policies)
}

func TestReadNamesTheSameFileOnce(t *testing.T) {
	t.Parallel()
	root := tree(t, "a.yaml", "notes.txt")
	files, err := catalog.Read([]string{root, filepath.Join(root, "a.yaml"), root + "/./a.yaml", filepath.Join(root, "notes.txt")}, nil)
	require.NoError(t, err)
	require.Empty(t, files.Mistakes)
	require.Len(t, files.Policies, 2, "a file that is named counts, whatever it is called")
}

func TestReadReportsDuplicatesAcrossFiles(t *testing.T) {
	t.Parallel()
	root := tree(t, "a.yaml")
	text, err := os.ReadFile(filepath.Join(root, "a.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "b.yaml"), append([]byte("# again\n"), text...), 0o600))
	files, err := catalog.Read([]string{root}, nil)
	require.NoError(t, err)
	require.Len(t, files.Mistakes, 1)
	require.Equal(t, root+"/b.yaml:2:1: the policy p.a-yaml is given twice, also at "+root+"/a.yaml:1:1", files.Mistakes[0].String())
}

func TestReadRefusals(t *testing.T) {
	t.Parallel()
	root := tree(t, "actions/echo.yaml", "pack.yaml")
	_, err := catalog.Read([]string{filepath.Join(root, "missing.yaml")}, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, path := range []string{root, filepath.Join(root, "pack.yaml"), filepath.Join(root, "actions")} {
		_, err = catalog.Read([]string{path}, nil)
		require.ErrorIs(t, err, catalog.ErrNoFiles, path)
		require.ErrorContains(t, err, "there is no policy file below "+path)
	}

	large := filepath.Join(root, "large.yaml")
	require.NoError(t, os.WriteFile(large, make([]byte, 1<<20+1), 0o600))
	files, err := catalog.Read([]string{large}, nil)
	require.NoError(t, err)
	require.Len(t, files.Mistakes, 1)
	require.Equal(t, large+": the file is larger than 1024 KiB", files.Mistakes[0].String())
}

// Who names a file means its policies: one without any is a mistake, and one
// that was only found in a folder is not.
func TestReadNamedFilesWithoutPolicies(t *testing.T) {
	t.Parallel()
	root := tree(t, "limits.yaml")
	for name, text := range map[string]string{
		"empty.yaml": "", "comments.yaml": "# later\n", "list.yaml": "policies: []\n", "null.yaml": "---\n---\n",
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		for _, paths := range [][]string{{path}, {path, root}, {root, path}} {
			files, err := catalog.Read(paths, nil)
			require.NoError(t, err)
			require.Len(t, files.Mistakes, 1, paths)
			require.Equal(t, path+": it holds no policy", files.Mistakes[0].String())
		}
	}
	files, err := catalog.Read([]string{root}, nil)
	require.NoError(t, err)
	require.Empty(t, files.Mistakes)
	require.Len(t, files.Policies, 1)
}

func TestReadStandardInput(t *testing.T) {
	t.Parallel()
	root := tree(t, "a.yaml")
	files, err := catalog.Read([]string{"-", root, "-"}, strings.NewReader("ref: core.stdin\nthreshold: 1\n"))
	require.NoError(t, err)
	require.Empty(t, files.Mistakes)
	require.Len(t, files.Policies, 2)
	require.Equal(t, "-:1:1", files.Policies[0].Place.String())
	files, err = catalog.Read([]string{"-"}, strings.NewReader("ref: core.stdin\nthreshold: x\n"))
	require.NoError(t, err)
	require.Len(t, files.Mistakes, 1)
	require.Equal(t, `-:2:12: threshold is "x"; it must be a whole number`, files.Mistakes[0].String())
	files, err = catalog.Read([]string{"-"}, strings.NewReader(""))
	require.NoError(t, err)
	require.Len(t, files.Mistakes, 1)
	require.Equal(t, "-: it holds no policy", files.Mistakes[0].String())
}
