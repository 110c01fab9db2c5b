package datapath

import (
	"io"
	"maps"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
)

// meter counts what clients ask of PostgreSQL, on the wire. Statements that are not executed do not count (a
// connection prepares each once), and neither do polls of the measurement itself.
type meter struct {
	mu             sync.Mutex
	trips, commits int            // guarded by mu
	named          map[string]int // statements by their names, or beginnings; guarded by mu
}

func newMeter() *meter { return &meter{named: map[string]int{}} }

func (m *meter) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trips, m.commits = 0, 0
	clear(m.named)
}

// names are the counted statements.
func (m *meter) names() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.named)
}

// cost is what each of n executions asked.
func (m *meter) cost(n int) (c Cost) {
	for _, count := range m.names() {
		c.Statements += float64(count) / float64(n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c.Trips, c.Commits = float64(m.trips)/float64(n), float64(m.commits)/float64(n)
	return c
}

// listen reads what one client sends.
func (m *meter) listen(said io.Reader) {
	defer func() { _, _ = io.Copy(io.Discard, said) }() // the client is not held up
	backend := pgproto3.NewBackend(said, io.Discard)
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return
	}
	if err := backend.SetAuthType(pgproto3.AuthTypeSASLContinue); err != nil { // answers to any challenge
		return
	}
	prepared, bound, asks := map[string]string{}, "", false
	count := func(sql string) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		switch sql = strings.TrimSpace(sql); {
		case sql == "" || sql == strings.TrimSpace(outboxLeftSQL) || strings.HasPrefix(sql, "begin"):
			return false
		case sql == "commit":
			m.commits++
			return true
		}
		m.named[statementName(sql)]++
		return true
	}
	for {
		received, err := backend.Receive()
		if err != nil {
			return
		}
		switch received := received.(type) {
		case *pgproto3.Parse:
			prepared[received.Name] = received.Query
		case *pgproto3.Bind:
			bound = prepared[received.PreparedStatement]
		case *pgproto3.Execute:
			asks = count(bound) || asks
		case *pgproto3.Query:
			asks = count(received.String)
		}
		switch received.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
			if asks {
				m.mu.Lock()
				m.trips++
				m.mu.Unlock()
			}
			asks = false
		}
	}
}

// statementName is the name of a generated statement, or the beginning of another.
func statementName(sql string) string {
	if name, found := strings.CutPrefix(sql, "-- name: "); found {
		name, _, _ = strings.Cut(name, " ")
		return name
	}
	return sql[:min(len(sql), 60)]
}
