package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/config"
)

// A wrong indentation is told with the lines between which it is.
func TestYAMLMistakesNameTheLines(t *testing.T) {
	t.Parallel()
	const tasks = "version: 1\ntasks:\n  - name: a\n    action: b.c\n"
	broken := "the block that begins near line 2 breaks off in line "
	for content, want := range map[string]struct {
		line int
		text string
	}{
		tasks + strings.Repeat("  - {name: b}\n", 20) + "   - name: c\n":             {25, broken + "25"},
		tasks + "    input:\n      x: 1\n     y: 2\n" + strings.Repeat("a: 1\n", 90): {7, broken + "7"},
		"a: 1\n---\na:\n  b: 1\n c: 2\n---\nd: 3\n":                                  {5, "breaks off in line 5: is one of the lines indented wrongly?"},
		"a: 1\n\tb: 2\n": {2, "found a tab character that violates indentation"},
		"a: [1,\nb: 2\n": {2, "did not find expected ',' or ']'"},
	} {
		var err error
		for decoder := yaml.NewDecoder(strings.NewReader(content)); err == nil; {
			var node yaml.Node
			err = decoder.Decode(&node)
		}
		line, text := config.YAMLMistake([]byte(content), err)
		require.Equal(t, want.line, line, content)
		require.Contains(t, text, want.text)
	}
}

// All mistakes of the file and of the environment are told at once, keys before values.
func TestAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "attune.yaml")
	require.NoError(t, os.WriteFile(path, []byte("executor:\n  queue: {max_queue_len: 5}\n  no_workers: perhaps\ndatabase: 5\nretention: {history: soon}\n"), 0o600))
	_, err := config.Load(path, []string{"ATTUNE__DATABASE__SCHEMAA=x"})
	require.EqualError(t, err, path+":2: executor.queue.max_queue_len is not a known key; the nearest is executor.queue.max_queue_length\n"+
		path+":4: database is a section: write its keys below it\n"+
		"environment ATTUNE__DATABASE__SCHEMAA: database.schemaa is not a known key; the nearest is database.schema\n"+
		path+":3: executor.no_workers: \"perhaps\" is not one of fail, wait\n"+
		path+":5: retention.history: \"soon\" is not a duration: use a number of seconds or a form like 1m30s")
}
