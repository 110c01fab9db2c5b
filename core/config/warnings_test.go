package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
)

// The exchange is an argument of queues that other services also declare.
func TestAnotherDeadLetterExchangeIsNamed(t *testing.T) {
	t.Parallel()
	cfg := load(t, "message_queue: { rabbitmq: { dead_letter: { exchange: other.dlx } } }\n")
	require.Len(t, cfg.Warnings, 1)
	require.Contains(t, cfg.Warnings[0],
		"message_queue.rabbitmq.dead_letter.exchange has no effect: the exchange is attune.dlx")
	require.Equal(t, "attune.dlx", cfg.MessageQueue.RabbitMQ.DeadLetter.Exchange)
	require.Empty(t, load(t, "message_queue: { rabbitmq: { dead_letter: { exchange: attune.dlx } } }\n").Warnings)
}

// Variables with a missing underscore are warned of; variables of other programs are not.
func TestVariablesThatLookLikeKeysAreNamed(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load("", []string{
		"ATTUNE_EXECUTOR__NO_WORKERS=wait", "attune_database_url=x", "ATTUNE_EXECUTOR__QUEUE__MAX=1",
		"ATTUNE_DATABASE__PASSWORD_FILE=x",
		"ATTUNE_WORKER_NAME=w", "ATTUNE_ARTIFACTS_DIR=/a", "ATTUNE_EXEC_ID=1", "ATTUNE_API_URL=x",
		"ATTUNE__EXECUTOR__NO_WORKERS=fail",
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"environment ATTUNE_EXECUTOR__NO_WORKERS is ignored: write ATTUNE__EXECUTOR__NO_WORKERS, with two underscores",
		"environment attune_database_url is ignored: write ATTUNE__DATABASE__URL, with two underscores",
		"environment ATTUNE_EXECUTOR__QUEUE__MAX is ignored: write ATTUNE__EXECUTOR__QUEUE__MAX, with two underscores",
		"environment ATTUNE_DATABASE__PASSWORD_FILE is ignored: write ATTUNE__DATABASE__PASSWORD_FILE, with two underscores",
	}, cfg.Warnings)
}

func TestASecretThatEverybodyCanReadIsNamed(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("0123456789012345678901234567890123456789"), 0o600))
	environ := []string{"ATTUNE__SECURITY__ENCRYPTION_KEY_FILE=" + key}
	warnings := func() []string {
		cfg, err := config.Load("", environ)
		require.NoError(t, err)
		return cfg.Warnings
	}
	require.Empty(t, warnings())
	require.NoError(t, os.Chmod(key, 0o640))
	require.Empty(t, warnings(), "a group may share it")
	require.NoError(t, os.Chmod(key, 0o644))
	require.Equal(t,
		[]string{"security.encryption_key_file: every user of this machine can read " + key + ": chmod o-rwx " + key},
		warnings())
}
