package retention_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/retention"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

const quarter = 90 * 24 * time.Hour

// pruneExecutions runs the loop once.
func pruneExecutions(t *testing.T, st *store.Store, change ...func(*retention.ExecutionsConfig)) {
	t.Helper()
	cfg := retention.ExecutionsConfig{Executions: quarter, Audit: quarter}
	for _, c := range change {
		c(&cfg)
	}
	loop := retention.NewExecutions(cfg, st, testkit.Logger(t), nil, nil)
	require.NoError(t, loop.Start(testkit.Context(t)))
	t.Cleanup(loop.Stop)
	testkit.Eventually(t, func() bool { return !loop.LastTick().IsZero() }, testkit.TestTimeout)
	loop.Stop()
	require.NoError(t, loop.LastError())
}

// aged makes everything old enough.
func aged(t *testing.T, st *store.Store, table, where string, days int) {
	t.Helper()
	set := "created = created - make_interval(days => $1)"
	if table == "execution" {
		set += ", updated = updated - make_interval(days => $1), finished_at = finished_at - make_interval(days => $1)"
	}
	testkit.Exec(t, st, `ALTER TABLE `+table+` DISABLE TRIGGER USER`)
	testkit.Exec(t, st, `UPDATE `+table+` SET `+set+` WHERE `+where, days)
	testkit.Exec(t, st, `ALTER TABLE `+table+` ENABLE TRIGGER USER`)
}

func text(id int64) string { return strconv.FormatInt(id, 10) }

func ended(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusCompleted }

// A trigger of the installation may refuse to delete a row: the others go.
func TestAnExecutionThatCannotBeDeletedKeepsNoOther(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	var all []int64
	for range 3 {
		all = append(all, testkit.Execution(t, st, action, ended).ID)
	}
	aged(t, st, "execution", "true", 100)
	testkit.Exec(t, st, `
		CREATE FUNCTION refuse_delete() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE 'an archive refuses' USING ERRCODE = '22023'; END $$;
		CREATE TRIGGER refuse_delete BEFORE DELETE ON execution FOR EACH ROW WHEN (OLD.id = `+text(all[0])+`)
			EXECUTE FUNCTION refuse_delete()`)
	pruneExecutions(t, st)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution`))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE id = $1`, all[0]))
}

// An execution is deleted with its children and retries, or not at all.
func TestOldExecutionsGoWithTheirFamilies(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	add := func(of, original int64, status lifecycle.Status) int64 {
		e := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = status })
		testkit.Exec(t, st,
			`UPDATE execution SET parent = nullif($2, 0), original_execution = nullif($3, 0) WHERE id = $1`,
			e.ID, of, original)
		return e.ID
	}
	done := lifecycle.StatusCompleted
	type family struct {
		why     string
		members []int64
	}
	var stay, go_ []family
	tree := func(leaf lifecycle.Status) []int64 {
		root := add(0, 0, done)
		inner := add(root, 0, done)
		failed := add(inner, 0, lifecycle.StatusFailed)
		return []int64{root, inner, failed, add(inner, failed, leaf), add(root, 0, lifecycle.StatusCancelled)}
	}
	go_ = append(go_, family{"single", []int64{add(0, 0, done)}}, family{"tree", tree(lifecycle.StatusTimeout)})
	running := tree(lifecycle.StatusRunning)
	stay = append(stay, family{"a member runs", running})
	refer := func(why, sql string) {
		members := tree(done)
		testkit.Exec(t, st, sql, members[2])
		stay = append(stay, family{why, members})
	}
	refer("a retry waits",
		`INSERT INTO execution_retry (failed, execution, reason, due) VALUES ($1, -1, 'x', now())`)
	refer("an inquiry is open", `INSERT INTO inquiry (execution, prompt) VALUES ($1, 'really?')`)
	refer("the answer of an inquiry is not processed",
		`INSERT INTO inquiry (execution, prompt, status, settled) VALUES ($1, 'really?', 'responded', false)`)
	refer("a slot of a shared limit is held", `WITH s AS (INSERT INTO admission_scope (kind, scope_key, max_concurrent,
		active_count) VALUES ('pack', 'pk', 1, 1) RETURNING id) INSERT INTO execution_slot SELECT $1, id FROM s`)
	refer("a work queue waits for it", `WITH q AS (INSERT INTO work_queue (ref, label, dispatch_action_ref)
		VALUES ('pk.q', 'Q', 'pk.a') RETURNING id, ref)
		INSERT INTO work_queue_dispatch (queue, queue_ref, execution, status, leased_item_count)
		SELECT id, ref, $1, 'dispatched', 1 FROM q`)
	refer("a dead letter waits", `INSERT INTO dead_letter (fingerprint, execution) VALUES ('f', $1)`)
	state := testkit.State(t, st, action, 1)
	refer("a queue has it", `INSERT INTO execution_admission_entry (execution_id, state_id, status, queue_order)
		VALUES ($1, `+text(state.ID)+`, 'queued', 1)`)
	refer("a slot is held", `INSERT INTO execution_holder (execution, state_id, attempt, granted_at) VALUES ($1, `+
		text(state.ID)+`, 1, now())`)
	young := tree(done)
	stay = append(stay, family{"a member ended lately", young})
	fresh := add(0, 0, done)

	aged(t, st, "execution", "id <> "+text(fresh), 100)
	aged(t, st, "execution", "id = "+text(young[3]), -50)
	wf := go_[1].members[0]
	testkit.Exec(t, st, `INSERT INTO workflow_definition (ref, label, version, definition, pack, pack_ref)
		SELECT 'pk.w', 'W', '1', '{}', id, ref FROM pack WHERE ref = 'pk'`)
	testkit.Exec(t, st, `INSERT INTO workflow_execution (execution, workflow_def, task_graph, status)
		SELECT $1, id, '{}', 'completed' FROM workflow_definition`, wf)
	testkit.Exec(t, st,
		`INSERT INTO execution_retry (failed, execution, reason, due, waiting) VALUES ($1, $2, 'x', now(), false)`,
		go_[1].members[2], go_[1].members[3])

	pruneExecutions(t, st)
	for _, f := range go_ {
		require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE id = ANY ($1)`, f.members), f.why)
	}
	for _, f := range stay {
		require.Equal(t, len(f.members),
			testkit.Count(t, st, `SELECT count(*) FROM execution WHERE id = ANY ($1)`, f.members), f.why)
	}
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE id = $1`, fresh))
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM workflow_execution`))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution_retry`), "that of the family that stays")
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM lost_holder`))
}

// A table of the installation may refer to executions: such a family stays, and the others are deleted.
func TestAFamilyToWhichAnotherTableRefersStays(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	var ids []int64
	for range 5 {
		ids = append(ids, testkit.Execution(t, st, action, ended).ID)
	}
	testkit.Exec(t, st, `CREATE TABLE receipt (execution bigint REFERENCES execution (id))`)
	testkit.Exec(t, st, `INSERT INTO receipt VALUES ($1)`, ids[2])
	aged(t, st, "execution", "true", 100)
	pruneExecutions(t, st)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution`))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE id = $1`, ids[2]))
}

func TestOldEnforcementsAndAuditRowsGo(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	testkit.Exec(t, st, `INSERT INTO enforcement (rule_ref, trigger_ref, config, status, payload, condition, conditions)
		SELECT 'pk.r' || n, 'pk.t', '{}', s::enforcement_status_enum, '{}', 'all', '[]'
		FROM unnest('{processed,disabled,created,processed,processed}'::text[]) WITH ORDINALITY x (s, n)`)
	execution := testkit.Execution(t, st, action).ID
	testkit.Exec(t, st,
		`UPDATE execution SET enforcement = (SELECT id FROM enforcement WHERE rule_ref = 'pk.r4') WHERE id = $1`,
		execution)
	aged(t, st, "enforcement", "rule_ref <> 'pk.r5'", 100)
	aged(t, st, "execution", "true", 100)
	testkit.Exec(t, st, `INSERT INTO operator_audit (actor, action, at) VALUES ('a', 'cancel', now() - interval '100 days'), ('a', 'cancel', now())`)

	pruneExecutions(t, st, func(c *retention.ExecutionsConfig) { c.Executions, c.Audit = 0, 0 })
	require.Equal(t, 5, testkit.Count(t, st, `SELECT count(*) FROM enforcement`), "off with 0")
	require.Equal(t, 2, testkit.Count(t, st, `SELECT count(*) FROM operator_audit`))
	pruneExecutions(t, st, func(c *retention.ExecutionsConfig) { c.Events = 200 * 24 * time.Hour })
	require.Equal(t, 5, testkit.Count(t, st, `SELECT count(*) FROM enforcement`), "events of this age still fire")
	pruneExecutions(t, st)
	require.Equal(t, 3,
		testkit.Count(t, st, `SELECT count(*) FROM enforcement WHERE rule_ref IN ('pk.r3', 'pk.r4', 'pk.r5')`))
	require.Equal(t, 3, testkit.Count(t, st, `SELECT count(*) FROM enforcement`))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM operator_audit`))
}

// Without a setting the executions of an adopted schema belong to its installation.
func TestExecutionsOfAnAdoptedSchemaStayUnlessAskedFor(t *testing.T) {
	st := testkit.OpenStore(t, testkit.AdoptedDatabase(t))
	testkit.Execution(t, st, testkit.Action(t, st, "pk.a"), ended)
	aged(t, st, "execution", "true", 100)
	pruneExecutions(t, st, func(c *retention.ExecutionsConfig) { c.OnlyOwn = true })
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution`))
	pruneExecutions(t, st)
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM execution`))
}

// Some installations have no work queues.
func TestOldExecutionsGoWithoutWorkQueues(t *testing.T) {
	database := testkit.Installation(t, installation.Shape{
		Date: installation.Newest.Date, Without: []installation.Migration{installation.WorkQueues},
	})
	_, err := migrations.Up(testkit.Context(t), migrations.Options{URL: database, Schema: testkit.Schema})
	require.NoError(t, err)
	st := testkit.OpenStore(t, database)
	testkit.Execution(t, st, testkit.Action(t, st, "pk.a"), ended)
	aged(t, st, "execution", "true", 100)
	pruneExecutions(t, st)
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM execution`))
}

// The statistics of an action are deleted with it.
func TestStatisticsOfADeletedActionGo(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]string{
		"own":     testkit.OwnDatabase(t),
		"adopted": testkit.AdoptedDatabase(t),
	} {
		st := testkit.OpenStore(t, database)
		action := testkit.Action(t, st, "pk.a")
		testkit.Exec(t, st, `INSERT INTO queue_stats (action_id, max_concurrent) VALUES ($1, 1) ON CONFLICT DO NOTHING`,
			action.ID)
		testkit.Exec(t, st, `DELETE FROM action WHERE id = $1`, action.ID)
		require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM queue_stats`), name)
	}
}

// Among 20,000 executions (200,000 in the slow tests), on both schemas, no statement scans a table: the database
// counts the rows of sequential scans.
func TestOldExecutionsAreDeletedByIndexes(t *testing.T) {
	t.Parallel()
	rows := 20_000
	if testkit.Slow() {
		rows *= 10
	}
	old := rows / 20
	for name, database := range map[string]string{
		"own":     testkit.OwnDatabase(t),
		"adopted": testkit.AdoptedDatabase(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := testkit.OpenStore(t, database)
			action := testkit.Action(t, st, "pk.a")
			for _, table := range []string{"enforcement", "execution"} {
				testkit.Exec(t, st, `ALTER TABLE `+table+` DISABLE TRIGGER ALL`)
			}
			testkit.Exec(t, st, `INSERT INTO enforcement (rule_ref, trigger_ref, config, status, payload, condition, conditions, created)
				SELECT 'pk.r', 'pk.t', '{}', 'processed', '{}', 'all', '[]', now() - interval '200 days' + n * interval '1 minute'
				FROM generate_series(1, $1) n`, rows)
			testkit.Exec(t, st, `INSERT INTO execution (id, action, action_ref, status, enforcement, created, updated, finished_at, parent, original_execution)
				SELECT f.id, $1, 'pk.a', 'completed', f.id, f.created, f.created, f.created,
				       CASE f.id % 10 WHEN 5 THEN f.id - 1 END, CASE f.id % 10 WHEN 6 THEN f.id - 1 END
				FROM enforcement f`, action.ID)
			keep := 200*24*time.Hour - time.Duration(old)*time.Minute
			for _, table := range []string{"enforcement", "execution"} {
				testkit.Exec(t, st, `ALTER TABLE `+table+` ENABLE TRIGGER ALL`)
			}
			testkit.Exec(t, st, `VACUUM ANALYZE execution, enforcement`)
			read := func(column, tables string) int {
				return testkit.Count(t, st, `SELECT coalesce(sum(`+column+
					`), 0) FROM pg_stat_user_tables WHERE relname = ANY ($1::text[])`, tables)
			}
			large := "{execution,enforcement}"
			testkit.Exec(t, st, `SELECT pg_stat_force_next_flush()`)
			before := read("seq_tup_read", large)
			pruneExecutions(t, st, func(c *retention.ExecutionsConfig) { c.Executions = keep })
			st.Pool().Reset() // a session reports its counters when it ends
			testkit.Eventually(t, func() bool {
				return read("n_tup_del", "{execution}") > old-10 && read("n_tup_del", "{enforcement}") > old-10
			}, testkit.TestTimeout)
			require.Equal(t, before, read("seq_tup_read", large))
			left := testkit.Count(t, st, `SELECT count(*) FROM execution`)
			require.InDelta(t, rows-old, left, 10)
			require.Equal(t, left, testkit.Count(t, st, `SELECT count(*) FROM enforcement`))
		})
	}
}
