package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
)

// One error has all mistakes of the file and of the environment, keys before values.
func TestAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "attune.yaml")
	require.NoError(t,
		os.WriteFile(path,
			[]byte("executor:\n  queue: {max_queue_len: 5}\n  no_workers: perhaps\ndatabase: 5\nretention: {history: soon}\n"), 0o600))
	_, err := config.Load(path, []string{"ATTUNE__DATABASE__SCHEMAA=x"})
	require.EqualError(t, err,
		path+":2: executor.queue.max_queue_len is not a known key; the nearest is executor.queue.max_queue_length\n"+
			path+":4: database is a section: write its keys below it\n"+
			"environment ATTUNE__DATABASE__SCHEMAA: database.schemaa is not a known key; the nearest is database.schema\n"+
			path+":3: executor.no_workers: \"perhaps\" is not one of fail, wait\n"+
			path+":5: retention.history: \"soon\" is not a duration: use a number of seconds or a form like 1m30s")
}
