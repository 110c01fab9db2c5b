package testkit_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestDatabasesAreMigratedAndSeparate(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)

	connect := func(url string) *pgx.Conn {
		conn, err := pgx.Connect(ctx, url)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		return conn
	}
	one, two := connect(testkit.Database(t)), connect(testkit.Database(t))

	_, err := one.Exec(ctx, `insert into attune.identity (login) values ('only-here')`)
	require.NoError(t, err)
	var rows int
	require.NoError(t, two.QueryRow(ctx, `select count(*) from attune.identity where login = 'only-here'`).Scan(&rows))
	require.Zero(t, rows, "the second database sees the first one's row")
}

// using runs an inner test to its end, although it is parallel.
func using(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Run("inner", func(t *testing.T) { t.Run("test", test) })
}

func TestDatabaseIsDroppedWithTheTest(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)

	var url string
	var left *pgx.Conn
	using(t, func(t *testing.T) {
		url = testkit.EmptyDatabase(t)
		conn, err := pgx.Connect(ctx, url)
		require.NoError(t, err)
		left = conn // an open connection must not prevent the drop
	})
	_ = left.Close(ctx)
	_, err := pgx.Connect(ctx, url)
	require.ErrorContains(t, err, "does not exist")
}

func TestVHostsAreUsableAndDeletedWithTheTest(t *testing.T) {
	t.Parallel()

	var url string
	using(t, func(t *testing.T) {
		url = testkit.VHost(t)
		conn, err := amqp.Dial(url)
		require.NoError(t, err)
		channel, err := conn.Channel()
		require.NoError(t, err)
		_, err = channel.QueueDeclare("q", true, false, false, false, nil)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	})
	_, err := amqp.Dial(url)
	var refused *amqp.Error
	require.ErrorAs(t, err, &refused, "dialling a deleted virtual host")
}

func TestEventuallyFailsAtItsTimeout(t *testing.T) {
	t.Parallel()

	failed := make(chan bool)
	go func() {
		recorder := &recorder{TB: t, failed: failed}
		defer func() { failed <- recorder.didFail }()
		testkit.Eventually(recorder, func() bool { return false }, 5*time.Millisecond)
	}()
	require.True(t, <-failed)

	asked := 0
	testkit.Eventually(t, func() bool { asked++; return asked == 3 }, time.Minute)
	require.Equal(t, 3, asked)
}
