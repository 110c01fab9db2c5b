package deadletter

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// An error of the content, or one without a reason for a minute, bisects a batch. An unreachable or
// full server, a wrong schema or a missing privilege is awaited.
func TestWhatAnErrorOfTheLedgerMeans(t *testing.T) {
	t.Parallel()
	answer := func(code string) error { return fmt.Errorf("store: %w", &pgconn.PgError{Code: code}) }
	for _, code := range []string{"22021", "22P05", "23514", "54000"} {
		require.True(t, contentFails(answer(code), 1), code)
	}
	require.False(t, contentFails(answer("XX000"), 1))
	require.True(t, contentFails(answer("XX000"), maxStores))
	for _, code := range []string{"53100", "58030", "25006", "42P01", "42501", "0A000", "3F000", "28P01"} {
		require.False(t, contentFails(answer(code), 1000), code)
	}
	require.False(t, contentFails(context.DeadlineExceeded, 1000))
	require.True(t, contentFails(errors.New("cannot be encoded"), 1))
}
