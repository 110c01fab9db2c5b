package migrations_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// migrated is a connection to a database of its own with the whole schema.
func migrated(t *testing.T) *pgx.Conn {
	t.Helper()
	return connect(t, migrations.Options{URL: testkit.OwnDatabase(t), Schema: testkit.Schema})
}

func insertExecution(t *testing.T, conn *pgx.Conn) int64 {
	t.Helper()
	return one[int64](t, conn,
		"INSERT INTO execution (action, action_ref) SELECT id, ref FROM action WHERE ref = 'core.noop' RETURNING id")
}

func insertWorker(t *testing.T, conn *pgx.Conn, name string) int64 {
	t.Helper()
	return one[int64](t, conn,
		"INSERT INTO worker (name, worker_type, worker_role) VALUES ($1, 'local', 'action') RETURNING id", name)
}

// Invariant S8 rests on one list of final statuses; SQL and Go must agree.
func TestTerminalStatusesInSQLAreThoseOfTheVocabulary(t *testing.T) {
	conn := migrated(t)
	labels := one[string](t, conn,
		"SELECT string_agg(s::text, ' ') FROM unnest(enum_range(NULL::execution_status_enum)) s")
	require.Equal(t, join(lifecycle.Statuses), labels)
	final := one[string](t, conn, "SELECT string_agg(s::text, ' ') FROM unnest(enum_range(NULL::execution_status_enum)) s WHERE attune_terminal(s)")
	require.Equal(t, join(lifecycle.TerminalStatuses), final)

	// Where a call would cost every statement, the list is spelled out.
	spelled := map[string]string{
		"finished_status": one[string](t, conn, `SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d
			JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
			WHERE d.adrelid = 'execution'::regclass AND a.attname = 'finished_status'`),
	}
	for _, name := range []string{"attune_20_finished_insert", "attune_20_finished", "attune_10_terminal_guard"} {
		spelled[name] = one[string](t, conn, `SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = $1`, name)
	}
	list := regexp.MustCompile(`ARRAY\[([^\]]*)\]`)
	label := regexp.MustCompile(`'([a-z]+)'`)
	for name, definition := range spelled {
		lists := list.FindAllStringSubmatch(definition, -1)
		require.NotEmpty(t, lists, "%s: %s", name, definition)
		for _, found := range lists {
			var words []string
			for _, word := range label.FindAllStringSubmatch(found[1], -1) {
				words = append(words, word[1])
			}
			require.Equal(t, final, strings.Join(words, " "), name)
		}
	}
}

func join(statuses []lifecycle.Status) string {
	words := make([]string, len(statuses))
	for i, s := range statuses {
		words[i] = string(s)
	}
	return strings.Join(words, " ")
}

func TestUpdatedStrictlyIncreasesWithinOneTransaction(t *testing.T) {
	conn := migrated(t)
	id := insertExecution(t, conn)
	exec(t, conn, "BEGIN")
	last := one[time.Time](t, conn, "SELECT updated FROM execution WHERE id = $1", id)
	for range 3 {
		next := one[time.Time](t, conn, "UPDATE execution SET attempt = attempt + 1 WHERE id = $1 RETURNING updated",
			id)
		require.True(t, next.After(last), "%s after %s", next, last)
		last = next
	}
	exec(t, conn, "COMMIT")
	// Not even a clock that was ahead stands still.
	exec(t, conn, "UPDATE execution SET updated = now() + interval '1 hour' WHERE id = $1", id)
	require.True(t,
		one[bool](t, conn,
			"WITH u AS (UPDATE execution SET attempt = 9 WHERE id = $1 RETURNING updated) SELECT updated > $2 FROM u", id, last))
}

// Every move of the transition table that does not end the execution must stay
// within its page and touch no index.
func TestTransitionsThatDoNotEndStayHOT(t *testing.T) {
	conn := migrated(t)
	worker := insertWorker(t, conn, "w")
	const counters = "SELECT n_tup_upd - n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'execution'"
	updates := int64(0)
	for _, move := range lifecycle.Transitions {
		if move.To.Terminal() {
			continue
		}
		id := one[int64](t, conn, "INSERT INTO execution (action_ref, status, config) VALUES ('core.noop', $1::text::execution_status_enum, '{}') RETURNING id", string(move.From))
		updates += exec(t, conn, `UPDATE execution SET status = $2::text::execution_status_enum, worker = $3, attempt = attempt + 1,
			started_at = now() WHERE id = $1`, id, string(move.To), worker)
	}
	require.Positive(t, updates)
	exec(t, conn, "SELECT pg_stat_force_next_flush()")
	require.Equal(t, updates,
		one[int64](t, conn, "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'execution'"))
	require.Zero(t, one[int64](t, conn, counters), "updates that had to touch an index")

	// The counter can tell: the end of an execution does touch the indexes.
	id := insertExecution(t, conn)
	exec(t, conn, "UPDATE execution SET status = 'cancelled' WHERE id = $1", id)
	exec(t, conn, "SELECT pg_stat_force_next_flush()")
	require.EqualValues(t, 1, one[int64](t, conn, counters))
}

func TestNoIndexHasFrequentlyChangingColumns(t *testing.T) {
	conn := migrated(t)
	found := testkit.Column[string](t, conn, `SELECT indexname::text || ': ' || indexdef FROM pg_indexes
		WHERE tablename = 'execution' AND indexdef ~ '\m(status|updated|worker|attempt)\M'`)
	require.Empty(t, found)
}

// Invariant S8, upstream 32: a worker that writes without looking changes
// nothing, is told nothing, and leaves evidence.
func TestLateWriteIsKeptOutAndRecorded(t *testing.T) {
	conn := migrated(t)
	first, second := insertWorker(t, conn, "first"), insertWorker(t, conn, "second")
	id := insertExecution(t, conn)
	exec(t, conn, `UPDATE execution SET status = 'failed', result = '{"by": "engine"}', worker = $2 WHERE id = $1`, id,
		first)
	ended := one[time.Time](t, conn, "SELECT finished_at FROM execution WHERE id = $1", id)

	require.EqualValues(t, 1, exec(t, conn,
		"UPDATE execution SET status = 'running', started_at = now(), worker = $2 WHERE id = $1", id, second),
		"the foreign writer sees its row")
	require.EqualValues(t, 1,
		exec(t, conn, `UPDATE execution SET status = 'completed', result = '{"by": "worker"}' WHERE id = $1`, id))

	kept := one[bool](t, conn, `SELECT status = 'failed' AND result = '{"by": "engine"}' AND worker = $2 AND started_at IS NULL
		AND finished_status = 'failed' AND finished_at = $3 FROM execution WHERE id = $1`, id, first, ended)
	require.True(t, kept)
	require.Equal(t, "failed>running failed>completed", one[string](t, conn,
		"SELECT string_agg(old_status || '>' || refused_status, ' ' ORDER BY id) FROM late_write WHERE execution = $1", id))
	require.JSONEq(t, `{"by": "worker"}`, one[string](t, conn,
		"SELECT refused_result::text FROM late_write WHERE execution = $1 ORDER BY id DESC LIMIT 1", id))

	// A worker that is deleted takes its foreign key along.
	exec(t, conn, "DELETE FROM worker WHERE id = $1", first)
	require.True(t, one[bool](t, conn, "SELECT worker IS NULL AND status = 'failed' FROM execution WHERE id = $1", id))
}

func TestJSONNullIsNoWorkflowTask(t *testing.T) {
	conn := migrated(t)
	const explain = `EXPLAIN (FORMAT TEXT) SELECT id FROM execution
		WHERE (workflow_task ->> 'workflow_execution')::bigint = 5 AND jsonb_typeof(workflow_task) = 'object'`
	for _, task := range []any{nil, "null", `{"workflow_execution": 5, "task_name": "a"}`} {
		exec(t, conn, "INSERT INTO execution (action_ref, workflow_task) VALUES ('core.noop', $1::text::jsonb)", task)
	}
	require.EqualValues(t, 1,
		one[int64](t, conn, "SELECT count(*) FROM execution WHERE jsonb_typeof(workflow_task) = 'object'"))
	exec(t, conn, "ANALYZE execution")
	require.EqualValues(t, 1,
		one[int64](t, conn, "SELECT reltuples::bigint FROM pg_class WHERE relname = 'attune_execution_workflow'"))
	exec(t, conn, "SET enable_seqscan = off")
	require.Contains(t, plan(t, conn, explain), "attune_execution_workflow")
}

func plan(t *testing.T, conn *pgx.Conn, explain string) string {
	t.Helper()
	lines := testkit.Column[string](t, conn, explain)
	return strings.Join(lines, "\n")
}

func TestHistoryIsAppendedPerStatementAndOnlyForChanges(t *testing.T) {
	conn := migrated(t)
	exec(t, conn, "INSERT INTO execution (action_ref) SELECT 'core.noop' FROM generate_series(1, 20)")
	exec(t, conn, "UPDATE execution SET status = 'scheduled', attempt = 1")
	exec(t, conn, "UPDATE execution SET attempt = 2")
	exec(t, conn, `UPDATE execution SET status = 'completed', result = '{"n": 1}' WHERE id % 2 = 0`)
	require.Equal(t, "INSERT/status=20 UPDATE/status=20 UPDATE/status,result=10", one[string](t, conn, `
		SELECT string_agg(k || '=' || n, ' ' ORDER BY k COLLATE "C") FROM (
			SELECT operation || '/' || array_to_string(changed_fields, ',') AS k, count(*) AS n FROM execution_history GROUP BY 1) s`))
	require.JSONEq(t, `{"status": "scheduled"}`, one[string](t, conn,
		"SELECT new_values::text FROM execution_history WHERE operation = 'UPDATE' AND changed_fields = '{status}' LIMIT 1"))
	require.Equal(t, "md5:", one[string](t, conn,
		"SELECT left(new_values -> 'result' ->> 'digest', 4) FROM execution_history WHERE 'result' = ANY (changed_fields) LIMIT 1"))
	require.Zero(t, one[int64](t, conn, "SELECT count(*) FROM execution_history_default"), "today has a partition")

	worker := insertWorker(t, conn, "w")
	exec(t, conn, "UPDATE worker SET last_heartbeat = now() WHERE id = $1", worker)
	exec(t, conn, "UPDATE worker SET status = 'inactive' WHERE id = $1", worker)
	require.Equal(t, "INSERT UPDATE",
		one[string](t, conn, "SELECT string_agg(operation, ' ' ORDER BY time, operation) FROM worker_history"))
	require.EqualValues(t, 1, one[int64](t, conn, "SELECT count(*) FROM worker_load WHERE worker = $1", worker))
}

// everyChange writes history as attune_execution_history_update does, in a plainer way.
const everyChange = `
	CREATE OR REPLACE FUNCTION attune_execution_history_update() RETURNS trigger
	LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
	BEGIN
		INSERT INTO execution_history (time, operation, entity_id, entity_ref, changed_fields, old_values, new_values)
		SELECT clock_timestamp(), 'UPDATE', n.id, n.action_ref, array_agg(c.field ORDER BY c.place),
			jsonb_object_agg(c.field, c.before), jsonb_object_agg(c.field, c.after)
		FROM new_rows n JOIN old_rows o ON o.id = n.id CROSS JOIN LATERAL (VALUES
			(1, 'status', to_jsonb(o.status), to_jsonb(n.status), o.status IS DISTINCT FROM n.status),
			(2, 'worker', to_jsonb(o.worker), to_jsonb(n.worker), o.worker IS DISTINCT FROM n.worker),
			(3, 'started_at', to_jsonb(o.started_at), to_jsonb(n.started_at), o.started_at IS DISTINCT FROM n.started_at),
			(4, 'executor', to_jsonb(o.executor), to_jsonb(n.executor), o.executor IS DISTINCT FROM n.executor),
			(5, 'result', attune_result_digest(o.result), attune_result_digest(n.result), o.result IS DISTINCT FROM n.result)
		) AS c (place, field, before, after, changed)
		WHERE c.changed GROUP BY n.id, n.action_ref;
		RETURN NULL;
	END
	$$`

// The history is that of a plainer function, also in the sessions of the engine, which forbid joins.
func TestHistoryHasEveryChange(t *testing.T) {
	conn := migrated(t)
	worker := insertWorker(t, conn, "w")
	exec(t, conn, "INSERT INTO identity (login) VALUES ('someone')")
	kinds := []string{
		"INSERT INTO execution (action_ref) VALUES ('a.b')",
		"INSERT INTO execution (action_ref, status, result) SELECT 'a.b', 'completed', '{}' FROM generate_series(1, 3)",
		"UPDATE execution SET attempt = attempt + 1",
		"UPDATE execution SET status = 'scheduled', worker = " + strconv.FormatInt(worker, 10) + ", attempt = 1",
		"UPDATE execution SET worker = NULL WHERE id % 2 = 0",
		"UPDATE execution SET status = 'running', started_at = '2026-01-02 03:04:05.678901+00' WHERE id % 3 > 0",
		"UPDATE execution SET started_at = NULL",
		"UPDATE execution SET executor = (SELECT id FROM identity WHERE login = 'someone')",
		"UPDATE execution SET status = 'running', executor = NULL, result = CASE id % 3 WHEN 0 THEN '[1]'::jsonb WHEN 1 THEN 'null' END",
		`UPDATE execution SET result = '{"b": "\u00e9", "a": [1, 2.50]}'`,
		"UPDATE execution SET result = NULL WHERE id % 2 = 1",
		"UPDATE execution SET status = 'completed', result = jsonb_build_object('stdout', repeat('x', 100000)) WHERE id % 2 = 0",
		"UPDATE execution SET status = CASE WHEN id % 2 = 0 THEN status ELSE 'failed' END",
		"UPDATE execution SET status = 'failed' WHERE false",
	}
	written := func(session string) (history []string) {
		tx, err := conn.Begin(testkit.Context(t))
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback(testkit.Context(t))) }()
		exec(t, conn, "ALTER SEQUENCE execution_id_seq RESTART WITH 1000; SET LOCAL TimeZone = 'UTC';"+session)
		exec(t, conn, "INSERT INTO execution (action_ref) SELECT 'a.b' FROM generate_series(1, 7)")
		exec(t, conn, "TRUNCATE execution_history")
		for _, kind := range kinds {
			exec(t, conn, kind)
			history = append(history, kind, one[string](t, conn, `SELECT coalesce(string_agg(to_jsonb(h)::text, E'\n' ORDER BY h.entity_id), '')
				FROM (SELECT operation, entity_id, entity_ref, changed_fields, old_values, new_values FROM execution_history) h`))
			exec(t, conn, "TRUNCATE execution_history")
		}
		return history
	}
	const hot = "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL plan_cache_mode = force_generic_plan"
	now, inHotSessions := written(""), written(hot)
	exec(t, conn, everyChange)
	plainer := written("")
	require.Equal(t, plainer, now)
	require.Equal(t, plainer, inHotSessions)
	changes := 0
	for _, rows := range plainer {
		if strings.HasPrefix(rows, "{") {
			changes++
		}
	}
	require.Equal(t, len(kinds)-2, changes, "all but two kinds of statement are recorded")
}

// Bodies of the outbox are compressed with lz4 where the server has it.
func TestBodiesOfTheOutboxAreCompressedCheaply(t *testing.T) {
	conn := migrated(t)
	has := one[bool](t, conn,
		"SELECT EXISTS (SELECT FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals))")
	require.Equal(t, has, one[bool](t, conn,
		"SELECT attcompression = 'l' FROM pg_attribute WHERE attrelid = 'outbox'::regclass AND attname = 'bodies'"))
}

func TestHistoryDoesNotNeedTheWritersSearchPath(t *testing.T) {
	conn := migrated(t)
	id := insertExecution(t, conn)
	exec(t, conn, "SET search_path = pg_catalog")
	exec(t, conn, "UPDATE attune.execution SET status = 'cancelled' WHERE id = $1", id)
	exec(t, conn, "UPDATE attune.execution SET status = 'running' WHERE id = $1", id)
	require.EqualValues(t, 1, one[int64](t, conn, "SELECT count(*) FROM attune.late_write WHERE execution = $1", id))
	require.EqualValues(t, 2,
		one[int64](t, conn, "SELECT count(*) FROM attune.execution_history WHERE entity_id = $1", id))
}

// ATTUNE's idempotency constraints (invariant S10): the second of each pair is
// the same thing again.
func TestSameThingTwiceIsOneThing(t *testing.T) {
	conn := migrated(t)
	id := insertExecution(t, conn)
	exec(t, conn, `INSERT INTO rule (ref, pack, pack_ref, label, action_ref, trigger_ref, enabled)
		SELECT 'core.r', id, 'core', 'r', 'core.noop', 'core.t', true FROM pack WHERE ref = 'core'`)
	exec(t, conn, `INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
		SELECT 'core.w', id, 'core', 'w', '1', '{}' FROM pack WHERE ref = 'core'`)
	exec(t, conn, "INSERT INTO workflow_execution (execution, workflow_def, task_graph) SELECT $1, id, '{}' FROM workflow_definition", id)
	exec(t, conn, "INSERT INTO execution_admission_state (action_id, max_concurrent) SELECT id, 1 FROM action WHERE ref = 'core.noop'")
	exec(t, conn, "INSERT INTO enforcement (rule, rule_ref, trigger_ref, event, payload) SELECT id, ref, 'core.t', 4, '{}' FROM rule")
	for name, insert := range map[string]string{
		"enforcement": `INSERT INTO enforcement (rule, rule_ref, trigger_ref, event, payload) SELECT id, ref, 'core.t', 5, '{}' FROM rule
			ON CONFLICT (rule, event) WHERE rule IS NOT NULL AND event IS NOT NULL DO NOTHING`,
		"top-level execution": `INSERT INTO execution (action_ref, enforcement) SELECT 'core.noop', min(id) FROM enforcement
			ON CONFLICT (enforcement) WHERE enforcement IS NOT NULL AND parent IS NULL AND (config IS NULL OR NOT (config ? 'retry_of')) DO NOTHING`,
		"inquiry": `INSERT INTO inquiry (execution, prompt) SELECT min(id), 'why' FROM execution ON CONFLICT (execution) DO NOTHING`,
		"task": `INSERT INTO workflow_task_dispatch (workflow_execution, task_name) SELECT id, 'a' FROM workflow_execution
			ON CONFLICT (workflow_execution, task_name, (COALESCE(task_index, -1))) DO NOTHING`,
		"queue": `INSERT INTO execution_admission_state (action_id, group_key, max_concurrent) SELECT id, 'g', 1 FROM action WHERE ref = 'core.noop'
			ON CONFLICT (action_id, group_key_normalized) DO NOTHING`,
		"queue position": `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
			SELECT s.id, e.id, 'queued', 1 FROM (SELECT min(id) AS id FROM execution_admission_state) s, (SELECT min(id) AS id FROM execution) e
			ON CONFLICT (execution_id) DO NOTHING`,
	} {
		require.EqualValues(t, 1, exec(t, conn, insert), name)
		require.Zero(t, exec(t, conn, insert), name)
	}
}

func TestPartitionsAheadTakeTheirRowsAlong(t *testing.T) {
	conn := migrated(t)
	require.Zero(t, one[int](t, conn, "SELECT attune_partitions_ahead('event', 1, 7)"), "the schema comes with a week")
	exec(t, conn, "INSERT INTO event (trigger_ref, created) VALUES ('core.t', now()), ('core.t', now() + interval '9 days'), ('core.t', now() + interval '30 days')")
	require.EqualValues(t, 2, one[int64](t, conn, "SELECT count(*) FROM event_default"))
	require.Equal(t, 3, one[int](t, conn, "SELECT attune_partitions_ahead('event', 1, 10)"))
	require.EqualValues(t, 1, one[int64](t, conn, "SELECT count(*) FROM event_default"),
		"only migrations that are further ahead")
	require.EqualValues(t, 3, one[int64](t, conn, "SELECT count(*) FROM event"))
	require.Zero(t, one[int](t, conn, "SELECT attune_partitions_ahead('execution', 1, 7)"),
		"a plain table is left alone")
}

func TestExpectationTakesItsTransactionBack(t *testing.T) {
	conn := migrated(t)
	require.EqualValues(t, 3, one[int64](t, conn, "SELECT attune_expect(3, 3, 'rows')"))
	id := insertExecution(t, conn)
	_, err := conn.Exec(testkit.Context(t), `WITH u AS (UPDATE execution SET attempt = 5 WHERE id = $1 RETURNING id)
		SELECT attune_expect((SELECT count(*) FROM u), 2, 'granted slots')`, id)
	require.ErrorContains(t, err, "granted slots: 1 rows instead of 2 (SQLSTATE AT001)")
	require.Zero(t, one[int](t, conn, "SELECT attempt FROM execution WHERE id = $1", id))
}
