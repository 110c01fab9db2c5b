package engine_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// meter counts the requests of programs to PostgreSQL, on the wire.
type meter struct {
	statements, commits atomic.Int64 // BEGIN and COMMIT are no statements; a commit is a COMMIT
	trips               atomic.Int64 // without those of the engine's loops

	mu    sync.Mutex
	named map[string]int // statements by their names
	by    map[string]int // statements by the name of the application
}

// nameOf returns the name of a statement in core/store/queries, or its beginning.
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
	for _, name := range slices.SortedFunc(maps.Keys(m.named),
		func(a, b string) int { return m.named[b] - m.named[a] }) {
		if each := float64(m.named[name]) / float64(executions); each > 0.1 {
			fmt.Fprintf(&text, "\n%5.2f %s", each, name)
		}
	}
	return text.String()
}

// names are the statements that were counted, by their names.
func (m *meter) names() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.named)
}

// ofBatches is how many statements the engine's batches have made; its loops have connections
// of their own.
func (m *meter) ofBatches() (n float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for application, count := range m.by {
		if strings.HasPrefix(application, "attune-executor rounds") {
			n += float64(count)
		}
	}
	return n
}

// forget drops the names that were counted.
func (m *meter) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.named)
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
	m := &meter{named: map[string]int{}, by: map[string]int{}}
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

// forward copies the data of both sides, and reads those of the client.
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

// A round trip ends with a Sync of the client. Preparing a statement does not count: each connection does it once,
// and a busy machine has more connections. Loops of the engine have their own connections, and their round trips
// depend on time: they are not counted.
func (m *meter) listen(said io.Reader) {
	backend := pgproto3.NewBackend(said, io.Discard)
	first, err := backend.ReceiveStartupMessage()
	if err != nil {
		return
	}
	application := ""
	if startup, ok := first.(*pgproto3.StartupMessage); ok {
		application = startup.Parameters["application_name"]
	}
	loops := application == "attune-executor"
	prepared, bound, executed := map[string]string{}, "", false
	asked := func() {
		if !loops {
			m.trips.Add(1)
		}
	}
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
			m.by[application]++
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
			executed = true
			count(bound)
		case *pgproto3.Query:
			asked()
			count(message.String)
		case *pgproto3.Sync:
			if executed {
				asked()
			}
			executed = false
		}
	}
}

// account counts the cost of executions to the database, with an engine and workers behind a meter.
type account struct {
	*bundle
	meter  *meter
	direct *store.Store // not behind the meter
}

func newAccount(t *testing.T) *account {
	t.Helper()
	database := testkit.Database(t)
	m, through := metered(t, database)
	return &account{bundle: setupOn(t, through), meter: m, direct: testkit.OpenStore(t, database)}
}

// run runs one execution of core.noop from its request to its released slot.
func (a *account) run(t *testing.T) {
	t.Helper()
	a.request(t, "core.noop", 1, `{}`)
	a.released(t)
}

// released waits until every execution has ended and has released its slot.
func (a *account) released(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, a.direct, `SELECT count(*) FROM execution e
			WHERE e.finished_status IS NULL OR EXISTS (SELECT FROM execution_holder h WHERE h.execution = e.id)`) == 0
	}, testkit.TestTimeout)
}

// published waits until the rows of the outbox are deleted. They are deleted together with
// the next ones, if these come soon.
func (a *account) published(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, func() bool { return testkit.Count(t, a.direct, `SELECT count(*) FROM outbox`) == 0 },
		testkit.TestTimeout)
}

// warmUp has statements prepared and caches filled.
func (a *account) warmUp(t *testing.T) {
	t.Helper()
	for range 20 {
		a.run(t)
	}
	a.published(t)
}

// inspectsWAL makes the records of WAL readable, if the server can do so.
func (a *account) inspectsWAL(t *testing.T) bool {
	t.Helper()
	const available = `SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_walinspect'`
	if testkit.Count(t, a.direct, available) == 0 {
		t.Log("the server lacks the extension pg_walinspect: WAL is not counted")
		return false
	}
	testkit.Exec(t, a.direct, `CREATE EXTENSION IF NOT EXISTS pg_walinspect SCHEMA public`)
	return true
}

// position is the end of the log.
func (a *account) position(t *testing.T) (lsn string) {
	t.Helper()
	require.NoError(t,
		a.direct.Pool().QueryRow(testkit.Context(t), `SELECT pg_current_wal_insert_lsn()::text`).Scan(&lsn))
	return lsn
}

// record is one kind of records of WAL.
type record struct {
	Kind         string
	Count, Bytes float64
}

// records are those of transactions between two positions that write executions, slots or
// messages, the most bytes first: loops write too, the more the longer executions take, and
// other databases of the server are in use at the same time.
func (a *account) records(t *testing.T, from, to string) []record {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, a.direct, `SELECT (pg_current_wal_flush_lsn() >= $1::pg_lsn)::int`, to) == 1
	}, testkit.TestTimeout)
	rows, err := a.direct.Pool().Query(testkit.Context(t), `
		WITH record AS MATERIALIZED (
			SELECT xid::text AS xid, resource_manager || ' ' || record_type AS kind, record_length AS bytes,
			       coalesce(block_ref, '') LIKE ANY (ARRAY(
			           SELECT '%rel %/' || d.oid || '/' || pg_relation_filenode(c.name::regclass) || ' %'
			           FROM pg_database d, unnest(ARRAY['execution', 'execution_holder', 'outbox']) c (name)
			           WHERE d.datname = current_database())) AS ours
			FROM public.pg_get_wal_records_info($1::pg_lsn, $2::pg_lsn)
			WHERE xid::text <> '0'
		)
		SELECT kind, count(*)::float8, sum(bytes)::float8 FROM record
		WHERE xid IN (SELECT o.xid FROM record o WHERE o.ours)
		GROUP BY kind ORDER BY 3 DESC`, from, to)
	require.NoError(t, err)
	records, err := pgx.CollectRows(rows, pgx.RowToStructByPos[record])
	require.NoError(t, err)
	return records
}
