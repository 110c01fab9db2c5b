package main

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// An error of a plan does not name the read; an error of a run names its result.
func TestErrorsOfTheDatabaseAreShort(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none?connect_timeout=2")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	away := fmt.Errorf("plan a pause: acquire connection: %w", pool.Ping(testkit.Context(t)))
	require.Regexp(t, `^the database refuses connections, nothing listens there: start it`, meaningOf(away, false).Error())
	require.NotContains(t, meaningOf(away, false).Error(), "acquire")
	require.ErrorIs(t, meaningOf(away, false), away)
	require.ErrorContains(t, meaningOf(away, true), "nothing more was done")
}
