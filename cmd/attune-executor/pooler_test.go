package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// No program works behind PgBouncer: each refuses at once, with advice, for any configuration of PgBouncer.
func TestProgramsRefuseAPooler(t *testing.T) {
	t.Parallel()
	database, amqp := testkit.Database(t), testkit.VHost(t)
	for name, address := range map[string]string{
		"Transaction": testkit.PgBouncer(t, database, "transaction"),
		"Session":     testkit.PgBouncer(t, database, "session"),
		"SettingsIgnored": testkit.PgBouncer(t, database, "transaction", "search_path", "jit", "attune.relay",
			"attune.wait_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout",
			"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "plan_cache_mode", "default_transaction_read_only"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, command := range []string{"serve", "worker", "doctor"} {
				cmd := exec.CommandContext(testkit.Context(t), testkit.Program(t), command)
				cmd.Env = append(os.Environ(), "ATTUNE__DATABASE__URL="+address, "ATTUNE__MESSAGE_QUEUE__URL="+amqp,
					"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL="+testkit.ManagementURL(t),
					"ATTUNE__EXECUTOR__HTTP__LISTEN=127.0.0.1:0")
				out, err := cmd.CombinedOutput()
				require.Error(t, err, command)
				require.Contains(t, string(out), "is behind a connection pooler", command)
				require.Contains(t, string(out), "name PostgreSQL itself in database.url", command)
			}
		})
	}
}
