package testkit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
)

// Store opens a store on a fresh database of this test and closes it at the
// end. Options change the configuration, for example for the hot path; a second
// store on the same database, as another replica has one, is opened with
// OpenStore.
func Store(t testing.TB, options ...func(*store.Config)) *store.Store {
	t.Helper()
	return OpenStore(t, Database(t), options...)
}

// OwnStore is Store on an OwnDatabase.
func OwnStore(t testing.TB, options ...func(*store.Config)) *store.Store {
	t.Helper()
	return OpenStore(t, OwnDatabase(t), options...)
}

// EngineConnections is the database.max_connections of engines in tests, the least
// that they do well with: each connection costs the server 20 ms before its first answer.
const EngineConnections = 12

// OpenStore opens a store on the database and closes it at the end of the test.
func OpenStore(t testing.TB, databaseURL string, options ...func(*store.Config)) *store.Store {
	t.Helper()
	cfg := store.Config{
		URL: databaseURL, Schema: Schema, MaxConnections: 8, ConnectTimeout: 10 * time.Second,
		ApplicationName: "attune test",
	}
	for _, option := range options {
		option(&cfg)
	}
	st, err := store.Open(Context(t), cfg, Logger(t))
	require.NoError(t, err)
	t.Cleanup(st.Close)
	return st
}
