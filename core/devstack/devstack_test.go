package devstack_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/devstack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestUpAndDown(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()

	began := time.Now()
	stack, err := devstack.Up(ctx, devstack.Config{Dir: filepath.Join(t.TempDir(), "stack"), StatsInterval: 250 * time.Millisecond})
	require.NoError(t, err)
	t.Log("up after", time.Since(began))
	conn, err := pgx.Connect(ctx, stack.DatabaseURL())
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
	a, err := amqp.Dial(stack.AMQPURL())
	require.NoError(t, err)
	require.NoError(t, a.Close())
	t.Log(stack.Status())
	began = time.Now()
	require.NoError(t, stack.Down(ctx, false))
	require.NoError(t, stack.Reset(ctx))
	t.Log("down after", time.Since(began))
	require.False(t, stack.Status().Postgres.Running)
}
