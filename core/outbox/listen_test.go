package outbox

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// listens waits until so many connections of the database listen.
func listens(t *testing.T, st *store.Store, n int) {
	t.Helper()
	testkit.Eventually(t, func() bool { return listeners(t, st) == n }, 20*time.Second, "%d connections listen", n)
}

func listeners(t *testing.T, st *store.Store) int {
	return testkit.Count(t, st, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' AND query ILIKE 'listen %'`)
}

// commitWithoutRelay commits messages like a program without a relay.
func commitWithoutRelay(t *testing.T, st *store.Store, messages ...Message) {
	t.Helper()
	require.NoError(t, st.Tx(testkit.Context(t), "append", func(ctx context.Context, tx *store.Tx) error {
		_, err := Send(ctx, tx, nil, messages)
		return err
	}))
}

// S13: a row of a program without a relay is published at once by exactly one of the notified relays,
// also after they lost their connections.
func TestRowsOfOtherProgramsArePublishedAtOnceAndOnce(t *testing.T) {
	st := testkit.Store(t)
	url, name, read := queue(t)
	for range 3 {
		startRelay(t, st, dial(t, url).Publisher(),
			func(c *Config) { c.Listen, c.SweepInterval, c.SweepAge = true, time.Hour, time.Hour })
	}
	sent := 0
	commit := func(n int) {
		for range n {
			sent++
			commitWithoutRelay(t, st, Message{ID: fmt.Sprint(sent), RoutingKey: name, Type: "T", Body: []byte(`{}`)})
		}
	}
	listens(t, st, 3)
	commit(50)
	seen := map[string]int{}
	for _, d := range read(50) {
		seen[d.MessageId]++
	}
	testkit.Exec(t, st, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen %' AND pid <> pg_backend_pid()`)
	listens(t, st, 3)
	commit(50)
	for _, d := range read(50) {
		seen[d.MessageId]++
	}
	for id, times := range seen {
		require.Equal(t, 1, times, "message %s", id)
	}
	require.Len(t, seen, sent)
	testkit.Eventually(t, empty(t, st), 10*time.Second)
}

// Another schema of the database may hold an installation of its own.
func TestOnlyRowsOfItsSchemaAreItsBusiness(t *testing.T) {
	relay := New(Config{}, testkit.Store(t), nil, testkit.Logger(t), nil)
	for payload, mine := range map[string]bool{
		testkit.Schema + " 7": true, "other 7": false, testkit.Schema: false, testkit.Schema + " x": false, "": false,
	} {
		_, got := relay.parseNotification(payload)
		require.Equal(t, mine, got, payload)
	}
}
