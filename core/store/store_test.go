package store_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/roles"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/store/internal/sources"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func open(t *testing.T, change ...func(*store.Config)) *store.Store {
	t.Helper()
	cfg := store.Config{URL: testkit.Database(t), MaxConnections: 8, HotPath: true}
	for _, fn := range change {
		fn(&cfg)
	}
	s, err := store.Open(testkit.Context(t), cfg, testkit.Logger(t))
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// newExecution inserts a requested execution of core.noop.
func newExecution(t *testing.T, s *store.Store) int64 {
	t.Helper()
	var id int64
	require.NoError(t, s.Pool().QueryRow(testkit.Context(t), insertExecution).Scan(&id))
	return id
}

func status(t *testing.T, s *store.Store, id int64) lifecycle.Status {
	t.Helper()
	row, err := s.GetExecution(testkit.Context(t), id)
	require.NoError(t, err)
	return row.Status
}

const insertExecution = "INSERT INTO execution (action_ref) VALUES ('core.noop') RETURNING id"

const setStatus = "UPDATE execution SET status = $2::text::execution_status_enum WHERE id = $1"

func TestGeneratedCodeBelongsToItsSources(t *testing.T) {
	t.Parallel()
	sum, err := sources.Sum(".")
	require.NoError(t, err)
	require.Equal(t, sources.Recorded("."), sum,
		"a query or a migration changed since the code was generated: run go generate ./core/store")
}

func TestOpenNeedsNoServer(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	s, err := store.Open(ctx, store.Config{URL: "postgres://attune@127.0.0.1:1/none", ConnectTimeout: time.Second}, nil)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	require.Equal(t, store.ClassUnreachable, store.ClassOf(s.Ping(ctx)))
	err = s.Tx(ctx, "nothing", func(context.Context, *store.Tx) error { return nil })
	require.Equal(t, store.ClassUnreachable, store.ClassOf(err))
}

func TestHotPoolKeepsThePlannerToIndexes(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	s := open(t, func(c *store.Config) { c.StatementTimeout = 7 * time.Second; c.ApplicationName = "hot" })
	for name, want := range map[string]string{
		"search_path": `"attune", public`, "application_name": "hot", "jit": "off", "statement_timeout": "7s",
		"idle_in_transaction_session_timeout": "10s", "enable_seqscan": "off", "enable_hashjoin": "off",
		"enable_mergejoin": "off", "plan_cache_mode": "force_generic_plan",
	} {
		var got string
		require.NoError(t, s.Pool().QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&got))
		require.Equal(t, want, got, name)
	}
}

// A client that freezes in the middle of a transaction, in any part of a program, loses its locks.
func TestAFrozenClientHoldsNoTransaction(t *testing.T) {
	t.Parallel()
	for _, hot := range []bool{true, false} {
		s := open(t, func(c *store.Config) { c.HotPath = hot })
		var got string
		require.NoError(t, s.Pool().QueryRow(testkit.Context(t),
			"SELECT current_setting('idle_in_transaction_session_timeout')").Scan(&got))
		require.Equal(t, "10s", got)
	}
}

// Each connection, also the one that listens, has the login that counts then.
func TestLoginsAreReadForEachConnection(t *testing.T) {
	database := testkit.Database(t)
	login := testkit.NewLogin(t, roles.Viewer, database, testkit.VHost(t))
	var as atomic.Pointer[string]
	st := testkit.OpenStore(t, database, func(cfg *store.Config) {
		own, err := url.Parse(database)
		require.NoError(t, err)
		password, _ := own.User.Password()
		as.Store(new(own.User.Username()))
		cfg.Login = func() (string, string) {
			if user := *as.Load(); user != login.Name {
				return user, password
			}
			return login.Name, "role"
		}
	})
	require.NoError(t, st.Ping(t.Context()))
	as.Store(&login.Name)
	st.Pool().Reset()
	var user string
	require.NoError(t, st.Pool().QueryRow(t.Context(), "SELECT current_user::text").Scan(&user))
	require.Equal(t, login.Name, user)
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		st.Listen(ctx, func(string, string) {}, "logins")
	}()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st, "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user AND query LIKE 'LISTEN%'") == 1
	}, 30*time.Second)
	cancel()
	<-listening
}

func TestReadOnlyStoreRefusesWrites(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	s := open(t, func(c *store.Config) { c.ReadOnly = true; c.HotPath = false })
	_, err := s.Pool().Exec(ctx, insertExecution)
	require.Equal(t, store.ClassUnable, store.ClassOf(err), "%v", err)
	err = s.Tx(ctx, "write", func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, insertExecution)
		return err
	})
	require.Equal(t, store.ClassUnable, store.ClassOf(err), "%v", err)
	_, err = s.ActionRefs(ctx, 10)
	require.NoError(t, err)
}

func TestReadTxSeesOneSnapshotAndWritesNothing(t *testing.T) {
	s := open(t)
	id := newExecution(t, s)
	err := s.ReadTx(testkit.Context(t), "look twice", func(ctx context.Context, tx *store.Tx) error {
		first, err := tx.GetExecution(ctx, id)
		require.NoError(t, err)
		_, err = s.Pool().Exec(ctx, setStatus, id, "cancelled")
		require.NoError(t, err)
		second, err := tx.GetExecution(ctx, id)
		require.NoError(t, err)
		require.Equal(t, first, second)
		_, err = tx.Exec(ctx, setStatus, id, "failed")
		return err
	})
	require.Equal(t, store.ClassUnable, store.ClassOf(err), "%v", err)
}

func TestEnumArraysTravelBothWays(t *testing.T) {
	s := open(t)
	var back []lifecycle.Status
	err := s.Pool().QueryRow(testkit.Context(t), "SELECT $1::execution_status_enum[]",
		lifecycle.TerminalStatuses).Scan(&back)
	require.NoError(t, err)
	require.Equal(t, lifecycle.TerminalStatuses, back)
}

func TestDeadlockIsRepeatedAndHooksRunOnce(t *testing.T) {
	s := open(t)
	a, b := newExecution(t, s), newExecution(t, s)
	var attempts, hooks atomic.Int32
	var met sync.WaitGroup
	met.Add(2)
	work := func(first, second int64) error {
		var once sync.Once
		return s.Tx(testkit.Context(t), "cross", func(ctx context.Context, tx *store.Tx) error {
			attempts.Add(1)
			tx.AfterCommit(func() { hooks.Add(1) })
			if _, err := tx.Exec(ctx, "UPDATE execution SET attempt = attempt + 1 WHERE id = $1", first); err != nil {
				return err
			}
			once.Do(func() { met.Done(); met.Wait() })
			_, err := tx.Exec(ctx, "UPDATE execution SET attempt = attempt + 1 WHERE id = $1", second)
			return err
		})
	}
	other := make(chan error, 1)
	go func() { other <- work(b, a) }()
	require.NoError(t, work(a, b))
	require.NoError(t, <-other)
	require.GreaterOrEqual(t, attempts.Load(), int32(3), "one of the two had to lose")
	require.Equal(t, int32(2), hooks.Load())
	rows, err := s.GetExecutions(testkit.Context(t), []int64{a, b})
	require.NoError(t, err)
	require.Equal(t, int32(2), rows[0].Attempt)
	require.Equal(t, int32(2), rows[1].Attempt)
}

func TestSerializationFailureIsRepeated(t *testing.T) {
	s := open(t)
	id := newExecution(t, s)
	attempts := 0
	err := s.Tx(testkit.Context(t), "count up", func(ctx context.Context, tx *store.Tx) error {
		attempts++
		if _, err := tx.Exec(ctx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"); err != nil {
			return err
		}
		if _, err := tx.GetExecution(ctx, id); err != nil {
			return err
		}
		if attempts == 1 {
			_, err := s.Pool().Exec(ctx, "UPDATE execution SET attempt = 10 WHERE id = $1", id)
			require.NoError(t, err)
		}
		_, err := tx.Exec(ctx, "UPDATE execution SET attempt = attempt + 1 WHERE id = $1", id)
		return err
	})
	require.NoError(t, err)
	require.Equal(t, 2, attempts)
	row, err := s.GetExecution(testkit.Context(t), id)
	require.NoError(t, err)
	require.Equal(t, int32(11), row.Attempt)
}

func TestRetriesAreBounded(t *testing.T) {
	s := open(t)
	attempts := 0
	never := func(ctx context.Context, tx *store.Tx) error {
		attempts++
		tx.AfterCommit(func() { t.Error("nothing was committed") })
		_, err := tx.Exec(ctx, "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$")
		return err
	}
	err := s.Tx(testkit.Context(t), "never", never)
	require.Equal(t, store.ClassRetryable, store.ClassOf(err))
	require.ErrorContains(t, err, "never: ")
	require.Equal(t, 6, attempts)
	require.Equal(t, store.ClassRetryable, store.ClassOf(s.Once(testkit.Context(t), "never", never)))
	require.Equal(t, 7, attempts, "the caller repeats it")
}

// terminate ends the server process behind a transaction.
func terminate(t *testing.T, s *store.Store, pid uint32) {
	t.Helper()
	var done bool
	err := s.Pool().QueryRow(testkit.Context(t), "SELECT pg_terminate_backend($1, 60000)", pid).Scan(&done)
	require.NoError(t, err)
	require.True(t, done)
}

func TestConnectionLostBeforeCommitIsRepeated(t *testing.T) {
	s := open(t)
	id := newExecution(t, s)
	attempts := 0
	err := s.Tx(testkit.Context(t), "survive", func(ctx context.Context, tx *store.Tx) error {
		attempts++
		if _, err := tx.Exec(ctx, setStatus, id, "cancelled"); err != nil {
			return err
		}
		if attempts == 1 {
			terminate(t, s, tx.Conn().PgConn().PID())
		}
		_, err := tx.GetExecution(ctx, id)
		return err
	})
	require.NoError(t, err)
	require.Equal(t, 2, attempts)
	require.Equal(t, lifecycle.StatusCancelled, status(t, s, id))
}

func TestConnectionLostAtCommitIsUnknownAndNotRepeated(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]func(context.Context, *store.Tx) error{
		"implicit": func(context.Context, *store.Tx) error { return nil },
		"pipeline": func(ctx context.Context, tx *store.Tx) error {
			p := tx.Pipeline()
			p.Exec("SELECT 1")
			return p.Commit(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			id := newExecution(t, s)
			dieAtCommit(t, s)
			attempts := 0
			err := s.Tx(testkit.Context(t), "lose", func(ctx context.Context, tx *store.Tx) error {
				attempts++
				tx.AfterCommit(func() { t.Error("the outcome is unknown") })
				_, err := tx.Exec(ctx, "UPDATE execution SET attempt = attempt + 1 WHERE id = $1", id)
				require.NoError(t, err)
				return commit(ctx, tx)
			})
			require.Equal(t, store.ClassUnknown, store.ClassOf(err), "%v", err)
			var unknown *store.OutcomeUnknownError
			require.ErrorAs(t, err, &unknown)
			require.Equal(t, 1, attempts, "an unknown outcome is never repeated")
		})
	}
}

// dieAtCommit ends the server process of any client that changes an execution while it works on
// COMMIT.
func dieAtCommit(t *testing.T, s *store.Store) {
	t.Helper()
	for _, sql := range []string{
		`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$
		 BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER die AFTER UPDATE ON execution DEFERRABLE INITIALLY DEFERRED
		 FOR EACH ROW EXECUTE FUNCTION die()`,
	} {
		_, err := s.Pool().Exec(testkit.Context(t), sql)
		require.NoError(t, err)
	}
}

func TestPipelineIsOneRoundTripAndRunsInOrder(t *testing.T) {
	s := open(t)
	id := newExecution(t, s)
	var gone atomic.Bool
	err := s.Tx(testkit.Context(t), "pipeline", func(ctx context.Context, tx *store.Tx) error {
		tx.AfterCommit(func() { gone.Store(true) })
		p := tx.Pipeline()
		changed := p.Exec(setStatus, id, "scheduled")
		rows := store.Many[store.Execution](p, store.GetExecutions, []int64{id})
		now := store.Many[time.Time](p, "SELECT now()")
		require.NoError(t, p.Send(ctx))
		require.Equal(t, int64(1), changed.Rows())
		require.Len(t, rows.Rows(), 1)
		require.Equal(t, lifecycle.StatusScheduled, rows.Rows()[0].Status)
		require.Len(t, now.Rows(), 1)

		p.Exec(setStatus, id, "running")
		require.Equal(t, 1, p.Len())
		require.NoError(t, p.Commit(ctx))
		require.Equal(t, lifecycle.StatusRunning, status(t, s, id), "committed before the function returns")
		require.False(t, gone.Load())
		_, err := tx.GetExecution(ctx, id)
		require.Error(t, err, "the transaction is over")
		return nil
	})
	require.NoError(t, err)
	require.True(t, gone.Load())
}

func TestPipelineFailureTakesEverythingBack(t *testing.T) {
	s := open(t)
	id := newExecution(t, s)
	err := s.Tx(testkit.Context(t), "all or nothing", func(ctx context.Context, tx *store.Tx) error {
		tx.AfterCommit(func() { t.Error("nothing was committed") })
		p := tx.Pipeline()
		p.Exec(setStatus, id, "cancelled")
		p.Exec("SELECT attune_expect(1, 2, 'granted slots')")
		p.Exec(setStatus, id, "failed")
		return p.Commit(ctx)
	})
	require.Equal(t, store.ClassRefused, store.ClassOf(err), "%v", err)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, store.ExpectationCode, pgErr.Code)
	require.Equal(t, "granted slots: 1 rows instead of 2", pgErr.Message)
	require.ErrorContains(t, err, "statement 2 of 3")
	require.Equal(t, lifecycle.StatusRequested, status(t, s, id))
}

func TestErrorOfTheFunctionTakesEverythingBack(t *testing.T) {
	s := open(t)
	id := newExecution(t, s)
	boom := errors.New("boom")
	err := s.Tx(testkit.Context(t), "give up", func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, setStatus, id, "cancelled")
		require.NoError(t, err)
		return boom
	})
	require.ErrorIs(t, err, boom)
	require.Equal(t, store.ClassFatal, store.ClassOf(err))
	require.Equal(t, lifecycle.StatusRequested, status(t, s, id))
}

func TestClassesOfErrors(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]store.Class{
		"40001": store.ClassRetryable, "40P01": store.ClassRetryable, "23505": store.ClassConflict,
		"23503": store.ClassRefused, "23514": store.ClassRefused, "P0001": store.ClassRefused,
		"AT001": store.ClassRefused,
		"57P01": store.ClassUnreachable, "08006": store.ClassUnreachable, "57014": store.ClassCanceled,
		"42P01": store.ClassInstallation,
	} {
		require.Equal(t, want, store.ClassOf(errors.Join(errors.New("outer"), &pgconn.PgError{Code: code})), code)
	}
	require.Equal(t, store.ClassNone, store.ClassOf(nil))
	require.Equal(t, store.ClassCanceled, store.ClassOf(context.Canceled))
	require.Equal(t, store.ClassUnknown, store.ClassOf(&store.OutcomeUnknownError{Err: context.Canceled}))
}

// The settings of the pool are those of its configuration.
func TestThePoolIsAsConfigured(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	st, err := store.Open(testkit.Context(t), store.Config{
		URL: testkit.Database(t), Schema: testkit.Schema, MaxConnections: 5, MinConnections: 3,
		IdleTimeout: 7 * time.Minute, LogStatements: true,
	}, logger)
	require.NoError(t, err)
	t.Cleanup(st.Close)
	require.Equal(t, 7*time.Minute, st.Pool().Config().MaxConnIdleTime)
	testkit.Eventually(t, func() bool { return st.Pool().Stat().IdleConns() >= 3 }, 20*time.Second)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM (VALUES ($1::text)) v`, "a secret value"))
	require.Contains(t, log.String(), `msg="Statement executed" statement="SELECT count(*) FROM (VALUES ($1::text)) v"`)
	require.NotContains(t, log.String(), "a secret value")
	require.Error(t, st.Tx(testkit.Context(t), "fail", func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `SELECT 1 / 0`)
		return err
	}))
	require.Contains(t, log.String(), "division by zero")
}

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *syncBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A server that no longer accepts writes has become a standby: its connections are replaced, and new ones find
// the primary. A read-only store keeps its connections.
func TestConnectionsToAStandbyAreReplaced(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	for name, readOnly := range map[string]bool{"Writes": false, "ReadOnly": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, func(c *store.Config) { c.MaxConnections, c.ReadOnly = 1, readOnly })
			id := int64(1)
			backend := func() (pid int) {
				require.NoError(t, s.Pool().QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid))
				return pid
			}
			before := backend()
			_, err := s.Pool().Exec(ctx, "SET default_transaction_read_only = on") // as in a standby
			require.NoError(t, err)
			_, err = s.Pool().Exec(ctx, setStatus, id, "requested")
			require.Equal(t, store.ClassUnable, store.ClassOf(err))
			if readOnly {
				require.Equal(t, before, backend())
				return
			}
			require.NotEqual(t, before, backend())
			_, err = s.Pool().Exec(ctx, setStatus, id, "requested")
			require.NoError(t, err)
		})
	}
}

// While a database is being restored it accepts no connections. That is an outage, not a defect of the statement.
func TestADatabaseThatAcceptsNoConnectionsIsUnreachable(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	s := open(t)
	var name string
	require.NoError(t, s.Pool().QueryRow(ctx, "SELECT current_database()").Scan(&name))
	testkit.Exec(t, testkit.Store(t), "ALTER DATABASE "+name+" WITH ALLOW_CONNECTIONS false")
	s.Pool().Reset()
	err := s.Ping(ctx)
	var server *pgconn.PgError
	require.ErrorAs(t, err, &server)
	require.Equal(t, "55000", server.Code)
	require.Equal(t, store.ClassUnreachable, store.ClassOf(err))
	require.True(t, store.IsAway(err))
}

// A panic in a transaction is a fatal error, which isolates its cause; its writes are rolled back, and its connection
// is free.
func TestAPanicInATransactionIsAnError(t *testing.T) {
	s := open(t, func(cfg *store.Config) { cfg.MaxConnections = 1 })
	id := newExecution(t, s)
	for range 2 {
		err := s.Tx(testkit.Context(t), "defect", func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Exec(ctx, setStatus, id, "running"); err != nil {
				return err
			}
			panic("defect in a test")
		})
		require.ErrorContains(t, err, "defect in a test")
		require.Equal(t, store.ClassFatal, store.ClassOf(err))
	}
	require.Equal(t, lifecycle.StatusRequested, status(t, s, id))
}
