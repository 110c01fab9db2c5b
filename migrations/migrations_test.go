package migrations_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// connect opens a connection whose search_path is the schema's.
func connect(t *testing.T, opts migrations.Options) *pgx.Conn {
	t.Helper()
	cfg, err := pgx.ParseConfig(opts.URL)
	require.NoError(t, err)
	cfg.RuntimeParams["search_path"] = migrations.SearchPath(opts.Schema)
	conn, err := pgx.ConnectConfig(testkit.Context(t), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, sql string, args ...any) int64 {
	t.Helper()
	tag, err := conn.Exec(testkit.Context(t), sql, args...)
	require.NoError(t, err)
	return tag.RowsAffected()
}

func one[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	rows, err := conn.Query(testkit.Context(t), sql, args...)
	require.NoError(t, err)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(t, err)
	return value
}

// objects counts everything in the schema.
func objects(t *testing.T, conn *pgx.Conn, schema string) int64 {
	t.Helper()
	return one[int64](t, conn, `SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = $1::text::regnamespace)
		+ (SELECT count(*) FROM pg_proc WHERE pronamespace = $1::text::regnamespace)
		+ (SELECT count(*) FROM pg_type WHERE typnamespace = $1::text::regnamespace)`, schema)
}

func TestUpOnAnEmptyDatabaseThenAgain(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts := migrations.Options{URL: testkit.EmptyDatabase(t), Schema: "some_Schema_1"}

	before, err := migrations.Check(ctx, opts)
	require.NoError(t, err)
	require.Equal(t, migrations.OriginNone, before.Origin)
	require.False(t, before.WouldAdopt)
	require.False(t, before.Current())
	require.Len(t, before.Pending, len(before.Files))

	first, err := migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.Equal(t, migrations.OriginOwn, first.Origin)
	require.Len(t, first.Applied, len(before.Files))
	require.Equal(t, before.Latest, first.Version)

	second, err := migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.Empty(t, second.Applied)

	state, err := migrations.Status(ctx, opts)
	require.NoError(t, err)
	require.True(t, state.Current())
	require.Equal(t, first.Version, state.Version)

	conn := connect(t, opts)
	require.Zero(t, one[int64](t, conn, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"))
	require.EqualValues(t, 5, one[int64](t, conn, "SELECT count(*) FROM action WHERE entrypoint = 'native'"))
	require.EqualValues(t, 1, one[int64](t, conn, "SELECT id FROM identity WHERE login = 'system'"))
	require.EqualValues(t, 2, one[int64](t, conn, "INSERT INTO identity (login) VALUES ('next') RETURNING id"))
}

func TestEightReplicasStartTogether(t *testing.T) {
	opts := migrations.Options{URL: testkit.EmptyDatabase(t), Schema: "attune"}
	group, ctx := errgroup.WithContext(testkit.Context(t))
	applied := make([]int, 8)
	for i := range applied {
		group.Go(func() error {
			result, err := migrations.Up(ctx, opts)
			applied[i] = len(result.Applied)
			return err
		})
	}
	require.NoError(t, group.Wait())
	busy := 0
	for _, n := range applied {
		if n > 0 {
			busy++
		}
	}
	require.Equal(t, 1, busy, "exactly one replica migrates, the others find nothing to do")
}

func TestDownToZeroLeavesNothingAndUpWorksAgain(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts := migrations.Options{URL: testkit.EmptyDatabase(t), Schema: "attune"}
	up, err := migrations.Up(ctx, opts)
	require.NoError(t, err)

	down, err := migrations.Down(ctx, opts, 0)
	require.NoError(t, err)
	require.Len(t, down.Applied, len(up.Applied))
	require.Zero(t, objects(t, connect(t, opts), "attune"))

	again, err := migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.Len(t, again.Applied, len(up.Applied))
}

func TestSchemaNameIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a-b", `x"; DROP SCHEMA public; --`, "a b", "ä"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := migrations.Up(testkit.Context(t),
				migrations.Options{URL: "postgres://nowhere.invalid/x", Schema: name})
			require.ErrorIs(t, err, migrations.ErrSchemaName)
		})
	}
}
