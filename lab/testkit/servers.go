package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/devstack"
)

// The variables of the servers for tests. Set all three or none.
const (
	EnvDatabaseURL   = "ATTUNE_TEST_DATABASE_URL"
	EnvAMQPURL       = "ATTUNE_TEST_AMQP_URL"
	EnvManagementURL = "ATTUNE_TEST_MANAGEMENT_URL"
)

// servers are the addresses that all tests of the run share.
type servers struct {
	database, amqp, management string
}

// shared finds or starts the servers once per test binary.
var shared = sync.OnceValues(findServers)

func findServers() (servers, error) {
	found := servers{os.Getenv(EnvDatabaseURL), os.Getenv(EnvAMQPURL), os.Getenv(EnvManagementURL)}
	if found.database != "" && found.amqp != "" && found.management != "" {
		return found, nil
	}
	if found != (servers{}) {
		return servers{}, fmt.Errorf("set all of %s, %s and %s, or none", EnvDatabaseURL, EnvAMQPURL, EnvManagementURL)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	stack, err := devstack.Up(ctx, StackConfig())
	if err != nil {
		return servers{}, err
	}
	found = servers{stack.DatabaseURL(), stack.AMQPURL(), stack.ManagementURL()}
	return found, errors.Join(sweepDatabases(ctx, found.database), sweepVHosts(ctx, found.management))
}

// StackConfig is the stack that tests share without these variables.
func StackConfig() devstack.Config {
	return devstack.Config{
		Dir:           filepath.Join(os.TempDir(), fmt.Sprintf("attune-test-%d", os.Getuid())),
		Detached:      true,
		StatsInterval: 250 * time.Millisecond,
	}
}

func sharedServers(t testing.TB) servers {
	t.Helper()
	found, err := shared()
	require.NoError(t, err, "servers for tests")
	return found
}

// NewStack starts a stack for a test that stops or freezes servers, and removes it at the end. It takes some
// seconds; share it between subtests.
func NewStack(t testing.TB, options ...func(*devstack.Config)) *devstack.Stack {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "attune-own-*") // PostgreSQL's user cannot enter t.TempDir
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	cfg := devstack.Config{Dir: dir, StatsInterval: 250 * time.Millisecond, Logger: Logger(t)}
	for _, option := range options {
		option(&cfg)
	}
	stack, err := devstack.Up(ctx, cfg)
	if err != nil {
		_ = os.RemoveAll(dir) // the error of the start matters more
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		require.NoError(t, stack.Reset(ctx))
		require.NoError(t, os.RemoveAll(dir))
	})
	return stack
}
