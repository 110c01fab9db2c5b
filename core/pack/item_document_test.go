package pack_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/pack"
)

// documented are the examples of the page about packs, by kind.
func documented(t *testing.T) (page string, examples map[pack.Kind]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "packs.md"))
	require.NoError(t, err)
	examples = map[pack.Kind]string{}
	titles := map[string]pack.Kind{
		"pack.yaml": pack.KindPack, "Actions": pack.KindAction, "Triggers": pack.KindTrigger, "Rules": pack.KindRule,
		"Runtimes": pack.KindRuntime,
	}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		for paragraph := range strings.SplitSeq(body, "\n\n") {
			if kind, ok := titles[title]; ok && strings.HasPrefix(strings.TrimLeft(paragraph, "\n"), "    ref:") {
				examples[kind] = paragraph
			}
		}
	}
	return string(text), examples
}

// The examples of the page can be applied unchanged.
func TestDocumentedItemsAreSound(t *testing.T) {
	t.Parallel()
	_, examples := documented(t)
	require.Len(t, examples, 5)
	var list []pack.Source
	for kind, content := range examples {
		list = append(list,
			pack.Source{Name: string(kind), Kind: kind, Root: "deploy", Path: "x", Content: []byte(content)})
	}
	set, mistakes := pack.Read(list)
	require.Empty(t, texts(mistakes))
	require.Empty(t, texts(set.Warnings))
	require.Equal(t, "deploy.push", set.Of(pack.KindRule)[0].Trigger)
}

// The page has each key and each alias.
func TestPageNamesEveryKey(t *testing.T) {
	t.Parallel()
	page, _ := documented(t)
	for _, kind := range pack.Kinds {
		for _, name := range pack.Keys(kind) {
			require.Contains(t, page, "`"+name+"`", kind)
		}
	}
}

// Every value of a file is stored with its digits, also of a workflow.
func TestNumbersOfFilesKeepTheirDigits(t *testing.T) {
	t.Parallel()
	const value = "[18446744073709551617, 0.12345678901234567890123, 1e400, 1.50, 2024-01-02]"
	set, mistakes := pack.Read([]pack.Source{
		{Name: "p", Kind: pack.KindPack, Root: "r", Path: "pack.yaml", Content: []byte("ref: ab\nversion: 1.0.0\nconfig: {a: " + value + "}\n")},
		{Name: "a", Kind: pack.KindAction, Root: "r", Content: []byte("ref: ab.x\nentry_point: echo\nparameters: {a: {default: " + value + "}}\n")},
		{Name: "w", Kind: pack.KindWorkflow, Root: "r", Content: []byte("ref: ab.w\nversion: 1.0.0\ntasks: [{name: a, action: core.noop, input: {a: " + value + "}}]\n")},
		{Name: "r", Kind: pack.KindRule, Root: "r", Content: []byte("ref: ab.r\ntrigger: ab.t\naction: ab.x\naction_params: {a: " + value + "}\n")},
	})
	require.Empty(t, mistakes)
	for column, of := range map[string]*pack.Item{
		"config": item(t, set, pack.KindPack, "ab"), "param_schema": item(t, set, pack.KindAction, "ab.x"),
		"definition": item(t, set, pack.KindWorkflow, "ab.w"), "action_params": item(t, set, pack.KindRule, "ab.r"),
	} {
		stored, err := jsonvalue.Encode(of.Columns[column])
		require.NoError(t, err)
		require.Contains(t, string(stored),
			`[18446744073709551617,0.12345678901234567890123,1e400,1.50,"2024-01-02"]`, column)
	}
}

// FuzzPackFile checks that reading ends with any files, places all mistakes, and accepts nothing that the tables
// refuse.
func FuzzPackFile(f *testing.F) {
	for _, seed := range []string{
		"ref: deploy\nversion: 1.0.0\n", "ref: deploy.x\nentry_point: x.sh\nparameters: {a: {type: string}}\n",
		"ref: deploy.x\nworkflow_file: workflows/a.workflow.yaml\n",
		"version: 1.0.0\ntasks: [{name: a, action: core.noop}]\n",
		"ref: r\ntrigger: t\naction: a\nconditions: {any: [{field: a, operator: equals, value: 1}]}\n",
		"&a [*a]\n", "a: &a [x, x]\nb: &b [*a, *a]\nparameters: {c: {default: [*b, *b]}}\nref: deploy.x\n", "ref: [\n",
		"<<: {ref: a.b}\n? [1]\n: 2\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, kind := range append(pack.Kinds, pack.Guess("f.yaml", content)) {
			path := map[pack.Kind]string{pack.KindWorkflow: "actions/workflows/a.workflow.yaml"}[kind]
			set, mistakes := pack.Read([]pack.Source{
				{
					Name: "pack.yaml", Kind: pack.KindPack, Root: "deploy", Path: "pack.yaml",
					Content: []byte("ref: deploy\nversion: 1.0.0\n"),
				},
				{Name: "f", Kind: kind, Root: "deploy", Path: path, Content: content},
			})
			require.Equal(t, pack.Sort(mistakes), mistakes)
			for _, mistake := range append(mistakes, set.Warnings...) {
				require.NotContains(t, mistake.String(), "\n")
			}
			set.Check(pack.World{})
			set.Supply(pack.World{})
			if len(mistakes) > 0 {
				continue
			}
			for _, item := range set.Items {
				require.Regexp(t, `^[a-z][a-z0-9_-]+(\.[a-z0-9][a-z0-9_-]*)?$`, item.Ref)
				require.NotEmpty(t, item.Pack)
				if label, ok := item.Columns["label"].(string); ok {
					require.NotContains(t, label, "\x00")
				}
			}
		}
	})
}
