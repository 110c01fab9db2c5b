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
		content := "ref: p." + ref + "\nthreshold: 1\n"
		switch filepath.Base(filepath.Dir(name)) {
		case "actions":
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "x.sh"), nil, 0o600))
			content = "ref: deploy." + strings.TrimSuffix(filepath.Base(name), ".yaml") + "\nentry_point: x.sh\n"
		case "sensors":
			content = "ref: deploy.sensor\n"
		}
		if filepath.Base(name) == "pack.yaml" {
			content = "ref: deploy\nversion: 1.0.0\n"
		}
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return root
}

// items are the items of files, as kind and ref.
func items(files catalog.Files) []string {
	list := []string{}
	for _, item := range files.Set.Items {
		list = append(list, string(item.Kind)+" "+item.Ref)
	}
	return list
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
	for i := range files.Set.Policies {
		policies = append(policies, relative(files.Set.Policies[i].Place.File))
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
		"deploy/policies/prod/quota.yaml", "deploy/lib/data.yaml", "deploy/sensors/timer.yaml", "deploy/pack.d/x.txt",
	)
	files, err := catalog.Read([]string{root}, nil)
	require.NoError(t, err)
	require.Empty(t, files.Mistakes)
	policies, skipped := inside(t, root, files)
	require.Equal(t, []string{
		"deploy/policies/limit.yaml", "deploy/policies/prod/quota.yaml", "limits.yaml",
		"more/deep/limits.yml",
	}, policies)
	require.Equal(t, []string{"deploy/config.yaml", "deploy/lib/data.yaml", "deploy/sensors/timer.yaml"}, skipped)
	require.Equal(t, []string{"pack deploy", "action deploy.echo", "action deploy.rollout"}, items(files))
	require.Equal(t, []string{"deploy"}, files.Set.Whole)

	files, err = catalog.Read([]string{filepath.Join(root, "deploy")}, nil)
	require.NoError(t, err)
	policies, _ = inside(t, root, files)
	require.Equal(t, []string{"deploy/policies/limit.yaml", "deploy/policies/prod/quota.yaml"}, policies)
}

func TestReadNamesTheSameFileOnce(t *testing.T) {
	t.Parallel()
	root := tree(t, "a.yaml", "notes.txt")
	files, err := catalog.Read([]string{
		root, filepath.Join(root, "a.yaml"), root + "/./a.yaml",
		filepath.Join(root, "notes.txt"),
	}, nil)
	require.NoError(t, err)
	require.Empty(t, files.Mistakes)
	require.Len(t, files.Set.Policies, 2, "a file that is named counts, whatever it is called")
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
	require.Equal(t, root+"/b.yaml:2:1: the policy p.a-yaml is given twice, also at "+root+"/a.yaml:1:1",
		files.Mistakes[0].String())
}

// One file of a pack is read alone, with references to the rest of its pack.
func TestReadOneFileOfAPack(t *testing.T) {
	t.Parallel()
	root := tree(t, "pack.yaml", "actions/echo.yaml", "actions/other.yaml", "workflows/all.workflow.yaml")
	write := func(name, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	write("actions/roll.yaml", "ref: deploy.roll\nworkflow_file: workflows/roll.workflow.yaml\n")
	write("actions/workflows/roll.workflow.yaml", "version: 1.0.0\ntasks: [{name: a, action: deploy.echo}]\n")
	write("rules/r.yaml", "ref: roll_all\ntrigger: push\naction: roll\n")
	for path, want := range map[string][]string{
		"actions/echo.yaml":                    {"action deploy.echo"},
		"actions/roll.yaml":                    {"workflow deploy.roll", "action deploy.roll"},
		"actions/workflows/roll.workflow.yaml": {"workflow deploy.roll", "action deploy.roll"},
		"rules/r.yaml":                         {"rule deploy.roll_all"},
		"pack.yaml":                            {"pack deploy"},
	} {
		files, err := catalog.Read([]string{filepath.Join(root, path)}, nil)
		require.NoError(t, err)
		require.Empty(t, files.Mistakes, path)
		require.Equal(t, want, items(files), path)
	}
	files, err := catalog.Read([]string{filepath.Join(root, "rules")}, nil)
	require.NoError(t, err)
	require.Equal(t, "deploy.push", files.Set.Items[0].Trigger)
	require.Empty(t, files.Set.Whole)
}

// What another system's editor leaves in a script is a warning before the script fails.
func TestReadWarnsOfLineEndsThatShellsDoNotKnow(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{
		"pack.yaml":       "\uFEFFref: shop\r\nversion: 1.0.0\r\n",
		"actions/a.yaml":  "ref: shop.a\nentry_point: a.sh\n",
		"actions/b.yaml":  "ref: shop.b\nentry_point: b.py\nrunner_type: python\n",
		"actions/c.yaml":  "ref: shop.c\nentry_point: c.py\nrunner_type: python\n",
		"actions/d.yaml":  "ref: shop.d\nentry_point: d.sh\n",
		"actions/ok.yaml": "ref: shop.ok\nentry_point: ok.sh\n",
	})
	for name, script := range map[string]string{
		"a.sh": "echo a\r\necho b\r\n", "b.py": "print(1)\r\n", "c.py": "#!/usr/bin/env python3\r\nprint(1)\r\n",
		"d.sh": "\uFEFF#!/bin/sh\necho d\n", "ok.sh": "printf 'a\\r\\n'\n",
	} {
		put(t, filepath.Join(root, "actions"), name, script)
	}
	files, err := catalog.Read([]string{root}, nil)
	require.NoError(t, err)
	require.Empty(t, files.Mistakes)
	const ends = "has lines that end in CRLF, and a shell takes the CR for a part of the line: save it with LF"
	require.Equal(t, []string{
		root + "/actions/a.yaml:2:1: a.sh " + ends, root + "/actions/c.yaml:2:1: c.py " + ends,
		root + "/actions/d.yaml:2:1: d.sh begins with a byte order mark, which hides its first line from the system: " +
			"save it as UTF-8 without BOM",
	}, texts(files.Warnings))
}

// An entry point that workers will not find is reported at its place, as a mistake if it is a script.
func TestReadTellsOfMissingEntryPoints(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{
		"pack.yaml": "ref: shop\nversion: 1.0.0\n", "actions/here.sh": "true\n", "lib/there.py": "pass\n",
		"actions/here.yaml":     "ref: shop.here\nentry_point: here.sh\n",
		"actions/there.yaml":    "ref: shop.there\nentry_point: lib/there.py\nrunner_type: python\n",
		"actions/absolute.yaml": "ref: shop.absolute\nentry_point: /bin/nothing\n",
		"actions/function.yaml": "ref: shop.function\nentry_point: core.sleep\n",
		"actions/missing.yaml":  "ref: shop.missing\nentry_point: missing.sh\n",
		"actions/code.yaml":     "ref: shop.code\nentry_point: run missing.sh\n",
		"actions/other.yaml":    "ref: shop.other\nentry_point: other.sh\nrunner_type: fortran\n",
		"actions/folder.yaml":   "ref: shop.folder\nentry_point: bin\nrunner_type: fortran\n", "bin/tool.sh": "true\n",
	})
	require.NoError(t, os.Remove(filepath.Join(root, "actions", "missing.sh")))
	require.NoError(t, os.Remove(filepath.Join(root, "actions", "other.sh")))
	files, err := catalog.Read([]string{root}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{root + "/actions/missing.yaml:2:1: there is no file actions/missing.sh in the pack"},
		texts(files.Mistakes))
	require.Equal(t, []string{
		root + "/actions/code.yaml:2:1: there is no file actions/run missing.sh in the pack: workers run the entry point as shell code",
		root + "/actions/folder.yaml:2:1: bin is not a regular file: only a worker that has a function for shop.folder runs it",
		root + "/actions/other.yaml:2:1: there is no file actions/other.sh in the pack: only a worker that has a function for shop.other runs it",
	}, texts(files.Warnings))
	files, err = catalog.Read([]string{filepath.Join(root, "actions", "here.yaml")}, nil)
	require.NoError(t, err)
	require.Empty(t, files.Warnings)
}

func TestReadRefusals(t *testing.T) {
	t.Parallel()
	root := tree(t, "sensors/timer.yaml", "pack/lib/a.txt")
	_, err := catalog.Read([]string{filepath.Join(root, "missing.yaml")}, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, path := range []string{root, filepath.Join(root, "sensors"), filepath.Join(root, "sensors", "timer.yaml")} {
		_, err = catalog.Read([]string{path}, nil)
		require.ErrorIs(t, err, catalog.ErrNoFiles, path)
		require.ErrorContains(t, err, "there is no file to apply below "+path)
	}

	large := filepath.Join(root, "large.yaml")
	require.NoError(t, os.WriteFile(large, make([]byte, 1<<20+1), 0o600))
	files, err := catalog.Read([]string{large}, nil)
	require.NoError(t, err)
	require.Len(t, files.Mistakes, 1)
	require.Equal(t, large+": the file is larger than 1024 KiB", files.Mistakes[0].String())
}

// A named file without policies is a mistake; one in a named folder is not.
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
	require.Len(t, files.Set.Policies, 1)
}

func TestReadStandardInput(t *testing.T) {
	t.Parallel()
	root := tree(t, "a.yaml")
	files, err := catalog.Read([]string{"-", root, "-"}, strings.NewReader("ref: core.stdin\nthreshold: 1\n"))
	require.NoError(t, err)
	require.Empty(t, files.Mistakes)
	require.Len(t, files.Set.Policies, 2)
	require.Equal(t, "-:1:1", files.Set.Policies[0].Place.String())
	files, err = catalog.Read([]string{"-"}, strings.NewReader("ref: core.stdin\nthreshold: x\n"))
	require.NoError(t, err)
	require.Len(t, files.Mistakes, 1)
	require.Equal(t, `-:2:12: threshold is "x"; it must be a whole number`, files.Mistakes[0].String())
	files, err = catalog.Read([]string{"-"}, strings.NewReader(""))
	require.NoError(t, err)
	require.Len(t, files.Mistakes, 1)
	require.Equal(t, "-: it holds no policy", files.Mistakes[0].String())
}

// Existing packs have actions without a ref, which other loaders skip. The rest of the pack is applied, and nothing is
// pruned for them.
func TestActionsWithoutRefAreSkipped(t *testing.T) {
	b := setup(t)
	files := map[string]string{
		"pack.yml": "ref: shop\nname: Shop\nlabel: Shop\nversion: 1.0.0\nauthor: A\nemail: a@b.c\nconf_schema: {type: object, properties: {x: {type: boolean, default: true}}}\n" +
			"config: {x: true}\nmeta: {category: testing}\ntags: [test]\nruntime_deps: [python3]\nis_standard: false\n",
		"actions/hello.yml": "ref: shop.hello\nentry_point: hello.sh\nrunner_type: fortran\n",
		"rules/greet.yml":   "ref: greet\ntrigger_ref: came\naction_ref: hello\n",
		"triggers/came.yml": "ref: shop.came\n",
		"workflows/simple.yaml": "name: simple\nversion: 1.0.0\ninput: [message]\ntasks:\n  first:\n    action: shop.echo\n    on-success: [second]\n" +
			"  second:\n    action: shop.echo\n",
	}
	for _, name := range []string{"echo", "a", "b", "c", "d", "e", "f", "g"} {
		files["actions/"+name+".yaml"] = "name: " + name +
			"\nenabled: true\nrunner_type: python\nentry_point: actions/" + name + ".py\nparameters: {}\n"
	}
	root := folder(t, files)
	read, err := catalog.Read([]string{root}, nil)
	require.NoError(t, err)
	require.Empty(t, texts(read.Mistakes))
	warnings := texts(read.Warnings)
	for i := range warnings {
		warnings[i] = strings.TrimPrefix(warnings[i], root+"/")
	}
	require.Contains(t, warnings, "actions/echo.yaml:1:1: it is left out: the action has no ref")
	require.Contains(t, warnings, "actions/a.yaml:2:1: enabled of an action has no effect (8 files)")
	require.Contains(t, warnings, "pack.yml:5:1: author of a pack has no effect")

	request := order(t, root)
	request.Prune = true
	result := b.must(t, request)
	require.Equal(t, []string{"new pack shop", "new action shop.hello", "new trigger shop.came", "new rule shop.greet"},
		happened(result))
	require.Contains(t, strings.Join(texts(result.Warnings), "\n"), "nothing of the pack shop is pruned")
	require.Contains(t, strings.Join(texts(result.Warnings), "\n"), "hello.yml:3:14: there is no runtime fortran")
	require.Nil(t, b.doc(t, "action", "shop.hello")["runtime"])
	rule := b.doc(t, "rule", "shop.greet")
	require.Equal(t, "shop.hello", rule["action_ref"])
	require.Equal(t, "shop.came", rule["trigger_ref"])
	require.Equal(t, true, rule["enabled"])
}
