package catalog_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/catalog"
)

// link makes a link below a folder to a target as it is written.
func link(t *testing.T, root, name, target string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
	require.NoError(t, os.Symlink(target, filepath.Join(root, name)))
}

// Links within a pack are followed, also a pack that is a link and links that form a loop. Each item is read once.
func TestLinksWithinAPackAreFollowed(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{
		"pack.yaml": "ref: shop\nversion: 1.0.0\n", "real/a.yaml": "ref: shop.a\nentry_point: a.sh\n", "real/a.sh": "true\n",
		"real/flows/f.workflow.yaml": "version: 1.0.0\ntasks: [{name: a, action: shop.a}]\n",
		"real/b.yaml":                "ref: shop.b\nworkflow_file: workflows/f.workflow.yaml\n",
		"limits/l.yaml":              "ref: shop.l\naction: shop.a\nthreshold: 1\n",
	})
	link(t, root, "actions", "real")
	link(t, root, "real/workflows", filepath.Join(root, "real", "flows"))
	link(t, root, "policies", "limits")
	link(t, root, "limits/again", "..")
	link(t, root, "real/loop", "loop")
	above := filepath.Dir(root)
	link(t, above, "alias", "shop")
	named := filepath.Join(t.TempDir(), "named")
	require.NoError(t, os.Symlink(root, named))
	here, err := os.Getwd()
	require.NoError(t, err)
	relative, err := filepath.Rel(here, root)
	require.NoError(t, err)
	for _, paths := range [][]string{{root}, {relative}, {named}, {above}, {above, root, named}} {
		files, err := catalog.Read(paths, nil)
		require.NoError(t, err)
		require.Empty(t, files.Mistakes, paths)
		want := []string{"pack shop", "workflow shop.b", "action shop.a", "action shop.b"}
		require.Equal(t, want, items(files), paths)
		require.Len(t, files.Set.Policies, 1, paths)
		require.Len(t, files.Warnings, 1, paths)
		require.Contains(t, files.Warnings[0].String(), "loop: the link is not followed: ", "it leads to itself")
	}
}

// A link out of a pack, or out of the given folder, is not followed, with a warning that shows nothing of its target.
// Nothing of its pack is pruned, unless the link is given too.
func TestLinksOutOfThePackAreNotFollowed(t *testing.T) {
	b := setup(t)
	root := folder(t, map[string]string{
		"pack.yaml": "ref: shop\nversion: 1.0.0\n", "actions/a.yaml": "ref: shop.a\nentry_point: a.sh\n", "actions/a.sh": "true\n",
		"rules/r.yaml": "ref: r\ntrigger: came\naction: a\n", "triggers/came.yaml": "ref: shop.came\n",
	})
	b.must(t, order(t, root))
	elsewhere := t.TempDir()
	require.NoError(t, os.Rename(filepath.Join(root, "rules"), filepath.Join(elsewhere, "rules")))
	require.NoError(t, os.Rename(filepath.Join(root, "triggers/came.yaml"), filepath.Join(elsewhere, "came.yaml")))
	put(t, elsewhere, "secret.yaml", "root:$6$hash:19000\nhunter2: [\n")
	link(t, root, "rules", filepath.Join(elsewhere, "rules"))
	link(t, root, "triggers/came.yaml", filepath.Join(elsewhere, "came.yaml"))
	link(t, root, "actions/secret.yaml", filepath.Join(elsewhere, "secret.yaml"))
	link(t, root, "actions/gone", "nowhere")
	link(t, root, "lib", elsewhere)
	for _, path := range []string{root, filepath.Dir(root)} {
		request := order(t, path)
		files, err := catalog.Read([]string{path}, nil)
		require.NoError(t, err)
		require.Empty(t, files.Mistakes)
		require.Equal(t, []string{"pack shop", "action shop.a"}, items(files))
		require.Equal(t, []string{
			root + "/actions/gone: the link is not followed: stat " + root + "/actions/gone: no such file or directory",
			root + "/actions/secret.yaml: the link is not followed: it leads out of " + root,
			root + "/rules: the link is not followed: it leads out of " + root,
			root + "/triggers/came.yaml: the link is not followed: it leads out of " + root,
		}, texts(files.Warnings))
		request.Prune = true
		require.Zero(t, b.must(t, request).Count(catalog.Deleted))
	}
	require.NoError(t, os.Remove(filepath.Join(root, "actions/secret.yaml")))
	require.NoError(t, os.Remove(filepath.Join(root, "actions/gone")))
	named := filepath.Join(t.TempDir(), "named")
	require.NoError(t, os.Symlink(root, named))
	here, err := os.Getwd()
	require.NoError(t, err)
	relative, err := filepath.Rel(here, root)
	require.NoError(t, err)
	for _, shop := range []string{root, relative, named} {
		request := order(t, shop, filepath.Join(shop, "rules"), filepath.Join(shop, "triggers/came.yaml"))
		request.Prune = true
		result := b.must(t, request)
		require.Empty(t, texts(result.Warnings))
		require.Zero(t, result.Count(catalog.Deleted))
		require.Equal(t, 4, result.Count(catalog.Unchanged))
	}
}

// The files to which others refer are not read through links out of the pack either, and their content is not shown.
func TestReferredFilesOutOfThePackAreNotRead(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{
		"actions/flow.yaml": "ref: shop.flow\nworkflow_file: workflows/secret.yaml\n",
		"actions/a.yaml":    "ref: shop.a\nentry_point: a.sh\n",
	})
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("hunter2: [\n"), 0o600))
	link(t, root, "pack.yaml", secret)
	link(t, root, "actions/workflows/secret.yaml", secret)
	require.NoError(t, os.Remove(filepath.Join(root, "actions/a.sh")))
	link(t, root, "actions/a.sh", secret)
	for _, path := range []string{root, filepath.Join(root, "actions"), filepath.Join(root, "actions/flow.yaml")} {
		files, err := catalog.Read([]string{path}, nil)
		require.NoError(t, err)
		all := strings.Join(append(texts(files.Mistakes), texts(files.Warnings)...), "\n")
		require.NotContains(t, all, "hunter2", path)
		require.Contains(t, all, root+"/pack.yaml: the link is not followed: it leads out of "+root, path)
		require.Contains(t, all, root+"/actions/workflows/secret.yaml: the link is not followed", path)
	}
	files, err := catalog.Read([]string{root}, nil)
	require.NoError(t, err)
	require.Contains(t, strings.Join(texts(files.Mistakes), "\n"), root+"/actions/a.yaml:2:1: a.sh leads out of the pack by a link")
}

// What is no regular file is left out of a folder with a warning, and read without waiting if it is named itself.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	t.Parallel()
	root := tree(t, "pack.yaml", "actions/echo.yaml")
	pipe := filepath.Join(root, "actions", "pipe.yaml")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	link(t, root, "actions/linked.yaml", "pipe.yaml")
	link(t, root, "actions/null.yaml", os.DevNull)
	read := func(path string) (files catalog.Files, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			files, err = catalog.Read([]string{path}, nil)
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			require.Fail(t, "it waits for a writer of the pipe")
		}
		return files, err
	}
	files, err := read(root)
	require.NoError(t, err)
	require.Empty(t, files.Mistakes)
	require.Equal(t, []string{"pack deploy", "action deploy.echo"}, items(files))
	require.Empty(t, files.Set.Whole)
	require.Equal(t, []string{
		root + "/actions/linked.yaml: it is not read: it is no regular file",
		root + "/actions/null.yaml: the link is not followed: it leads out of " + root, pipe + ": it is not read: it is no regular file",
	}, texts(files.Warnings))
	files, err = read(pipe)
	require.NoError(t, err)
	require.Empty(t, files.Set.Items)

	from, to, err := os.Pipe()
	require.NoError(t, err)
	defer from.Close() //nolint:errcheck // it was only read
	go func() {
		_, _ = to.WriteString("ref: deploy.limit\nthreshold: 1\n")
		_ = to.Close()
	}()
	files, err = read("/dev/fd/" + strconv.Itoa(int(from.Fd())))
	require.NoError(t, err)
	require.Empty(t, files.Mistakes)
	require.Len(t, files.Set.Policies, 1, "as with process substitution")
}
