package engine_test

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/testkit"
)

// meter counts what programs ask of PostgreSQL, on the wire.
type meter struct {
	statements, commits, trips atomic.Int64 // BEGIN and COMMIT are no statements; a commit is a COMMIT

	mu    sync.Mutex
	named map[string]int // statements by their names
}

// nameOf is what a statement is called in core/store/queries, or how it begins.
func nameOf(sql string) string {
	name, found := strings.CutPrefix(sql, "-- name: ")
	if !found {
		return sql[:min(len(sql), 40)]
	}
	name, _, _ = strings.Cut(name, " ")
	return name
}

// most lists the statements that were counted most often, an execution each.
func (m *meter) most(executions int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var text strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(m.named), func(a, b string) int { return m.named[b] - m.named[a] }) {
		if each := float64(m.named[name]) / float64(executions); each > 0.1 {
			fmt.Fprintf(&text, "\n%5.2f %s", each, name)
		}
	}
	return text.String()
}

type spent struct{ statements, commits, trips float64 }

func (m *meter) read() spent {
	return spent{float64(m.statements.Load()), float64(m.commits.Load()), float64(m.trips.Load())}
}

func (r spent) minus(o spent) spent {
	return spent{r.statements - o.statements, r.commits - o.commits, r.trips - o.trips}
}

func (r spent) times(f float64) spent { return spent{r.statements * f, r.commits * f, r.trips * f} }

// metered is the URL of a database behind a meter.
func metered(t *testing.T, database string) (*meter, string) {
	t.Helper()
	target, err := url.Parse(database)
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(testkit.Context(t), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := &meter{named: map[string]int{}}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target.Host)
			if err != nil {
				_ = client.Close()
				return
			}
			group.Go(func() { m.forward(client, server) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); group.Wait() })
	through := *target
	through.Host = listener.Addr().String()
	return m, through.String()
}

// forward passes on what both sides say, and reads what the client says.
func (m *meter) forward(client, server net.Conn) {
	said, listens := io.Pipe()
	var group sync.WaitGroup
	group.Go(func() { m.listen(said); _, _ = io.Copy(io.Discard, said) })
	group.Go(func() {
		_, _ = io.Copy(io.MultiWriter(server, listens), client)
		_, _ = server.Close(), listens.Close()
	})
	_, _ = io.Copy(client, server)
	_, _ = client.Close(), server.Close()
	group.Wait()
}

// A round trip is what ends with the client's word that it waits for the answers.
func (m *meter) listen(said io.Reader) {
	backend := pgproto3.NewBackend(said, io.Discard)
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return
	}
	prepared, bound := map[string]string{}, ""
	count := func(sql string) {
		switch word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(sql)), " "); word {
		case "begin":
		case "commit":
			m.commits.Add(1)
		case "":
		default:
			m.statements.Add(1)
			m.mu.Lock()
			m.named[nameOf(sql)]++
			m.mu.Unlock()
		}
	}
	for {
		message, err := backend.Receive()
		if err != nil {
			return
		}
		switch message := message.(type) {
		case *pgproto3.Parse:
			prepared[message.Name] = message.Query
		case *pgproto3.Bind:
			bound = prepared[message.PreparedStatement]
		case *pgproto3.Execute:
			count(bound)
		case *pgproto3.Query:
			m.trips.Add(1)
			count(message.String)
		case *pgproto3.Sync:
			m.trips.Add(1)
		}
	}
}

// What one execution may cost, its request and its worker included. Lower them with
// what it does cost: 16.1, 3.0 and 7.2 when they were set, with loops that run besides.
const (
	budgetStatements = 18.0
	budgetCommits    = 3.5 // of transactions with more than one statement
	budgetTrips      = 8.0
	// The row of an execution is written at its request, its grant, its start and its end.
	budgetInserts = 1
	budgetUpdates = 3
)

// budgetWAL is how many bytes of WAL one execution may cost, without images of whole
// pages, which depend on when the server had its last checkpoint.
const budgetWAL = 6300.0 // 5,750 when it was set

// requireWAL counts the records that executions make in this database. Other databases of
// the server are in use at the same time, so it reads the records themselves. Loops of the
// engine write too, the more the longer it takes: the least of three series counts.
func requireWAL(t *testing.T, st *store.Store, one func()) {
	t.Helper()
	if testkit.Count(t, st, `SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_walinspect'`) == 0 {
		t.Log("the server lacks the extension pg_walinspect: WAL is not counted")
		return
	}
	testkit.Exec(t, st, `CREATE EXTENSION pg_walinspect SCHEMA public`)
	least := math.Inf(1)
	for series := 0; series < 3 && least > budgetWAL; series++ {
		least = min(least, walOf(t, st, one))
	}
	require.NotZero(t, least)
	if !testkit.Adopted() { // existing installations have more indexes and triggers of their own
		require.LessOrEqual(t, least, budgetWAL)
	}
}

// walOf is how many bytes of WAL an execution costs, and logs of which records they are.
func walOf(t *testing.T, st *store.Store, one func()) float64 {
	t.Helper()
	position := func() (lsn string) {
		require.NoError(t, st.Pool().QueryRow(testkit.Context(t), `SELECT pg_current_wal_insert_lsn()::text`).Scan(&lsn))
		return lsn
	}
	const executions = 10
	began := position()
	for range executions {
		one()
	}
	ended := position()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st, `SELECT (pg_current_wal_flush_lsn() >= $1::pg_lsn)::int`, ended) == 1
	}, testkit.TestTimeout)
	rows, err := st.Pool().Query(testkit.Context(t), `
		WITH record AS MATERIALIZED (
			SELECT xid::text AS xid, resource_manager || ' ' || record_type AS kind, record_length AS bytes,
			       coalesce(block_ref, '') LIKE '%rel %/' || (SELECT oid FROM pg_database WHERE datname = current_database()) || '/%' AS here
			FROM public.pg_get_wal_records_info($1::pg_lsn, $2::pg_lsn)
		)
		SELECT kind, count(*)::float8, sum(bytes)::float8 FROM record
		WHERE here OR xid IN (SELECT o.xid FROM record o WHERE o.here AND o.xid <> '0')
		GROUP BY kind ORDER BY 3 DESC`, began, ended)
	require.NoError(t, err)
	type kind struct {
		Name           string
		Records, Bytes float64
	}
	kinds, err := pgx.CollectRows(rows, pgx.RowToStructByPos[kind])
	require.NoError(t, err)
	total := 0.0
	var text strings.Builder
	for _, k := range kinds {
		total += k.Bytes / executions
		fmt.Fprintf(&text, "\n%6.0f bytes in %4.1f %s", k.Bytes/executions, k.Records/executions, k.Name)
	}
	t.Logf("an execution costs %.0f bytes of WAL:%s", total, text.String())
	return total
}

// One execution after the other, from its request to its released slot, costs what it
// is allowed to cost. What engine and worker ask while they have nothing to do is
// measured and subtracted.
func TestAnExecutionKeepsItsBudgetOfStatements(t *testing.T) {
	t.Parallel()
	database := testkit.Database(t)
	m, through := metered(t, database)
	b := setupOn(t, through)
	b.engine(t)
	b.worker(t, "w1", 5)
	direct := testkit.OpenStore(t, database)
	one := func() {
		b.request(t, "core.noop", 1, `{}`)
		testkit.Eventually(t, func() bool {
			return testkit.Count(t, direct, `SELECT count(*) FROM execution e
				WHERE e.finished_status IS NULL OR EXISTS (SELECT FROM execution_holder h WHERE h.execution = e.id)`) == 0
		}, testkit.TestTimeout)
	}
	// Published rows of the outbox are deleted together with the next ones, if these come soon.
	settled := func() {
		testkit.Eventually(t, func() bool { return testkit.Count(t, direct, `SELECT count(*) FROM outbox`) == 0 }, testkit.TestTimeout)
	}
	for range 20 { // statements are prepared, caches are filled
		one()
	}
	settled()
	requireWAL(t, direct, one)
	for _, sql := range []string{
		`CREATE TABLE written (operation text)`,
		`CREATE FUNCTION note_written() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
			BEGIN INSERT INTO written VALUES (TG_OP); RETURN NULL; END $$`,
		`CREATE TRIGGER note_written AFTER INSERT OR UPDATE ON execution FOR EACH ROW EXECUTE FUNCTION note_written()`,
	} {
		testkit.Exec(t, direct, sql)
	}
	const executions = 60
	began, before := time.Now(), m.read()
	m.mu.Lock()
	clear(m.named)
	m.mu.Unlock()
	for range executions {
		one()
	}
	settled()
	took, cost := time.Since(began), m.read().minus(before)
	most := m.most(executions)
	before = m.read()
	time.Sleep(took) // measures the time in which nothing is to be done
	each := cost.minus(m.read().minus(before)).times(1.0 / executions)
	t.Logf("an execution costs %.1f statements, %.1f commits, %.1f round trips", each.statements, each.commits, each.trips)
	t.Logf("what is asked while nothing is to be done included:%s", most)
	require.LessOrEqual(t, each.statements, budgetStatements)
	require.LessOrEqual(t, each.commits, budgetCommits)
	require.LessOrEqual(t, each.trips, budgetTrips)
	for operation, budget := range map[string]int{"INSERT": budgetInserts, "UPDATE": budgetUpdates} {
		require.Equal(t, executions*budget, testkit.Count(t, direct, `SELECT count(*) FROM written WHERE operation = $1`, operation), operation)
	}
}
